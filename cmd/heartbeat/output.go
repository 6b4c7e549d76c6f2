package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
)

// result is what a command found or did: its text form is for people, the value
// itself, as JSON, for programs.
type result interface {
	text(p *page)
}

// output is the only way to stdout. A command has one result, printed at its end;
// with JSON, lines that say that it is still running may come before. Each line is
// one write.
type output struct {
	json    bool
	started time.Time
	err     io.Writer
	// colours of stdout and stderr, and how wide they are; 0: not known.
	paint, paintErr palette
	columns         int
	columnsErr      int
	// ours is how a command line for the fleet begins; "": not known yet.
	ours string

	// step is set by callers that must not wait for the reader of stdout.
	step atomic.Value

	mu       sync.Mutex // guards the rest
	w        io.Writer
	warnings []string
	finished bool
}

func newOutput(std stdio, asJSON bool, started time.Time) *output {
	return &output{
		json: asJSON, started: started, w: stdout{std.out}, err: std.err,
		paint: paletteFor(std.out), paintErr: paletteFor(std.err), columns: columnsOf(std.out), columnsErr: columnsOf(std.err), warnings: []string{},
	}
}

// unprintedError means that what a command had to say could not be printed.
type unprintedError struct{ err error }

// Error says why.
func (e *unprintedError) Error() string { return "cannot print the result: " + e.err.Error() }

// Unwrap returns the cause.
func (e *unprintedError) Unwrap() error { return e.err }

// unprinted is an error as an *unprintedError.
func unprinted(err error) error {
	if err == nil || isUnprinted(err) {
		return err
	}
	return &unprintedError{err}
}

func isUnprinted(err error) bool {
	_, is := errors.AsType[*unprintedError](err)
	return is
}

// stdout is a writer whose errors are *unprintedError: whoever prints there passes them
// on as they are.
type stdout struct{ io.Writer }

// Write implements io.Writer.
func (s stdout) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	return n, unprinted(err)
}

// envelope is the last line of JSON output.
type envelope struct {
	OK       bool      `json:"ok"`
	Data     any       `json:"data"`
	Error    *errorDoc `json:"error"`
	Warnings []string  `json:"warnings"`
	Meta     meta      `json:"meta"`
}

type errorDoc struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

type meta struct {
	DurationMS int64 `json:"duration_ms"`
}

// pulse is a line that says that the command is still running.
type pulse struct {
	Status    string `json:"status"`
	Heartbeat bool   `json:"heartbeat"`
	ElapsedMS int64  `json:"elapsed_ms"`
	Step      string `json:"step,omitempty"`
}

func (o *output) setStep(text string) { o.step.Store(text) }

func (o *output) warn(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.warnings = append(o.warnings, text)
}

// warnNow is warn for commands that keep running: people read it before the rest.
func (o *output) warnNow(text string) {
	if o.json {
		o.warn(text)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.printWarning(text)
}

// beat starts the lines that say that the command is still running, with JSON
// output, until the returned function is called. 0 means none.
func (o *output) beat(every time.Duration) (stop func()) {
	if !o.json || every <= 0 {
		return func() {}
	}
	ticker := time.NewTicker(every)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				o.pulse()
			}
		}
	}()
	return sync.OnceFunc(func() {
		ticker.Stop()
		close(done)
	})
}

// pulse prints one line, unless the envelope has been printed. If the reader is
// gone, the command continues.
func (o *output) pulse() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.finished {
		return
	}
	step, _ := o.step.Load().(string)
	line, err := jsonLine(pulse{Status: "running", Heartbeat: true, ElapsedMS: o.elapsed(), Step: step})
	if err == nil {
		_, _ = o.w.Write(line)
	}
}

func (o *output) elapsed() int64 { return time.Since(o.started).Milliseconds() }

