package sources

import (
	"bytes"
	"errors"
	"fmt"
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
	parsed, err := template.New("prompt").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read prompt template: %w", err)
	}
	t := &Template{tmpl: parsed}
	if _, err := t.Render(sample); err != nil {
		return nil, err
	}
	return t, nil
}

// Render makes the prompt. A prompt over 1 MiB is an error.
func (t *Template) Render(data any) (string, error) {
	var out limited
	if err := t.tmpl.Execute(&out, data); err != nil {
		return "", fmt.Errorf("cannot make prompt: %w", err)
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

// ParsePollTemplate parses the prompt of a poll trigger. An empty text means
// the output itself.
func ParsePollTemplate(text string) (*Template, error) {
	if text == "" {
		text = "{{.Output}}"
	}
	return ParseTemplate(text, PollData{Output: "output"})
}

// limited is a buffer that refuses to grow over maxPrompt.
type limited struct{ b bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > maxPrompt {
		return 0, errPromptTooLong
	}
	return l.b.Write(p)
}
