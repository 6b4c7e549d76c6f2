package page

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"heartbeat/orchestrator/approval"
)

// deed is one thing that a person may ask for. A button's value is its name and its words:
// "retry triage 4f1c02d3".
type deed struct {
	name  string
	words int // how many words follow the name
	// text is true where something is filled in.
	text bool
	// escaped is true where the last word may have spaces, and is escaped as in a query.
	escaped bool
	// moves is true where the page may have another address afterwards.
	moves bool
	// place is the part of an agent's page that has its button; "": the head.
	place string
	do    func(p *Page, ctx context.Context, o order) (string, error)
}

// capital returns a text with a capital at its beginning.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// stop ends a sentence.
func stop(text string) string {
	if last, _ := utf8.DecodeLastRuneInString(text); text == "" || strings.ContainsRune(".!?…", last) {
		return text
	}
	return text + "."
}

// sentence returns the text of an error as a sentence.
func sentence(err error) string { return stop(capital(err.Error())) }

// order is a deed that a person asks for. An order that is sent twice is carried out once, and
// gets the first answer again.
type order struct {
	Args []string
	Form url.Values
	// By is the name of the person's token, Key the form's key.
	By, Key string
}

// deeds are all deeds. The first word of those about an agent is its name.
var deeds = []deed{
	{name: "pause", words: 1, do: func(p *Page, _ context.Context, o order) (string, error) {
		return o.Args[0] + ": paused", p.opt.Act.Pause(0, o.Args[0])
	}},
	{name: "pause-hour", words: 1, do: func(p *Page, _ context.Context, o order) (string, error) {
		return o.Args[0] + ": paused for an hour", p.opt.Act.Pause(time.Hour, o.Args[0])
	}},
	{name: "resume", words: 1, do: func(p *Page, _ context.Context, o order) (string, error) {
		return o.Args[0] + ": resumed", p.opt.Act.Resume(o.Args[0])
	}},
	{name: "restart", words: 1, do: func(p *Page, _ context.Context, o order) (string, error) {
		return o.Args[0] + ": its session ends after its turn", p.opt.Act.Restart(false, o.Args[0])
	}},
	{name: "cancel", place: "agent-queue", words: 2, do: func(p *Page, ctx context.Context, o order) (string, error) {
		return p.opt.Act.Cancel(ctx, o.Args[1], false, o.Args[0])
	}},
	{name: "trigger", place: "agent-triggers", words: 2, do: func(p *Page, ctx context.Context, o order) (string, error) {
		return p.opt.Act.Trigger(ctx, o.Args[0], o.Args[1])
	}},
	{name: "send", place: "agent-send", words: 1, text: true, do: func(p *Page, ctx context.Context, o order) (string, error) {
		text := o.Text()
		if strings.TrimSpace(text) == "" {
			return "", errors.New("there is no text to send")
		}
		return p.opt.Act.Send(ctx, o.Args[0], text, o.id())
	}},
	{name: "drop", place: "agent-queue", words: 2, do: func(p *Page, ctx context.Context, o order) (string, error) {
		return o.Args[0] + ": dropped, and kept as a dead letter", p.opt.Act.Drop(ctx, o.Args[0], o.Args[1])
	}},
	{name: "retry", place: "agent-dead", words: 2, do: func(p *Page, ctx context.Context, o order) (string, error) {
		return o.Args[0] + ": queued again", p.opt.Act.Retry(ctx, o.Args[0], o.Args[1])
	}},
	{name: "retry-all", place: "agent-dead", words: 1, do: func(p *Page, ctx context.Context, o order) (string, error) {
		n, err := p.opt.Act.RetryAll(ctx, o.Args[0])
		return o.Args[0] + ": queued " + count(n, "dead letter") + " again", err
	}},
	{name: "purge", place: "agent-dead", words: 2, do: func(p *Page, ctx context.Context, o order) (string, error) {
		return o.Args[0] + ": deleted", p.opt.Act.Purge(ctx, o.Args[0], o.Args[1])
	}},
	{name: "answer", place: "agent-queue", words: 2, do: func(p *Page, ctx context.Context, o order) (string, error) {
		return p.opt.Act.Continue(ctx, o.Args[0], o.Args[1])
	}},
	{name: "approve", words: 2, text: true, do: func(p *Page, ctx context.Context, o order) (string, error) {
		return p.answer(ctx, o, approval.Approved)
	}},
	{name: "reject", words: 2, text: true, do: func(p *Page, ctx context.Context, o order) (string, error) {
		return p.answer(ctx, o, approval.Rejected)
	}},
	{name: "allow", words: 2, escaped: true, do: func(p *Page, ctx context.Context, o order) (string, error) {
		return p.opt.Act.Allow(ctx, o.Args[0], o.Args[1])
	}},
	{name: "reload", moves: true, do: func(p *Page, _ context.Context, _ order) (string, error) { return p.opt.Act.Reload() }},
}