// finish prints the result and the error and returns the exit status.
func (o *output) finish(r result, err error) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finished = true
	if v := reflect.ValueOf(r); v.Kind() == reflect.Pointer && v.IsNil() {
		r = nil // of a command that passes on the pointer and the error of another function
	}
	var printed error
	if o.json {
		printed = o.finishJSON(r, err)
	} else {
		printed = o.finishText(r, err)
	}
	if printed != nil && !errors.Is(printed, syscall.EPIPE) {
		o.printError(unprinted(printed))
		return max(statusOf(err), exitError)
	}
	return statusOf(err)
}

func (o *output) finishJSON(r result, err error) error {
	e := envelope{OK: err == nil, Data: r, Warnings: o.warnings, Meta: meta{DurationMS: o.elapsed()}}
	if err != nil {
		e.Error = &errorDoc{Code: codeOf(err), Message: err.Error(), Hint: withOurs(o.ours, hintOf(err))}
	}
	line, marshal := jsonLine(e)
	if marshal != nil {
		return marshal
	}
	_, write := o.w.Write(line)
	return write
}

func (o *output) finishText(r result, err error) error {
	var printed error
	if r != nil {
		p := &page{palette: o.paint, columns: o.columns, ours: o.ours}
		r.text(p)
		if p.buf.Len() > 0 {
			_, printed = o.w.Write(p.buf.Bytes())
		}
	}
	for _, w := range o.warnings {
		o.printWarning(w)
	}
	if err != nil && !silent(err) {
		o.printError(err)
	}
	return printed
}

func (o *output) printWarning(text string) {
	o.say(o.paintErr.yellow, "warning", text, foreignIndent)
}

// emit prints one of many lines that a command prints while it runs: the value as
// JSON, or its text. The error is the writer's.
func (o *output) emit(v any, text func(*page)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	line := []byte(nil)
	if o.json {
		var err error
		if line, err = jsonLine(v); err != nil {
			return err
		}
	} else {
		p := &page{palette: o.paint, columns: o.columns, ours: o.ours}
		text(p)
		line = p.buf.Bytes()
	}
	_, err := o.w.Write(line)
	return err
}

// tell prints a page on a run's stderr, where it logs. It does not wait for the reader.
func (a *app) tell(text func(*page)) {
	p := &page{palette: a.out.paintErr, columns: columnsOf(a.stdio.err), ours: a.out.ours}
	text(p)
	if p.buf.Len() > 0 {
		_, _ = a.bottom.Write(p.buf.Bytes()) // it never fails
	}
}

// printError is the only place where errors and hints are printed for people.
func (o *output) printError(err error) {
	if problems, ok := errors.AsType[config.Problems](err); ok {
		first, _, _ := strings.Cut(err.Error(), "\n")
		o.say(o.paintErr.red, "heartbeat", first, "")
		p := &page{palette: o.paintErr, columns: o.columnsErr}
		problemsText(p, problems)
		_, _ = o.err.Write(p.buf.Bytes())
	} else {
		o.say(o.paintErr.red, "heartbeat", err.Error(), foreignIndent)
	}
	if hint := hintOf(err); hint != "" {
		o.say(o.paintErr.cyan, "hint", withOurs(o.ours, hint), foreignIndent)
	}
}

// foreignIndent precedes the second and later lines of a message: an error may
// quote what others wrote, and nothing in it may pass for a hint of ours.
const foreignIndent = "  "

// say prints a message for people; on a terminal it is wrapped. The lines behind its first
// stand behind an indent.
func (o *output) say(colour, who, text, indent string) {
	p := &page{palette: o.paintErr, columns: o.columnsErr}
	first, rest, _ := strings.Cut(text, "\n")
	p.coloured(colour, who+":")
	p.rest(width(who)+1, foreignIndent, " "+strings.TrimSuffix(first, "\r"))
	p.told(indent, rest)
	_, _ = o.err.Write(p.buf.Bytes())
}

// jsonLine is a value as one line of JSON, in the words of all commands, in which nothing acts on a terminal.
func jsonLine(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(worded(v))
	return foreign.JSON(b.Bytes()), err
}
