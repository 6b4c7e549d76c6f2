package probe

import (
	"slices"

	"heartbeat/hook/client"
)

// Promise names something that a client does and that heartbeat relies on. The names
// do not change between versions.
type Promise string

// The promises, in the order in which people are told of them.
const (
	Starts          Promise = "starts"
	HooksRun        Promise = "hooks-run"
	HookFields      Promise = "hook-fields"
	HookEnvironment Promise = "hook-environment"
	KickOff         Promise = "kick-off"
	HandOver        Promise = "hand-over"
	Continued       Promise = "continued"
	BlockCap        Promise = "block-cap"
	Transcript      Promise = "transcript"
	Bill            Promise = "bill"
	StatusLine      Promise = "status-line"
	SettingsFlag    Promise = "settings-flag"
	Refuses         Promise = "refuses-tools"
	Beside          Promise = "tools-beside"
	Answer          Promise = "permission-answer"
	Background      Promise = "background"
	Failures        Promise = "stop-failure"
	Resume          Promise = "resume"
	Signals         Promise = "signals"
)

// promises are all of them: what the client does, and what follows in a fleet where it
// does not.
var promises = []about{
	{Starts, "it starts in a terminal with the flags of a session", "no session begins"},
	{HooksRun, "it calls our hooks at the start, at a prompt, before a tool, at the end of a turn and at its own end", "the model works, and nothing hands it prompts or notices that it is done"},
	{HookFields, "hooks are told the session, the prompt and the transcript, in the fields that we read", "our hooks cannot tell which prompt was done"},
	{HookEnvironment, "hooks have the session's environment, and CLAUDE_PID is the client", "our hooks take the session for somebody else's, and do nothing"},
	{KickOff, "the prompt on its command line reaches the model once, unchanged", "the first prompt of a session is lost, doubled or changed"},
	{HandOver, "what a Stop hook prints with exit status 2 reaches the model once, to the byte", "prompts are lost, doubled or changed"},
	{Continued, "the Stop after a hand-over says so: stop_hook_active, and the same prompt_id", "a prompt that arrived looks as if it had not, and is handed over again"},
	{BlockCap, "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0 lets a Stop hook continue without end", "a session ends after a few prompts, and the next ones wait for another session"},
	{Transcript, "its transcript shows within 2 s what has arrived", "after a crash nobody knows whether a prompt had arrived"},
	{Bill, "its transcript says what a call of the model has cost", "usage and budgets count too little"},
	{StatusLine, "it runs the status line of --settings, also while a Stop hook waits, and tells it cost and context", "limits, costs and max-context are not seen"},
	{SettingsFlag, "hooks and rules of --settings count, and with --setting-sources= the directory's do not", "with settings: flag or only, hooks do not run or a repository's own rules count"},
	{Refuses, "in dontAsk mode it refuses a tool that is not allowed, and the turn goes on", "a session waits for a person, or does what nobody has allowed"},
	{Beside, "rules of --settings take away its tools that act beside the prompt", "a session does what no prompt asks for: it waits for a person to approve a plan, gives itself prompts, or writes into your other sessions"},
	{Answer, "a PermissionRequest hook's no is told to the model, and the turn goes on", "a session waits for a person"},
	{Background, "a Stop names tasks in the background, and the end of one begins a turn", "work in the background is cut off, or its prompt counts as done too early"},
	{Failures, "a request that the service refuses ends the turn as StopFailure, with its kind", "a limit is not seen as one, and prompts use up their attempts"},
	{Resume, "--resume goes on with the conversation, under the same id", "an interrupted prompt starts over"},
	{Signals, "SIGTERM ends it when it is idle, while a Stop hook waits, and while a tool runs", "sessions have to be killed, and what they were doing is cut off"},
}

type about struct {
	name            Promise
	does, otherwise string
}

// Does says what the client does where it keeps the promise.
func (p Promise) Does() string { return p.about().does }

// Otherwise says what follows in a fleet where it does not.
func (p Promise) Otherwise() string { return p.about().otherwise }

func (p Promise) about() about {
	if i := slices.IndexFunc(promises, func(a about) bool { return a.name == p }); i >= 0 {
		return promises[i]
	}
	return about{} // of a later version
}

// Promises returns all of them.
func Promises() []Promise {
	all := make([]Promise, 0, len(promises))
	for _, p := range promises {
		all = append(all, p.name)
	}
	return all
}

// Edition changes with the promises and with how they are tried: what an earlier edition
// has found says nothing about this one.
func Edition() string { return client.Claude.Versions.Measured + " 4" }
