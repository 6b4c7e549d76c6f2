// Package script is the model's part in a simulated session: rules that say
// what it does with a prompt. A script is one JSON object:
//
//	{
//	  "think": "50ms",
//	  "rules": [
//	    {"match": "flaky", "times": 1, "once-file": "tried",
//	     "steps": [{"fail": "server_error"}]},
//	    {"regexp": "^Review (.*)", "steps": [
//	      {"tool": "Bash", "command": "ls"},
//	      {"delay": "1s"},
//	      {"reply": "reviewed: {first}"}]}
//	  ]
//	}
//
// The first rule whose match (a substring) and regexp (Go syntax) fit the
// prompt answers it; without one the answer is "done: {first}". What the client
// and heartbeat write around a prompt to hand it over is no part of it, and a prompt
// that heartbeat hands over as the name of a file is what that file says, once the model
// has read it.
// {first} in a reply is the first line that is no heading, {prompt} all of it.
package script

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxScript bounds a script file.
const maxScript = 1 << 20

// Script is rules and the client's clocks; the zero value is the default
// script with the client's own clocks.
type Script struct {
	Rules []*Rule `json:"rules"`

	Think           Duration `json:"think"`            // before each answer; 0: 50 to 200 ms
	StartDelay      Duration `json:"start-delay"`      // before SessionStart
	TranscriptDelay Duration `json:"transcript-delay"` // of each record; 0: 20 ms
	IdleAfter       Duration `json:"idle-after"`       // idle_prompt; 0: 60 s
	AskAfter        Duration `json:"ask-after"`        // permission_prompt; 0: 6 s
	KillDelay       Duration `json:"kill-delay"`       // hooks, SIGTERM to SIGKILL; 0: 1.5 s
	IgnoreSignals   []string `json:"ignore-signals"`   // TERM, HUP, INT: a client that does not go

	ContextWindow int            `json:"context-window"` // of the model, in tokens; 0: 200,000
	Limits        map[string]any `json:"rate-limits"`    // what the status line is told of them
}

// Window is the model's context window, in tokens.
func (s *Script) Window() int { return cmp.Or(s.ContextWindow, 200_000) }

// A Rule answers requests that fit it.
type Rule struct {
	Match  string `json:"match"`
	Regexp string `json:"regexp"`
	Steps  []Step `json:"steps"`
	// Times is how often the rule answers; 0 means always. With OnceFile the
	// uses are counted over processes: each takes a file of that name
	// (NAME, NAME.2, …); without Times then 1.
	Times    int    `json:"times"`
	OnceFile string `json:"once-file"`

	re   *regexp.Regexp
	used int
}

// A Step is one thing the model or the client does; exactly one of the verbs
// is set.
type Step struct {
	Reply      *string  `json:"reply"`      // say it, and end the turn unless steps follow
	Empty      bool     `json:"empty"`      // say nothing at all
	Delay      Duration `json:"delay"`      // think that long
	Await      string   `json:"await"`      // think until this file is there; relative to the workspace
	Tool       string   `json:"tool"`       // call a tool; Bash runs Command
	Background string   `json:"background"` // Bash with run_in_background
	Subagent   *string  `json:"subagent"`   // a background agent that answers this after For
	Fail       string   `json:"fail"`       // the API fails with this kind
	Hang       bool     `json:"hang"`       // the API never answers
	Crash      bool     `json:"crash"`      // SIGKILL to the client itself
	Exit       *int     `json:"exit"`       // the client ends with this status
	Print      string   `json:"print"`      // bytes for the terminal

	Command     string         `json:"command"`     // of Bash
	Description string         `json:"description"` // of Bash and Background
	Input       map[string]any `json:"input"`       // of other tools
	Result      string         `json:"result"`      // of other tools
	Message     string         `json:"message"`     // of Fail: what the API says
	Details     string         `json:"details"`     // of Fail: error_details
	Resets      time.Time      `json:"resets"`      // of Fail: when the limit of a subscription ends
	For         Duration       `json:"for"`         // of Subagent
	Repeat      int            `json:"repeat"`      // of Print
}

// Duration is a time.Duration written as a string: "1.5s".
type Duration time.Duration

// UnmarshalText reads Go's duration syntax; negative ones are refused.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil && v < 0 {
		err = errors.New("it is negative")
	}
	*d = Duration(v)
	return err
}

// Or is d, or fallback when d is not set.
func (d Duration) Or(fallback time.Duration) time.Duration {
	if d > 0 {
		return time.Duration(d)
	}
	return fallback
}

