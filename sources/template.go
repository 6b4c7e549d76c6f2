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
	JSON   any    // with SplitJSON: its value, as encoding/json decodes it
}

// WebhookData is what the template of a webhook's prompt can use. A field that the
// body lacks, and a header that the request lacks, are errors.
type WebhookData struct {
	JSON any    // the body, as encoding/json decodes it, with "" for null
	Body string // the same as text, valid UTF-8

	headers func(name string) (string, bool)
}

// NewWebhookData returns the data of a request whose headers are found by headers.
func NewWebhookData(json any, body string, headers func(name string) (string, bool)) WebhookData {
	return WebhookData{JSON: json, Body: body, headers: headers}
}

// Header returns the value of a header.
func (d WebhookData) Header(name string) (string, error) {
	value, ok := d.headers(name)
	if !ok {
		return "", fmt.Errorf("the request has no header %s", name)
	}
	return value, nil
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
	parsed, err := template.New("prompt").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, &TemplateError{fault(plainFault(text, err))}
	}
	if faults := unknownFields(parsed, sample); faults != nil {
		return nil, &TemplateError{faults}
	}
	return &Template{parsed: parsed}, nil
}

// Render produces the prompt. A prompt over 1 MiB is an error.
func (t *Template) Render(data any) (string, error) {
	var out limited
	if err := t.execute(&out, data); err != nil {
		if errors.Is(err, errPromptTooLong) {
			return "", errPromptTooLong
		}
		line, why := plain(err)
		return "", fmt.Errorf("cannot make the prompt: line %d: %s", line, why)
	}
	return out.b.String(), nil
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
// means the output itself. The content of a command's JSON is not known yet, so
// mistakes in the use of {{.JSON}} show only after the command has run. With a
// split other than SplitJSON there is no {{.JSON}}.
func ParsePollTemplate(text string, split Split) (*Template, error) {
	switch {
	case text == "":
		text = "{{.Output}}"
	case !strings.Contains(text, ".JSON"):
	case split != SplitJSON:
		return parseTemplate(text, struct{ Output string }{"output"})
	default:
		return parseKnown(text, PollData{})
	}
	return parseTemplate(text, PollData{Output: "output"})
}

// ParseWebhookTemplate parses the prompt or the key of a webhook trigger. What a
// request says is not known yet, so mistakes in the use of {{.JSON}} and {{.Header}}
// show only after the request.
func ParseWebhookTemplate(text string) (*Template, error) {
	data := NewWebhookData(nil, "body", func(string) (string, bool) { return "value", true })
	if strings.Contains(text, ".JSON") {
		return parseKnown(text, data)
	}
	return parseTemplate(text, data)
}

// limited is a buffer that refuses to grow beyond maxPrompt.
type limited struct{ b bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > maxPrompt {
		return 0, errPromptTooLong
	}
	return l.b.Write(p)
}
