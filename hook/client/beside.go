package client

import "slices"

// Beside is a tool with which a session acts beside its prompt: it needs no rule in
// dontAsk, and what it begins is no prompt of the queue, or outlives the one that is.
// Agent and Skill need none either: what they do is part of the turn.
type Beside struct {
	// Tool is its name, Former one that a rule may still use for it, or "".
	Tool, Former string
	// Does says what a session does with it.
	Does string
	// Input is what it can be called with, to try it.
	Input map[string]any
	// Timer is true if the client's own timetable calls the model (Variables.Untimed).
	Timer bool
}

// beside are those of Claude Code 2.1.270 to 2.1.332. Of ScheduleWakeup the client says
// that it calls the model again, and in a session that ends it does not.
var beside = []Beside{
	{Tool: "EnterPlanMode", Does: "forbids itself to change files until a person approves a plan"},
	{Tool: "EnterWorktree", Does: "goes on in another copy of the repository, with its later prompts too", Input: map[string]any{"name": "other"}},
	{Tool: "ExitWorktree", Does: "removes such a copy", Input: map[string]any{"action": "remove"}},
	{
		Tool: "ScheduleWakeup", Does: "has the client call it again later", Timer: true,
		Input: map[string]any{"delaySeconds": 60, "reason": "to see", "prompt": "do it again"},
	},
	{
		Tool: "CronCreate", Does: "has the client give it prompts by a timetable", Timer: true,
		Input: map[string]any{"cron": "*/5 * * * *", "prompt": "do it again", "recurring": true},
	},
	{Tool: "CronDelete", Does: "changes that timetable", Timer: true, Input: map[string]any{"id": "none"}},
	{Tool: "CronList", Does: "reads that timetable", Timer: true},
	{
		Tool: "SendMessage", Does: "puts text into other sessions of this user, and starts turns there",
		Input: map[string]any{"to": "nobody", "summary": "a greeting", "message": "do it"},
	},
	{Tool: "ListAgents", Former: "ListPeers", Does: "finds other sessions of this user"},
	{
		Tool: "Monitor", Does: "runs a command that starts turns as long as it lives",
		Input: map[string]any{"command": "echo x", "description": "to see", "timeout_ms": 1000, "persistent": false},
	},
}

// Shut returns what a session is given that closes its tools beside the prompt, but for
// those that its allow rules name: deny rules, and variables as NAME=VALUE.
func (c Client) Shut(allow []string) (deny, env []string) {
	timers := false
	for _, b := range c.Beside {
		if b.named(allow) {
			timers = timers || b.Timer
			continue
		}
		deny = append(deny, b.Tool)
	}
	if !timers && c.Variables.Untimed != "" {
		env = []string{c.Variables.Untimed}
	}
	return deny, env
}

// HasTimetable reports whether a session with these allow rules has the client's own timetable.
func (c Client) HasTimetable(allow []string) bool {
	_, env := c.Shut(allow)
	return len(env) == 0
}

// named reports whether one of the rules is about the tool.
func (b Beside) named(rules []string) bool {
	return slices.ContainsFunc(rules, func(text string) bool {
		r, ok := parseRule(text)
		return ok && (r.tool == b.Tool || b.Former != "" && r.tool == b.Former)
	})
}
