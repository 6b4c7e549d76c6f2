package client

import (
	"errors"
	"fmt"
	"io"

	"heartbeat/hook/foreign"
)

// Event is what a hook's payload says, as far as it matters to us. A field that is
// missing, or has another type, is zero.
type Event struct {
	Name       string // of the event
	SessionID  string
	Transcript string // its path
	PromptID   string
	// PermissionMode is missing in some events.
	PermissionMode string
	// AgentID is set only in events of subagents.
	AgentID string

	Cause          string // of SessionStart and SessionEnd
	Prompt         string // UserPromptSubmit
	StopHookActive bool   // Stop: a Stop hook continued the client
	LastMessage    string // Stop, StopFailure
	Tasks          []Task // Stop: those in the background
	Error          string // StopFailure
	Notification   Notice
	Tool           Tool

	// Cut is true if the payload was incomplete: fields may be missing.
	Cut bool
}

// Notice is what a Notification says.
type Notice struct{ Kind, Message string }

// Task is something that runs in the background.
type Task struct{ Kind, Status, Description string }

// Running reports whether it has not ended.
func (t Task) Running() bool {
	switch t.Status {
	case "completed", "failed", "killed", "stopped", "cancelled", "canceled":
		return false
	}
	return true
}

// Running returns the background tasks that have not ended, as "type: description".
func (e *Event) Running() []string {
	var names []string
	for _, t := range e.Tasks {
		if t.Running() {
			names = append(names, foreign.Short(t.Kind+": "+t.Description, 200))
		}
	}
	return names
}

// Tool is a call of a tool: its name, and what a person recognises it by.
type Tool struct{ Name, Command, Path, URL, Query string }

// Field is a key of a payload, and the part of an event that it sets.
type Field struct {
	Key  string
	read func(r jsonReader, e *Event) error
}

// The largest JSON of a field that is kept, in bytes; the rest is cut off. A
// character takes at most six bytes for each of its own.
const (
	maxField = 64 << 10
	// maxLast is more than is kept of a reply (inbox.MaxReply), so that a longer one
	// says that it was cut.
	maxLast = 6 * (64<<10 + 64)
	// maxPrompt holds a kick-off with its first entry, which is one argument of
	// a command line (128 KiB, execve(2)).
	maxPrompt = 6 * 128 << 10
	maxDetail = 6 * 4 << 10
	maxTasks  = 1000
)

// text is a key whose value is a string.
func text(key string, limit int, into func(*Event) *string) Field {
	return Field{key, func(r jsonReader, e *Event) (err error) {
		*into(e), _, err = r.text(limit)
		return err
	}}
}

// ErrNoPayload means that the input could not be a payload.
var ErrNoPayload = errors.New("no payload on stdin")

// Read reads one JSON object, whatever its size, with little memory. If it is cut
// off, or damaged in the middle, the fields before that count, provided that they
// say which event it is.
func (h Hooks) Read(from io.Reader) (*Event, error) {
	e := new(Event)
	r := newJSONReader(from)
	if _, err := r.token(); errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, ErrNoPayload
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPayload, err)
	}
	if err := r.in.UnreadByte(); err != nil {
		return nil, fmt.Errorf("cannot read the payload: %w", err)
	}
	_, err := r.object(func(key string) error {
		for _, f := range h.Fields {
			if f.Key == key {
				return f.read(r, e)
			}
		}
		return r.skip()
	})
	if e.Name == "" {
		return nil, fmt.Errorf("cannot read the payload: %w", errors.Join(err, errors.New("no hook_event_name")))
	}
	e.Cut = err != nil
	return e, nil
}

func readActive(r jsonReader, e *Event) (err error) {
	e.StopHookActive, err = r.truth()
	return err
}

func readTasks(r jsonReader, e *Event) error {
	e.Tasks = nil
	_, err := r.array(func() error {
		var t Task
		fields := map[string]*string{"type": &t.Kind, "status": &t.Status, "description": &t.Description}
		isTask, err := r.fields(fields)
		if isTask && err == nil && len(e.Tasks) < maxTasks {
			e.Tasks = append(e.Tasks, t)
		}
		return err
	})
	return err
}

func readTool(r jsonReader, e *Event) error {
	e.Tool = Tool{Name: e.Tool.Name}
	_, err := r.fields(map[string]*string{
		"command": &e.Tool.Command, "file_path": &e.Tool.Path, "url": &e.Tool.URL, "query": &e.Tool.Query,
	})
	return err
}

// fields reads an object and keeps only these fields.
func (r jsonReader) fields(wanted map[string]*string) (bool, error) {
	return r.object(func(key string) error {
		into := wanted[key]
		if into == nil {
			return r.skip()
		}
		var err error
		*into, _, err = r.text(maxDetail)
		return err
	})
}
