package sources

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"
)

// CronData is what the template of a cron trigger's prompt can use.
type CronData struct {
	At    time.Time // the scheduled time, in whole seconds and in the schedule's zone
	Label string    // the fire's label
}

// CronDataAt returns the template data for a fire at a time, which may be any time
// when a person fires it by hand.
func CronDataAt(s Schedule, at time.Time) CronData {
	d := CronData{At: at.Truncate(time.Second), Label: s.Label(at)} // which drops the monotonic clock's part
	if s.loc != nil {
		d.At = d.At.In(s.loc)
	}
	return d
}

// FileData is what the template of a watch trigger's prompt can use. A path with
// control characters is quoted as a Go string.
type FileData struct {
	Path    string   // relative to the agent's directory, with slashes
	AbsPath string   // absolute
	Name    string   // the last element
	Event   string   // created, changed or removed
	Paths   []string // all files of a batch, or Path alone
}

// PollData is what the template of a poll trigger's prompt can use.
type PollData struct {
	Output string // the part of the output that this prompt is made of
	JSON   any    // with SplitJSON: its value, see DecodeJSON
	lacks
}

// WebhookData is what the template of a webhook's prompt can use.
type WebhookData struct {
	JSON any    // the body, see DecodeJSON
	Body string // the same as text, valid UTF-8
	lacks

	headers func(name string) (string, bool)
}

// NewWebhookData returns the data of a request whose headers are found by headers.
func NewWebhookData(json any, body string, headers func(name string) (string, bool)) WebhookData {
	return WebhookData{JSON: json, Body: body, headers: headers}
}

// maxPrompt bounds what a template may produce, in bytes.
const maxPrompt = 1 << 20

var errPromptTooLong = errors.New("the prompt is over 1 MiB")

// Template is a prompt's text/template, parsed.
type Template struct {
	parsed *template.Template // nil: text is the prompt, as in most of them
	text   string
}

func (t *Template) execute(out *limited, data any) error {
	if t.parsed == nil {
		_, err := out.Write([]byte(t.text))
		return err
	}
	return t.parsed.Execute(out, data)
}

// parseTemplate parses a prompt's template and tries it with sample data, so that a
// field that does not exist is found now. The error is a *TemplateError.
func parseTemplate(text string, sample any) (*Template, error) {
	t, err := parseKnown(text, sample)
	if err != nil {
		return nil, err
	}
	if err := t.execute(&limited{}, sample); err != nil {
		return nil, &TemplateError{fault(plainFault(text, err))}
	}
	return t, nil
}

// parseKnown parses a template and checks for fields that sample lacks.
func parseKnown(text string, sample any) (*Template, error) {
	if !strings.Contains(text, "{{") {
		return &Template{text: text}, nil
	}
	parsed, err := empty().New("prompt").Parse(text)
	if err != nil {
		return nil, &TemplateError{fault(plainFault(text, err))}
	}
	_, lenient := sample.(fielder)
	if faults := faultsOf(parsed, sample, lenient); faults != nil {
		return nil, &TemplateError{faults}
	}
	if lenient {
		makeLenient(parsed)
	}
	if len(parsed.Templates()) == 1 && !strings.Contains(text, "template") { // it calls none of its set
		if parsed, err = known.AddParseTree(parsed.Name(), parsed.Tree); err != nil {
			return nil, &TemplateError{fault(plainFault(text, err))}
		}
	}
	return &Template{parsed: parsed}, nil
}

// known is the set of templates that call none: a set of its own has 2.5 kB of functions, for
// each of thousands of triggers.
var known = empty()

func empty() *template.Template { return template.New("").Option("missingkey=error").Funcs(functions) }

// Render produces the prompt. A prompt over 1 MiB is an error. What is null or not there
// is empty.
func (t *Template) Render(data any) (string, error) {
	text, _, err := t.RenderLacking(data)
	return text, err
}

// RenderLacking produces the prompt, and names the fields and headers that it should show
// and that are not there.
func (t *Template) RenderLacking(data any) (text string, lacking []string, err error) {
	switch d := data.(type) {
	case PollData:
		d.names = &lacking
		data = d
	case WebhookData:
		d.names = &lacking
		data = d
	}
	var out limited
	if err := t.execute(&out, data); err != nil {
		if errors.Is(err, errPromptTooLong) {
			return "", nil, errPromptTooLong
		}
		line, why := plain(err)
		return "", nil, fmt.Errorf("cannot make the prompt: line %d: %s", line, why)
	}
	return out.b.String(), lacking, nil
}

// RenderKey produces the text by which two fires are the same. One that would be blank,
// or made without a field that the template names, is an error: it would make different
// things the same.
func (t *Template) RenderKey(data any) (string, error) {
	key, lacking, err := t.RenderLacking(data)
	switch {
	case err != nil:
		return "", err
	case len(lacking) > 0:
		return "", fmt.Errorf("there is no %s", strings.Join(lacking, ", no "))
	case strings.TrimSpace(key) == "":
		return "", errors.New("it is blank")
	}
	return key, nil
}

// ParseCronTemplate parses the prompt of a cron trigger.
func ParseCronTemplate(text string) (*Template, error) {
	return parseTemplate(text, CronData{At: time.Unix(0, 0).UTC(), Label: "1970-01-01T00:00"})
}

// ParseFileTemplate parses the prompt of a watch trigger.
func ParseFileTemplate(text string) (*Template, error) {
	return parseTemplate(text, FileData{
		Path: "in/a.md", AbsPath: "/agent/in/a.md", Name: "a.md", Event: "created", Paths: []string{"in/a.md"},
	})
}

// ParsePollTemplate parses the prompt or the key of a poll trigger. An empty text
// means the output itself. With a split other than SplitJSON there is no {{.JSON}}.
func ParsePollTemplate(text string, split Split) (*Template, error) {
	switch {
	case text == "":
		text = "{{.Output}}"
	case split != SplitJSON:
		return parseTemplate(text, struct{ Output string }{"output"})
	}
	return parseTemplate(text, PollData{Output: "output"})
}

// ParseWebhookTemplate parses the prompt or the key of a webhook trigger.
func ParseWebhookTemplate(text string) (*Template, error) {
	return parseTemplate(text, NewWebhookData(nil, "body", func(string) (string, bool) { return "value", true }))
}

// limited is a buffer that refuses to grow beyond maxPrompt.
type limited struct{ b bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > maxPrompt {
		return 0, errPromptTooLong
	}
	return l.b.Write(p)
}
