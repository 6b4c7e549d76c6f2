package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/fakeapi"
	"heartbeat/internal/simulate/script"
)

// turn is what the model does with requests whose newest text contains match.
// The same turns become rules of the fake API for the real client, and a
// script for the stand-in.
type turn struct {
	match string
	times int // at most; 0 always
	steps []script.Step
}

func say(text string) script.Step       { return script.Step{Reply: &text} }
func sayNothing() script.Step           { return script.Step{Empty: true} }
func think(d time.Duration) script.Step { return script.Step{Delay: script.Duration(d)} }
func await(file string) script.Step     { return script.Step{Await: file} }
func fail(kind string) script.Step      { return script.Step{Fail: kind} }
func background(cmd string) script.Step {
	return script.Step{Background: cmd, Description: "run a command"}
}
func hang() script.Step { return script.Step{Hang: true} }
func subagent(answer string, after time.Duration) script.Step {
	return script.Step{Subagent: &answer, For: script.Duration(after), Description: "a task"}
}

func bash(cmd string) script.Step {
	return script.Step{Tool: "Bash", Command: cmd, Description: "run a command"}
}

// apiFailures are what the API says for the client's kinds of StopFailure
// (measured in 2.1.329), each without a retry.
var apiFailures = map[string]fakeapi.Answer{
	"rate_limit":            {Status: 429, ErrorType: "rate_limit_error", Message: "slow down"},
	"server_error":          {Status: 529, ErrorType: "overloaded_error", Message: "Overloaded"},
	"authentication_failed": {Status: 401, ErrorType: "authentication_error", Message: "invalid x-api-key"},
	"billing_error":         {Status: 400, ErrorType: "invalid_request_error", Message: "Your credit balance is too low to access the Anthropic API."},
	"model_not_found":       {Status: 404, ErrorType: "not_found_error", Message: "model: claude-opus-5-5"},
	"unknown":               {Status: 400, ErrorType: "invalid_request_error", Message: "Output blocked by content filtering policy"},
	"unknown 408":           {Status: 408, ErrorType: "timeout_error", Message: "a proxy waits no longer"},
	"invalid_request":       {Status: 400, ErrorType: "invalid_request_error", Message: "prompt is too long: 300000 tokens > 200000 maximum"},
}

// Model sets what the model does for either client: before the client starts.
func (l *Lab) Model(turns ...turn) {
	l.t.Helper()
	l.API.Add(apiRules(turns)...)
	l.WriteJSON(l.modelScript(), simulateScript(turns))
}

// subagentTask is what a subagent is asked.
const subagentTask = "the task of the subagent"

// apiRules are the turns for the fake API.
func apiRules(turns []turn) []fakeapi.Rule {
	var rules []fakeapi.Rule
	for _, t := range turns {
		var answers []fakeapi.Answer
		var delay time.Duration
		var file string // that is awaited
		for _, s := range t.steps {
			if s.Delay > 0 {
				delay = time.Duration(s.Delay)
				continue
			}
			if s.Subagent != nil {
				rules = append(rules, fakeapi.Rule{
					Match: subagentTask, Answer: fakeapi.Answer{Text: *s.Subagent, Delay: time.Duration(s.For)},
				})
			}
			if s.Await != "" {
				file = s.Await
				continue
			}
			a := apiAnswer(s)
			a.Delay, delay = delay, 0
			a.Await, file = file, ""
			answers = append(answers, a)
		}
		rules = append(rules, fakeapi.Rule{Match: t.match, Times: t.times, Answer: answers[0], Then: answers[1:]})
	}
	return append(rules, fakeapi.Rule{Answer: fakeapi.Answer{Text: "ok"}})
}

func apiAnswer(s script.Step) fakeapi.Answer {
	switch {
	case s.Reply != nil:
		return fakeapi.Answer{Text: *s.Reply}
	case s.Empty:
		return fakeapi.Answer{Empty: true}
	case s.Tool == "Bash":
		return fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.Bash(s.Command)}}
	case s.Background != "":
		return fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.BackgroundBash(s.Background)}}
	case s.Subagent != nil:
		return fakeapi.Answer{Tools: []fakeapi.ToolUse{{Name: "Agent", Input: map[string]any{
			"description": s.Description, "prompt": subagentTask, "subagent_type": "general-purpose",
		}}}}
	case s.Hang:
		return fakeapi.Answer{Text: "half a text", Hang: fakeapi.HangMidText}
	case s.Fail != "":
		a := apiFailures[s.Fail]
		a.Header = http.Header{"X-Should-Retry": {"false"}}
		if !s.Resets.IsZero() {
			const unified = "Anthropic-Ratelimit-Unified-"
			at := strconv.FormatInt(s.Resets.Unix(), 10)
			for name, value := range map[string]string{
				"Status": "rejected", "Reset": at, "Representative-Claim": "five_hour", "5h-Status": "rejected", "5h-Utilization": "1", "5h-Reset": at,
			} {
				a.Header.Set(unified+name, value)
			}
		}
		return a
	}
	panic("the fake API has no answer for this step")
}

