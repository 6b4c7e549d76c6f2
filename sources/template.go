package sources

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"time"
)

// CronData is what the template of a cron trigger's prompt can use.
type CronData struct {
	At    time.Time // the scheduled time, in the schedule's zone
	Label string    // the fire's label
}

// FileData is what the template of a watch trigger's prompt can use. A path
// with control characters stands there quoted as a Go string.
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

// maxPrompt bounds what a template may make, in bytes.
const maxPrompt = 1 << 20

var errPromptTooLong = errors.New("the prompt is over 1 MiB")

// Template is a prompt's text/template, parsed.
type Template struct {
	tmpl *template.Template
}

// ParseTemplate parses a prompt's template and tries it with a sample of its
// data, so that a field that does not exist is found now.
func ParseTemplate(text string, sample any) (*Template, error) {
	t, err := parse(text)
	if err != nil {
		return nil, err
	}
	if _, err := t.Render(sample); err != nil {
		return nil, err
	}
	return t, nil
}

func parse(text string) (*Template, error) {
	parsed, err := template.New("prompt").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read the template: %w", plain(err))
	}
	return &Template{tmpl: parsed}, nil
}

// UnknownFieldError is a field that a trigger's data does not have.
type UnknownFieldError struct{ Name string }

// Error names the field.
func (e *UnknownFieldError) Error() string { return "there is no {{." + e.Name + "}}" }

var (
	// templateWords are how text/template begins its errors: "template:
	// NAME:LINE:COLUMN: executing …".
	templateWords = regexp.MustCompile(`^template: prompt:(\d+)(?::\d+)?: (?:executing "prompt" at )?`)
	unknownField  = regexp.MustCompile(`can't evaluate field (\w+) in type sources\.`)
)

// plain is an error of text/template in words for who wrote the template.
func plain(err error) error {
	text := err.Error()
	if m := unknownField.FindStringSubmatch(text); m != nil {
		return &UnknownFieldError{Name: m[1]}
	}
	if m := templateWords.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("line %s: %s", m[1], text[len(m[0]):])
	}
	return err
}

// Render makes the prompt. A prompt over 1 MiB is an error.
func (t *Template) Render(data any) (string, error) {
	var out limited
	if err := t.tmpl.Execute(&out, data); err != nil {
		if errors.Is(err, errPromptTooLong) {
			return "", errPromptTooLong
		}
		return "", fmt.Errorf("cannot make the prompt: %w", plain(err))
	}
	return out.b.String(), nil
}

// Render makes a prompt from a template's text; see Template for many.
func Render(text string, data any) (string, error) {
	t, err := ParseTemplate(text, data)
	if err != nil {
		return "", err
	}
	return t.Render(data)
}

// ParseCronTemplate parses the prompt of a cron trigger.
func ParseCronTemplate(text string) (*Template, error) {
	return ParseTemplate(text, CronData{At: time.Unix(0, 0).UTC(), Label: "1970-01-01T00:00"})
}

// ParseFileTemplate parses the prompt of a watch trigger.
func ParseFileTemplate(text string) (*Template, error) {
	return ParseTemplate(text, FileData{
		Path: "in/a.md", AbsPath: "/agent/in/a.md", Name: "a.md", Event: "created", Paths: []string{"in/a.md"},
	})
}

// ParsePollTemplate parses the prompt or the key of a poll trigger. An empty
// text means the output itself. What a command's JSON holds is not known yet,
// so a mistake in what is made of {{.JSON}} shows when the command has run.
func ParsePollTemplate(text string) (*Template, error) {
	if text == "" {
		text = "{{.Output}}"
	}
	t, err := ParseTemplate(text, PollData{Output: "output"})
	if _, unknown := errors.AsType[*UnknownFieldError](err); err != nil && !unknown && strings.Contains(text, ".JSON") {
		return parse(text)
	}
	return t, err
}

// limited is a buffer that refuses to grow over maxPrompt.
type limited struct{ b bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > maxPrompt {
		return 0, errPromptTooLong
	}
	return l.b.Write(p)
}
