package client

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
)

// Stray is a prompt that the client has given itself, or that others have given it: neither
// a person at its terminal, nor who started it, nor the end of its own work in the background.
type Stray struct {
	By     Giver
	From   string // what the giver is called, "" if it has no name
	Prompt string
}

// Giver says who has given a client a prompt. The list is open: Others go by the client's own
// word for them.
type Giver string

// The givers.
const (
	Timetable    Giver = "timetable" // the client's own, or a directory's (Settings.Timed)
	OtherSession Giver = "session"   // another one of the user's
	Monitor      Giver = "monitor"   // a command that the session has begun, by a line of its
)

// stray reads a prompt that was typed by nobody: {"type":"user","promptSource":"system",…} with
// an origin, or scheduledTaskId (2.1.270), or turnOrigin as well (2.1.329, .332). What Stop
// hooks say has no promptSource.
func stray(line []byte) *Stray {
	if !bytes.Contains(line, []byte(`"promptSource":"system"`)) {
		return nil
	}
	var r struct {
		Type       string `json:"type"`
		Sidechain  bool   `json:"isSidechain"`
		Task       string `json:"scheduledTaskId"`
		TurnOrigin string `json:"turnOrigin"`
		Origin     struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
			Body string `json:"body"`
		} `json:"origin"`
		Message struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &r) != nil || r.Type != "user" || r.Sidechain {
		return nil
	}
	s := &Stray{From: r.Origin.Name, Prompt: cmp.Or(r.Origin.Body, strings.Join(texts(r.Message.Content), "\n"))}
	switch kind := r.Origin.Kind; {
	case r.Task != "" || r.TurnOrigin == "scheduled":
		s.By = Timetable
	case kind == "peer" || r.TurnOrigin == "peer":
		s.By = OtherSession
	case kind == "task-notification" && strings.Contains(s.Prompt, "<summary>Monitor "):
		s.By = Monitor
	case kind == "" || kind == "human" || kind == "task-notification" || kind == "auto-continuation": // of the turn itself
		return nil
	default:
		s.By = Giver(kind)
	}
	return s
}
