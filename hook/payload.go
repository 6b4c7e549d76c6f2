package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// The events that we act on (claude-code.md 1). Any other is only counted.
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
type payload struct {
	Event          string `json:"hook_event_name"`
	SessionID      string `json:"session_id"`
	Transcript     string `json:"transcript_path"`
	PromptID       string `json:"prompt_id"`
	PermissionMode string `json:"permission_mode"`
	// AgentID stands in events of subagents only. (agent_type is no sign of
	// one: a main agent started with --agent has it too.)
	AgentID string `json:"agent_id"`

	Source           string          `json:"source"`           // SessionStart
	Prompt           string          `json:"prompt"`           // UserPromptSubmit
	StopHookActive   bool            `json:"stop_hook_active"` // Stop
	LastMessage      string          `json:"last_assistant_message"`
	Tasks            []task          `json:"background_tasks"`  // Stop
	Error            string          `json:"error"`             // StopFailure
	NotificationType string          `json:"notification_type"` // Notification
	Message          string          `json:"message"`           // Notification
	ToolName         string          `json:"tool_name"`
	ToolInput        json.RawMessage `json:"tool_input"`
	Reason           string          `json:"reason"` // SessionEnd
}

// task is one of a Stop's background_tasks.
type task struct {
	Type        string `json:"type"`
	Status      string `json:"status"`
	Description string `json:"description"`
}

// maxPayload bounds what is read from stdin. A tool's input can be a whole
// file.
const maxPayload = 64 << 20

var errNoPayload = errors.New("no payload on stdin")

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
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(stdin, maxPayload))
		done <- result{data, err}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r := <-done:
		if len(bytes.TrimSpace(r.data)) == 0 {
			return nil, errors.Join(errNoPayload, r.err)
		}
		return parsePayload(r.data)
	case <-timer.C:
		return nil, fmt.Errorf("%w within %s", errNoPayload, patience)
	}
}

func parsePayload(data []byte) (*payload, error) {
	p := new(payload)
	err := json.Unmarshal(data, p)
	if err == nil && p.Event != "" {
		return p, nil
	}
	// What was cut off or has a field of another type than expected still
	// says which event it is.
	if p = salvage(data); p.Event != "" {
		return p, nil
	}
	return nil, fmt.Errorf("cannot read the payload: %w", errors.Join(err, errors.New("no hook_event_name")))
}

// salvage collects the top-level fields up to the first one that cannot be read.
func salvage(data []byte) *payload {
	p := new(payload)
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return p
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return p
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return p
		}
		name, _ := key.(string)
		field, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err == nil {
			// A field of the wrong type is skipped, as if it was not there.
			_ = json.Unmarshal(field, p)
		}
	}
	return p
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
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
