package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"

	"heartbeat/hook/foreign"
)

// newLog makes the program's logger: JSON for machines, otherwise lines for people.
// Times are local.
func newLog(w io.Writer, colours palette, level slog.Level, format string) *slog.Logger {
	lines := &personHandler{mu: new(sync.Mutex), w: w, level: level, palette: colours}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(foreign.EscapingJSON(w), &slog.HandlerOptions{Level: level}))
	case peopleFormat:
		lines.people = true
	}
	return slog.New(lines)
}

// newRunLog makes the logger of a run, which must not wait for its reader, and does
// not repeat the same failure again and again. What is written to the bottom line, a
// log line or not, does not wait either. flush gives the reader a last chance.
func newRunLog(w *os.File, level slog.Level, format string) (log *slog.Logger, bottom *bottomLine, flush func()) {
	q := newLogQueue(w, func(lines int) []byte {
		var b bytes.Buffer
		newLog(&b, paletteFor(w), level, format).Warn("lines of this log were dropped: nobody read it", "lines", lines)
		return b.Bytes()
	})
	bottom = &bottomLine{w: q}
	return slog.New(newRepeats(newLog(bottom, paletteFor(w), level, format).Handler())), bottom, func() { q.flush(logQueueEnd) }
}

// personHandler writes a line for each record:
//
//	15:04:05 WARN session ended agent=triage why="crashed (ended by SIGKILL)"
//
// Only levels other than info are named. A value with line breaks (a screen)
// stands below, indented.
type personHandler struct {
	palette
	mu    *sync.Mutex
	w     io.Writer
	level slog.Level
	attrs []slog.Attr
	group string
	// people is true where a narrator tells most of it: the rest are sentences.
	people bool
}

// Enabled implements slog.Handler.
func (h *personHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

// WithAttrs implements slog.Handler.
func (h *personHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.attrs = append(h.attrs[:len(h.attrs):len(h.attrs)], h.named(attrs)...)
	return &with
}

// WithGroup implements slog.Handler.
func (h *personHandler) WithGroup(name string) slog.Handler {
	with := *h
	with.group += name + "."
	return &with
}

func (h *personHandler) named(attrs []slog.Attr) []slog.Attr {
	if h.group == "" {
		return attrs
	}
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = slog.Attr{Key: h.group + a.Key, Value: a.Value}
	}
	return out
}

// Handle implements slog.Handler: one write for each record.
func (h *personHandler) Handle(_ context.Context, r slog.Record) error {
	attrs := h.attrs[:len(h.attrs):len(h.attrs)]
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, h.named([]slog.Attr{a})...)
		return true
	})
	text := h.line
	if h.people {
		text = h.sentence
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write(text(r, attrs))
	return err
}

// line is a record as its one line, and what stands below it.
func (h *personHandler) line(r slog.Record, attrs []slog.Attr) []byte {
	var b, below bytes.Buffer
	b.WriteString(h.dim + r.Time.Format("15:04:05") + h.reset)
	switch {
	case r.Level >= slog.LevelError:
		b.WriteString(" " + h.red + r.Level.String() + h.reset)
	case r.Level >= slog.LevelWarn:
		b.WriteString(" " + h.yellow + r.Level.String() + h.reset)
	case r.Level < slog.LevelInfo:
		b.WriteString(" " + r.Level.String())
	}
	b.WriteString(" " + foreign.Line(r.Message))
	for _, a := range attrs {
		writeAttr(&b, &below, a)
	}
	b.WriteByte('\n')
	b.Write(below.Bytes())
	return b.Bytes()
}

func writeAttr(line, below *bytes.Buffer, a slog.Attr) {
	text := a.Value.Resolve().String()
	switch {
	case strings.Contains(text, "\n"):
		below.WriteString("  " + a.Key + ":\n")
		for l := range foreign.Lines(text) {
			below.WriteString("    " + l + "\n")
		}
		return
	case text == "" || strings.ContainsAny(text, " \t\"=") || foreign.Line(text) != text:
		text = strconv.Quote(text)
	}
	line.WriteString(" " + a.Key + "=" + text)
}