// Load reads a script file; "" is the default script.
func Load(path string) (*Script, error) {
	if path == "" {
		return &Script{}, nil
	}
	st, err := os.Stat(path)
	if err == nil && st.Size() > maxScript {
		err = fmt.Errorf("it is larger than %d bytes", maxScript)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read script %q: %w", path, err)
	}
	s, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("cannot use script %q: %w", path, err)
	}
	return s, nil
}

// Parse reads a script; unknown keys are errors.
func Parse(data []byte) (*Script, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	s := &Script{}
	if err := dec.Decode(s); err != nil {
		return nil, err
	}
	for i, r := range s.Rules {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return s, nil
}

func (r *Rule) check() error {
	if r.Regexp != "" {
		re, err := regexp.Compile(r.Regexp)
		if err != nil {
			return err
		}
		r.re = re
	}
	if r.OnceFile != "" && r.Times == 0 {
		r.Times = 1
	}
	for i, s := range r.Steps {
		if n := s.verbs(); n != 1 {
			return fmt.Errorf("step %d says %d things to do, want one", i+1, n)
		}
	}
	return nil
}

// verbs counts what the step says to do.
func (s Step) verbs() (n int) {
	for _, set := range []bool{
		s.Reply != nil, s.Empty, s.Delay > 0, s.Await != "", s.Tool != "", s.Background != "", s.Subagent != nil,
		s.Fail != "", s.Hang, s.Crash, s.Exit != nil, s.Print != "",
	} {
		if set {
			n++
		}
	}
	return n
}

// A Model answers requests from a script. Safe for one process; once-files
// keep several apart.
type Model struct {
	script *Script
	mu     sync.Mutex
}

// NewModel is a model that follows s.
func NewModel(s *Script) *Model { return &Model{script: s} }

// Answer is the steps for a request, and whether a rule had them. It counts
// the rule as used.
func (m *Model) Answer(request string) ([]Step, error) {
	prompt := Prompt(request)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.script.Rules {
		if !r.fits(prompt) {
			continue
		}
		took, err := r.take()
		if err != nil {
			return nil, err
		}
		if took {
			return r.Steps, nil
		}
	}
	return nil, nil
}

// ThinkTime is how long the model thinks before an answer that does not say.
func (m *Model) ThinkTime() time.Duration {
	return m.script.Think.Or(50*time.Millisecond + rand.N(150*time.Millisecond))
}

func (r *Rule) fits(prompt string) bool {
	return strings.Contains(prompt, r.Match) && (r.re == nil || r.re.MatchString(prompt))
}

// take uses the rule up once, if it may still be used.
func (r *Rule) take() (bool, error) {
	if r.Times > 0 && r.used >= r.Times {
		return false, nil
	}
	if r.OnceFile == "" {
		r.used++
		return true, nil
	}
	for ; r.used < r.Times; r.used++ {
		name := r.OnceFile
		if r.used > 0 {
			name = fmt.Sprintf("%s.%d", name, r.used+1)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue // another process used it
		}
		if err != nil {
			return false, fmt.Errorf("cannot count a rule's use: %w", err)
		}
		r.used++
		return true, f.Close()
	}
	return false, nil
}

// DefaultReply is what the model says where no rule does.
const DefaultReply = "done: {first}"

// Fill puts a request's words into a reply.
func Fill(reply, request string) string {
	return strings.NewReplacer("{first}", First(request), "{prompt}", Prompt(request)).Replace(reply)
}

// frames stand around prompts: how the client hands a hook's words to the model, with the
// hook's command, and heartbeat's first line of a prompt that a session starts with.
var frames = regexp.MustCompile(`(?m)^Stop hook feedback:\n(?:\[[^\n]*?\]: )?|\ATask from the queue:\n\n`)

// inFile is how heartbeat says that a task is in a file.
var inFile = regexp.MustCompile(`It is in the file ("(?:[^"\\\n]|\\.)*"), which has`)

// TaskFile is the file that a request says its task is in, or "".
func TaskFile(request string) string {
	if m := inFile.FindStringSubmatch(request); m != nil {
		if path, err := strconv.Unquote(m[1]); err == nil {
			return path
		}
	}
	return ""
}

// Prompt is what a request asks for, without what stands around it.
func Prompt(request string) string { return frames.ReplaceAllString(request, "") }

// First is the first line of a request that says something: no heading that
// ends with a colon, and not the client's own words around a hook's feedback.
func First(request string) string {
	last := ""
	for line := range strings.Lines(Prompt(request)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if !strings.HasSuffix(line, ":") {
			return line
		}
		last = line
	}
	return last
}
