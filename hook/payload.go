package hook

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"heartbeat/hook/foreign"
)

// The events that we act on, as 2.1.329 names them. Any other is only counted.
const (
	onSessionStart      = "SessionStart"
	onUserPromptSubmit  = "UserPromptSubmit"
	onPreToolUse        = "PreToolUse"
	onStop              = "Stop"
	onStopFailure       = "StopFailure"
	onNotification      = "Notification"
	onPermissionRequest = "PermissionRequest"
	onSessionEnd        = "SessionEnd"
)

// payload is what the client writes to a hook's stdin, as far as we use it.
// What is not there, or of another type, is zero.
type payload struct {
	Event          string // hook_event_name
	SessionID      string
	Transcript     string // transcript_path
	PromptID       string
	PermissionMode string
	// AgentID stands in events of subagents only. (agent_type is no sign of
	// one: a main agent started with --agent has it too.)
	AgentID string

	Source           string // SessionStart
	Prompt           string // UserPromptSubmit
	StopHookActive   bool   // Stop
	LastMessage      string // last_assistant_message
	Tasks            []task // Stop: background_tasks
	Error            string // StopFailure
	NotificationType string // Notification
	Message          string // Notification
	ToolName         string
	Tool             toolInput
	Reason           string // SessionEnd

	// Cut is true when the payload was not whole: fields may be missing.
	Cut bool
}

// task is one of a Stop's background_tasks.
type task struct{ Type, Status, Description string }

// toolInput is what a person recognises a tool's call by.
type toolInput struct{ Command, Path, URL, Query string }

// The largest JSON of a field that is kept, in bytes; what is behind that is
// cut off. A character takes six at most for each byte of its own.
const (
	maxField = 64 << 10
	maxLast  = 6 * (MaxReply + 64) // more than the outbox keeps, so that it says that it was cut
	// maxPrompt holds a kick-off with its first entry, which is one argument of
	// a command line (128 KiB, execve(2)).
	maxPrompt = 6 * 128 << 10
	maxDetail = 6 * 4 << 10
	maxTasks  = 1000
)

// Why there is no payload: none at all, or none in time.
var (
	errNoPayload = errors.New("no payload on stdin")
	errLate      = errors.New("it did not come in time")
)

// readPayload reads the client's JSON, waiting at most patience for it to be
// complete. A terminal or an empty stdin gives errNoPayload.
func readPayload(stdin io.Reader, patience time.Duration) (*payload, error) {
	if f, ok := stdin.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice != 0 {
			return nil, errNoPayload
		}
	}
	if stdin == nil {
		return nil, errNoPayload
	}
	type result struct {
		p   *payload
		err error
	}
	done := make(chan result, 1)
	go func() {
		p, err := parsePayload(stdin)
		done <- result{p, err}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.p, r.err
	case <-timer.C:
		return nil, fmt.Errorf("%w within %s: %w", errNoPayload, patience, errLate)
	}
}

// parsePayload reads one JSON object, whatever its size, with little memory.
// Of one that is cut off, or spoiled in the middle, the fields before count
// where they say which event it is.
func parsePayload(from io.Reader) (*payload, error) {
	p := new(payload)
	r := newJSONReader(from)
	if _, err := r.token(); errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errNoPayload
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoPayload, err)
	}
	if err := r.in.UnreadByte(); err != nil {
		return nil, fmt.Errorf("cannot read the payload: %w", err)
	}
	_, err := r.object(func(key string) error { return p.read(r, key) })
	if p.Event == "" {
		return nil, fmt.Errorf("cannot read the payload: %w", errors.Join(err, errors.New("no hook_event_name")))
	}
	p.Cut = err != nil
	return p, nil
}

// read reads one field.
func (p *payload) read(r jsonReader, key string) error {
	text := func(into *string, limit int) error {
		var err error
		*into, _, err = r.text(limit)
		return err
	}
	switch key {
	case "hook_event_name":
		return text(&p.Event, maxField)
	case "session_id":
		return text(&p.SessionID, maxField)
	case "transcript_path":
		return text(&p.Transcript, maxField)
	case "prompt_id":
		return text(&p.PromptID, maxField)
	case "permission_mode":
		return text(&p.PermissionMode, maxField)
	case "agent_id":
		return text(&p.AgentID, maxField)
	case "source":
		return text(&p.Source, maxField)
	case "prompt":
		return text(&p.Prompt, maxPrompt)
	case "stop_hook_active":
		var err error
		p.StopHookActive, err = r.truth()
		return err
	case "last_assistant_message":
		return text(&p.LastMessage, maxLast)
	case "background_tasks":
		return p.readTasks(r)
	case "error":
		return text(&p.Error, maxField)
	case "notification_type":
		return text(&p.NotificationType, maxField)
	case "message":
		return text(&p.Message, maxField)
	case "tool_name":
		return text(&p.ToolName, maxField)
	case "tool_input":
		return p.readTool(r)
	case "reason":
		return text(&p.Reason, maxField)
	}
	return r.skip()
}

func (p *payload) readTasks(r jsonReader) error {
	p.Tasks = nil
	_, err := r.array(func() error {
		var t task
		fields := map[string]*string{"type": &t.Type, "status": &t.Status, "description": &t.Description}
		isTask, err := r.fields(fields)
		if isTask && err == nil && len(p.Tasks) < maxTasks {
			p.Tasks = append(p.Tasks, t)
		}
		return err
	})
	return err
}

func (p *payload) readTool(r jsonReader) error {
	p.Tool = toolInput{}
	_, err := r.fields(map[string]*string{
		"command": &p.Tool.Command, "file_path": &p.Tool.Path, "url": &p.Tool.URL, "query": &p.Tool.Query,
	})
	return err
}

// fields reads an object of which only these are kept.
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

// running returns the background tasks that have not ended, as
// "type: description".
func (p *payload) running() []string {
	var names []string
	for _, t := range p.Tasks {
		switch t.Status {
		case "completed", "failed", "killed", "stopped", "cancelled", "canceled":
			continue
		}
		names = append(names, shorten(t.Type+": "+t.Description, 200))
	}
	return names
}

// shorten makes s a line of at most limit bytes.
func shorten(s string, limit int) string {
	s = foreign.Line(s)
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
