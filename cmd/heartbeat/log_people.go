package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"

	"heartbeat/hook/foreign"
)

// peopleFormat is the log of a run whose narrator tells what is done and what is wrong.
const peopleFormat = "people"

// narrated begin the records that such a log leaves out: the narrator, or what is
// printed at the end, has them in other words.
var narrated = []string{
	"agent ", "trigger fired", "trigger skipped", "trigger waits", "trigger failed", "entry done", "session ended", "an entry is proven",
	"heartbeat runs", "heartbeat stopped", "this waits for a person", "more waits for a person", "loading the configuration again",
	"an agent's directory is lost", "an agent's directory was found", "a queue is lost", "an agent's work does not move", "an address is not served",
	"recovered an interrupted entry", "an interrupted prompt is kept", "an entry is not proven", "an entry is given up: it could not be proven", "a webhook refuses requests",
	"the client failed the probe", "a check cannot be run", "approval ", "queues are checked every second instead",
}

// sentence is a record in words: what, of whom, why, and below it what to do. It is
// nothing for one that the narrator tells.
func (h *personHandler) sentence(r slog.Record, attrs []slog.Attr) []byte {
	if slices.ContainsFunc(narrated, func(text string) bool { return strings.HasPrefix(r.Message, text) }) {
		return nil
	}
	mark := " "
	switch {
	case r.Level >= slog.LevelError:
		mark = h.red + "!" + h.reset
	case r.Level >= slog.LevelWarn:
		mark = h.yellow + "!" + h.reset
	}
	what, who, why, below := r.Message, "", "", bytes.Buffer{}
	var rest []string
	for _, a := range attrs {
		text := a.Value.Resolve().String()
		switch {
		case text == "":
		case strings.Contains(text, "\n"):
			writeAttr(nil, &below, a)
		case a.Key == "agent":
			who = text + ": "
		case a.Key == "client" && strings.HasPrefix(what, "the client "):
			name, _, _ := strings.Cut(text, " (/") // its file
			what = path.Base(name) + strings.TrimPrefix(what, "the client")
		case a.Key == "address" && what == "an address is served":
			what = text
		case a.Key == "serves":
			what += " serves " + strings.Trim(text, "[]")
		case a.Key == "err" || a.Key == "why" || a.Key == "how":
			why += ": " + text
		case a.Key == "do" || a.Key == "hint" || a.Key == "then":
			fmt.Fprintf(&below, "    %-4s  %s\n", a.Key, foreign.Line(text))
		default:
			rest = append(rest, a.Key+" "+text)
		}
	}
	if len(rest) > 0 {
		why += " (" + strings.Join(rest, ", ") + ")"
	}
	line := h.dim + r.Time.Format("15:04:05") + h.reset + " " + mark + " " + foreign.Line(who+what+why) + "\n"
	return append([]byte(line), below.Bytes()...)
}
