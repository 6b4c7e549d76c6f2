package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"heartbeat/sources"
)

// prompt reads prompt or prompt-file and checks the template.
func (l *loader) prompt(p place, t table, data promptData) string {
	inline, has := t["prompt"]
	file, hasFile := t["prompt-file"]
	where, text, ok := inline, "", false
	switch {
	case has && hasFile:
		l.problem(file, "prompt and prompt-file are both given", "remove one of them")
	case has:
		text, ok = l.filled(inline)
	case hasFile:
		where = file
		text, ok = l.promptFile(file)
	case data.kind != pollKind:
		l.absence(p.lacking("prompt"), "write prompt: TEXT, or prompt-file: PATH")
	}
	if !ok {
		return ""
	}
	l.template(where, text, data, hasFile)
	return text
}

// promptData says which data a template can use: that depends on the trigger's kind
// and, for a poll, on how it splits its output.
type promptData struct {
	kind  triggerKind
	split sources.Split
}

func (d promptData) parse(text string) error {
	var err error
	switch d.kind {
	case cronKind:
		_, err = sources.ParseCronTemplate(text)
	case watchKind:
		_, err = sources.ParseFileTemplate(text)
	case pollKind:
		_, err = sources.ParsePollTemplate(text, d.split)
	case webhookKind:
		_, err = sources.ParseWebhookTemplate(text)
	}
	return err
}

func (d promptData) fields() string {
	switch {
	case d.kind == cronKind:
		return "{{.At}} and {{.Label}}"
	case d.kind == watchKind:
		return "{{.Path}}, {{.AbsPath}}, {{.Name}}, {{.Event}} and {{.Paths}}"
	case d.kind == webhookKind:
		return `{{.JSON}}, {{.Body}} and {{.Header "NAME"}}`
	case d.split == sources.SplitJSON:
		return "{{.Output}} and {{.JSON}}"
	}
	return "{{.Output}} and, with split: json, {{.JSON}}"
}

// template checks a trigger's template, from this file or from a prompt file. Many
// agents share a few templates, so each is checked once.
func (l *loader) template(p place, text string, data promptData, elsewhere bool) {
	key := templateKey{data, text}
	err, known := l.cached.templates[key]
	if !known {
		err = data.parse(text)
		l.cached.templates[key] = err
	}
	if err != nil {
		l.badTemplate(p, data, err, elsewhere)
	}
}

// badTemplate reports each problem of a prompt, at its own place where the prompt
// is in this file.
func (l *loader) badTemplate(p place, data promptData, err error, elsewhere bool) {
	hint := "known are " + data.fields()
	wrong, ok := errors.AsType[*sources.TemplateError](err)
	if !ok {
		l.problem(p, err.Error(), hint)
		return
	}
	for _, f := range wrong.Faults {
		where := p
		if !elsewhere {
			where = p.within(f.Offset)
		}
		l.problem(where, f.Message, hint)
	}
}

func (l *loader) promptFile(p place) (string, bool) {
	name, ok := l.expand(p)
	if !ok {
		return "", false
	}
	l.names(p, name)
	text, err := l.shelf.prompt(name)
	if err != nil {
		l.problem(p, err.Error(), cmp.Or(mended(err, name), "paths are relative to this file"))
		return "", false
	}
	l.keep(name, []byte(text))
	data, err := Written([]byte(text))
	switch {
	case err != nil:
		l.problem(p, fmt.Sprintf("cannot read prompt %s: %v", name, err), "")
		return "", false
	case len(bytes.TrimSpace(data)) == 0:
		l.problem(p, name+" is blank", "")
		return "", false
	}
	if line, left := leftOfMerge(data); line > 0 {
		l.warn(p, fmt.Sprintf("%s, line %d: %s%s", name, line, conflict, left), conflictHint)
	}
	return strings.TrimRight(string(data), "\r\n"), true
}

func readPrompt(name string) (string, error) {
	f, err := openOwned(name)
	if errors.Is(err, errNotRegular) {
		return "", fmt.Errorf("cannot read prompt: %s is not a regular file", name)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read prompt: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPromptFile+1))
	if err != nil {
		return "", fmt.Errorf("cannot read prompt: %w", err)
	}
	if len(data) > maxPromptFile {
		return "", fmt.Errorf("cannot read prompt: %s is over 1 MiB", name)
	}
	return string(data), nil
}
