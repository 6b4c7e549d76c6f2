package client

import (
	"bytes"
	"encoding/json"
	"testing"
)

// A payload says what encoding/json reads in it.
func FuzzPayload(f *testing.F) {
	for _, s := range []string{
		wholePayload, ` { "prompt" : "a\\", "hook_event_name" : "UserPromptSubmit" , "tool_input":{"command":"ls","q":{}}, "agent_id":7} `,
		`{"hook_event_name":"Stop","session_id":"one","session_id":2}`, `{"\u0068ook_event_name":"x","background_tasks":"none"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var whole map[string]json.RawMessage
		if json.Unmarshal(data, &whole) != nil || whole == nil {
			return
		}
		text := func(key string) (s string) {
			_ = json.Unmarshal(whole[key], &s)
			return s
		}
		p, err := Claude.Hooks.Read(bytes.NewReader(data))
		if err != nil {
			if text("hook_event_name") != "" {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		for key, got := range map[string]string{
			"hook_event_name": p.Name, "session_id": p.SessionID, "prompt": p.Prompt, "agent_id": p.AgentID,
			"last_assistant_message": p.LastMessage,
		} {
			if want := text(key); got != want {
				t.Fatalf("%q, %s: %q, want %q", data, key, got, want)
			}
		}
		var tasks []map[string]any
		if json.Unmarshal(whole["background_tasks"], &tasks) == nil && len(p.Tasks) > len(tasks) || p.Cut {
			t.Fatalf("%q: %+v", data, p)
		}
	})
}

// A line of a transcript proves a hand-over only when it holds its text.
func FuzzTranscriptLine(f *testing.F) {
	f.Add([]byte(`{"type":"user","message":{"role":"user","content":"Stop hook feedback:\nthe text that was handed over"}}`))
	f.Add([]byte(`{"type":"user","message":{"content":[{"type":"text","text":"x"},7]}}`))
	f.Add([]byte(`{"type":"user","timestamp":"x"}`))
	const text = "the text that was handed over"
	f.Fuzz(func(t *testing.T, line []byte) {
		if !Claude.Transcript.HandedOver(line, text) {
			return
		}
		var record struct {
			Message struct{ Content any }
		}
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatalf("%q is no JSON and proves a hand-over", line)
		}
		content, err := encode(record.Message.Content)
		if err != nil || !bytes.Contains(content, []byte(text)) {
			t.Fatalf("%q proves a hand-over", line)
		}
	})
}