// simulateScript are the turns for the stand-in.
func simulateScript(turns []turn) any {
	rules := []map[string]any{}
	for _, t := range append(turns[:len(turns):len(turns)], turn{steps: []script.Step{say("ok")}}) {
		steps := []map[string]any{}
		for _, s := range t.steps {
			step := map[string]any{}
			switch {
			case s.Reply != nil:
				step["reply"] = *s.Reply
			case s.Empty:
				step["empty"] = true
			case s.Delay > 0:
				step["delay"] = time.Duration(s.Delay).String()
			case s.Await != "":
				step["await"] = s.Await
			case s.Tool != "":
				step["tool"], step["command"], step["description"] = s.Tool, s.Command, s.Description
			case s.Background != "":
				step["background"], step["description"] = s.Background, s.Description
			case s.Subagent != nil:
				step["subagent"], step["for"], step["description"] = *s.Subagent, time.Duration(s.For).String(), s.Description
			case s.Hang:
				step["hang"] = true
			case s.Fail != "":
				kind, status, odd := strings.Cut(s.Fail, " ")
				step["fail"], step["message"] = kind, apiFailures[s.Fail].Message
				if !s.Resets.IsZero() {
					step["resets"] = s.Resets
				}
				if odd {
					step["message"] = "API Error: " + status + " " + apiFailures[s.Fail].Message
				}
			}
			steps = append(steps, step)
		}
		rules = append(rules, map[string]any{"match": t.match, "times": t.times, "steps": steps})
	}
	return map[string]any{"think": "10ms", "rules": rules}
}

func (l *Lab) modelLog() string    { return filepath.Join(l.Dir, "model.jsonl") }
func (l *Lab) modelScript() string { return filepath.Join(l.Dir, "model.json") }

// modelCall is one request to the model: what was new in it.
type modelCall struct {
	at     time.Time
	user   []string // with the user's authority
	system []string // with the system's
}

// requests counts the requests so far.
func (l *Lab) requests() int {
	if l.client.real {
		return len(l.API.Requests())
	}
	return len(l.simulatedCalls())
}

// modelCalls returns the requests so far. What the client itself tells the
// model (environment, instructions) is left out; what hooks, tasks and people
// say is in.
func (l *Lab) modelCalls() []modelCall {
	if !l.client.real {
		return l.simulatedCalls()
	}
	var out []modelCall
	for _, r := range l.API.Requests() {
		c := modelCall{at: r.At}
		for _, text := range r.New() {
			switch {
			case text.Role != "user":
				c.system = append(c.system, fromHooks(text.Text)...)
			case text.Role == "user" && said(text.Text) != "":
				c.user = append(c.user, said(text.Text))
			}
		}
		out = append(out, c)
	}
	return out
}

var (
	reminder     = regexp.MustCompile(`(?s)^\s*<system-reminder>\s*(.*?)\s*</system-reminder>\s*$`)
	hookWords    = regexp.MustCompile(`^(SessionStart|UserPromptSubmit|Stop)(:\w+)? hook `)
	notification = regexp.MustCompile(`(?s)<task-notification>.*</task-notification>`)
)

// fromHooks returns the paragraphs of a system text that hooks caused, as one
// text. In the first request they stand among the client's own instructions.
func fromHooks(text string) []string {
	var out []string
	for p := range strings.SplitSeq(text, "\n\n") {
		if hookWords.MatchString(p) {
			out = append(out, p)
		}
	}
	if out == nil {
		return nil
	}
	return []string{strings.Join(out, "\n\n")}
}

// said takes the client's wrapping off a user text; "" when it is the
// client's own.
func said(text string) string {
	in := reminder.FindStringSubmatch(text)
	switch {
	case in == nil:
		return text
	case notification.MatchString(in[1]):
		return notification.FindString(in[1])
	case hookWords.MatchString(in[1]):
		return in[1]
	}
	return ""
}

func (l *Lab) simulatedCalls() []modelCall {
	data, err := os.ReadFile(l.modelLog())
	if err != nil {
		return nil // no request yet
	}
	var out []modelCall
	for line := range bytes.Lines(data) {
		var r struct {
			At              time.Time
			Prompts, System []string
		}
		if err := json.Unmarshal(line, &r); err != nil {
			l.t.Fatalf("cannot read the stand-in's log: %v", err)
		}
		c := modelCall{at: r.At, system: r.System}
		for _, p := range r.Prompts {
			if said(p) != "" {
				c.user = append(c.user, said(p))
			}
		}
		out = append(out, c)
	}
	return out
}
