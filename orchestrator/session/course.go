package session

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
	"heartbeat/hook/handover"
)

// readEvery is how often the transcript is read at most.
const readEvery = 200 * time.Millisecond

// Tool is a tool that runs in a session's turn.
type Tool struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
}

// course is what the transcript tells about the session's turns, read line by line as
// it grows.
type course struct {
	handover.Tape
	readAt   time.Time
	answered bool            // by the model
	refused  *client.Refusal // the last request, if the API has refused it for good
	running  []running       // the tools, the one that was called first
	ended    time.Time       // when the last one ended
	denied   []Denied        // each rule once
	strays   []Stray         // the newest, see keptStrays
}

// Denied are calls of tools that were refused because no rule allows them. Rule is
// the one that would.
type Denied struct {
	Rule  string `json:"rule"`
	Times int    `json:"times"`
}

// StillDenied leaves out what one of the rules allows by now.
func StillDenied(all []Denied, allow []string) []Denied {
	return slices.DeleteFunc(slices.Clone(all), func(d Denied) bool { return slices.Contains(allow, d.Rule) })
}

// DeniedText says what was refused, as "3 tool calls were refused: Bash(git *) twice".
func DeniedText(all []Denied) string {
	n := 0
	var rules []string
	for _, d := range all {
		n += d.Times
		rule := d.Rule
		if d.Times > 1 {
			rule += fmt.Sprintf(" %d times", d.Times)
		}
		rules = append(rules, rule)
	}
	text := strconv.Itoa(n) + " tool calls were refused: "
	if n == 1 {
		text = "1 tool call was refused: "
	}
	return text + strings.Join(rules, ", ")
}

// mostDenied bounds how many rules are remembered.
const mostDenied = 10

func (c *course) deny(rule string) {
	if i := slices.IndexFunc(c.denied, func(d Denied) bool { return d.Rule == rule }); i >= 0 {
		c.denied = slices.Clone(c.denied) // a report may have it
		c.denied[i].Times++
	} else if len(c.denied) < mostDenied {
		c.denied = append(slices.Clone(c.denied), Denied{rule, 1})
	}
}

type running struct {
	id, rule string
	Tool
}

// mostRunning limits how many running tools are remembered: an agent can write into
// its transcript.
const mostRunning = 100

// read reads what is new. Another conversation (/clear) is read from its beginning.
// Outside a turn no tool runs: an interrupted one may never get a result.
func (c *course) read(r *hook.Record, now time.Time) {
	if r.Transcript == "" || now.Sub(c.readAt) < readEvery {
		return
	}
	c.readAt = now
	if filepath.Base(r.Transcript) != filepath.Base(c.Path) {
		c.Tape, c.running = handover.Tape{Path: r.Transcript}, nil
	}
	c.Read(func(line []byte) { c.take(line, now) })
	if r.Phase != hook.Turn && r.Phase != hook.Settling {
		c.running = nil
	}
}

func (c *course) take(line []byte, now time.Time) {
	known := client.Claude.Transcript
	if r := known.Refused(line); r != nil {
		c.refused = r
		return
	}
	if s := known.Stray(line); s != nil {
		c.stray(s, now)
	}
	if is, _, _ := known.Answered(line); is {
		c.answered, c.refused = true, nil
	}
	begun, ended := known.Calls(line)
	for _, call := range begun {
		if len(c.running) < mostRunning {
			c.running = append(c.running, running{call.ID, foreign.Short(call.Rule, maxName), Tool{foreign.Short(call.Name, maxName), now}})
		}
	}
	for _, id := range known.Denied(line) {
		if i := slices.IndexFunc(c.running, func(r running) bool { return r.id == id }); i >= 0 {
			c.deny(c.running[i].rule)
		}
	}
	for _, id := range ended {
		before := len(c.running)
		if c.running = slices.DeleteFunc(c.running, func(r running) bool { return r.id == id }); len(c.running) < before {
			c.ended = now
		}
	}
}

// maxName limits the length of a tool's name.
const maxName = 100

// tool returns the tool that has run longest, or nil.
func (c *course) tool() *Tool {
	if len(c.running) == 0 {
		return nil
	}
	return &c.running[0].Tool
}
