package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/session/sessiontest"
)

// form is how the hook is installed.
type form string

// The forms.
const (
	wiredJSON   form = "wired json"   // heartbeat-rs's drop-in
	wiredStderr form = "wired stderr" // the same with --deliver stderr
	wiredBare   form = "wired bare"   // without a payload, as heartbeat-rs was called
	session     form = "session"      // as `run` launches it
	checked     form = "checked"      // the same, and each entry has to pass a check
)

// ours reports whether `run` has launched the client.
func (f form) ours() bool { return f == session || f == checked }

// client is a model of one client: what it will report next, and which turn
// it is in.
type client struct {
	transcript string
	session    int      // number; 0: none yet
	prompt     int      // number of the prompt_id
	active     bool     // stop_hook_active
	pending    []string // events to come
	kickoff    string   // the prompt argument it was started with, not yet submitted
	carried    string   // the entry's text that went with it
	working    string   // the prompt that it works on
}

// launch starts a client, as `run` does or as a person does in a hand-wired
// folder. The first entry goes with every other session's kick-off.
func (l *lab) launch() {
	l.t.Helper()
	transcript := l.transcript
	l.client = client{transcript: transcript, session: l.session + 1, prompt: l.prompt + 1}
	if !l.form.ours() {
		l.transcribe("user", "What a person has typed.") // a client that stops has a transcript: without one, drop drops what may have arrived
		l.pending = []string{"Stop"}
		return
	}
	if l.release == nil {
		l.lock()
	}
	if err := l.shim().Begin(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	l.kickoff = "Read CLAUDE.md"
	if l.session%2 == 1 || l.form == checked {
		text, kickoff, err := l.shim().CarryFirst(l.t.Context())
		if err != nil {
			l.fault("kick-off: %v", err)
		}
		if text != "" {
			l.carried, l.kickoff = text, kickoff
		}
	}
	l.pending = []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"}
}

// shim is what starts the client of a session.
func (l *lab) shim() sessiontest.Shim {
	return sessiontest.Shim{
		Agent: agent, Session: l.name(), Token: l.token(), Home: l.home, Inbox: l.inbox, Transcript: l.transcript,
		Checked: l.form == checked, CheckTimeout: testbed.Patience,
	}
}

// answer is what the model says at the end of a turn.
func (l *lab) answer() string { return "done: " + l.working }

func (l *lab) name() string  { return "S" + strconv.Itoa(l.session) }
func (l *lab) token() string { return "token-" + strconv.Itoa(l.session) }

// wake is a turn that something else began in the same session.
func (l *lab) wake() {
	l.prompt++
	l.active, l.working = false, ""
	l.pending = []string{"Stop"}
	if l.form.ours() {
		l.kickoff, l.carried = "A background task ended.", ""
		l.pending = []string{"UserPromptSubmit", "Stop"}
	}
}

// command is the call of a hook.
func (l *lab) command(event string) stepper.Program {
	p := map[string]any{
		"session_id": l.name(), "transcript_path": l.transcript, "cwd": "/", "hook_event_name": event,
		"prompt_id": "P" + strconv.Itoa(l.prompt), "permission_mode": "dontAsk",
	}
	maps.Copy(p, map[string]map[string]any{
		"SessionStart":     {"source": "startup"},
		"UserPromptSubmit": {"prompt": l.kickoff},
		"PreToolUse":       {"tool_name": "Bash", "tool_input": map[string]any{"command": "true"}},
		"Stop":             {"stop_hook_active": l.active, "last_assistant_message": l.answer()},
	}[event])
	payload, err := json.Marshal(p)
	if err != nil {
		l.t.Fatal(err)
	}
	c := stepper.Program{Path: program(l.t, "heartbeat-stop"), Dir: l.home, Stdin: string(payload)}
	if l.form.ours() {
		c.Path = turn(l.t)
	}
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "CLAUDE_PID=" + strconv.Itoa(os.Getpid())}
	switch l.form {
	case wiredBare:
		c.Args, c.Stdin = []string{"--inbox", l.inbox}, ""
	case wiredJSON:
		c.Args = []string{"--inbox", l.inbox}
	case wiredStderr:
		c.Args = []string{"--inbox", l.inbox, "--deliver", "stderr"}
	default:
		c.Env = append(c.Env, l.shim().Env()...)
	}
	return c
}

// run runs a program, killed before its n-th call when n > 0.
func (l *lab) run(p stepper.Program, n int) stepper.Outcome {
	l.t.Helper()
	var o stepper.Outcome
	var err error
	after := time.Duration(0)
	if l.slay != nil {
		after = l.slay()
	}
	switch {
	case n > 0:
		o, err = stepper.Run(p, n)
	case after > 0:
		o = slain(l.t, p, after)
	default:
		began := time.Now()
		o = stepper.Plain(l.t, p)
		l.took = (7*l.took + time.Since(began)) / 8
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.lastKilled = o.Killed
	return asHeard(o)
}

// asHeard is what a client hears of a hook that it calls by a generated entry.
func asHeard(o stepper.Outcome) stepper.Outcome {
	if o.Status == ask.StatusPrompt {
		o.Status = 2
	}
	return o
}

// step is the client's next event, whose hook is killed before its n-th call
// when n > 0. survives says whether the client itself outlives that kill.
func (l *lab) step(n int, survives bool) stepper.Outcome {
	l.t.Helper()
	event := l.pending[0]
	l.pending = l.pending[1:]
	began := time.Now()
	if event == "Stop" && l.working != "" {
		l.transcribe("assistant", []any{map[string]string{"type": "text", "text": l.answer()}})
	}
	judged := l.judging(event)
	o := l.run(l.command(event), n)
	judged()
	if l.plant != nil {
		o = l.plant(event, o)
	}
	l.last = fmt.Sprintf("%s: status %d, stdout %q, stderr %q", event, o.Status, o.Stdout, o.Stderr)
	switch event {
	case "UserPromptSubmit":
		if !o.Killed || survives {
			l.submit()
		}
	case "PreToolUse":
		if !o.Killed && l.working != "" {
			l.note(promise.Fact{Kind: promise.ToolRan, Session: l.name()})
		}
	case "Stop":
		l.stopped(o)
	default:
		if o.Status != 0 && !o.Killed {
			l.fault("%s", l.last)
		}
	}
	if o.Killed {
		l.interrupted(began, "a hook is killed")
	}
	return o
}

// submit is when the model gets the prompt that was typed or passed.
func (l *lab) submit() {
	l.transcribe("user", l.kickoff)
	l.working = ""
	if l.carried != "" {
		l.working = l.hand(l.carried)
	}
	l.kickoff, l.carried = "", ""
}

// stopped decides as the client does what a Stop hook said (2.1.329):
// exit status 2 hands over stderr, status 0 a decision on stdout. A hook that
// was killed said nothing.
func (l *lab) stopped(o stepper.Outcome) {
	l.working = ""
	text := ""
	switch {
	case o.Killed:
		return
	case o.Status == 2:
		text = o.Stderr
		l.transcribe("user", "Stop hook feedback:\n[heartbeat-stop]: "+text)
	case o.Status == 0 && strings.HasPrefix(o.Stdout, "{"):
		var block struct{ Decision, Reason string }
		if err := json.Unmarshal([]byte(o.Stdout), &block); err != nil || block.Decision != "block" {
			l.fault("half a block: %s", l.last)
			return
		}
		text = block.Reason
		l.transcribe("user", "Stop hook feedback:\n"+text)
	case o.Status != 0 || o.Stdout != "":
		l.fault("%s", l.last)
		return
	default:
		return
	}
	l.working = l.hand(l.whole(text))
	l.active = true
	l.pending = []string{"Stop"}
	if l.form.ours() && l.record.Count().Given%2 == 1 { // every other entry needs a tool
		l.pending = []string{"PreToolUse", "Stop"}
	}
}

// whole reads the file of a prompt that was handed over by one.
func (l *lab) whole(text string) string {
	_, rest, ok := strings.Cut(text, `It is in the file "`)
	path, _, named := strings.Cut(rest, `"`)
	if !ok || !named {
		return text
	}
	data, err := os.ReadFile(path)
	if err != nil {
		l.fault("a prompt that nobody can read: %v", err)
	}
	l.transcribe("assistant", []any{map[string]any{"type": "tool_use", "id": "read", "name": "Read", "input": map[string]string{"file_path": path}}})
	l.transcribe("user", []any{map[string]any{"type": "tool_result", "tool_use_id": "read", "content": string(data)}})
	return string(data)
}

// transcribe writes a message of the user or the assistant into the transcript.
func (l *lab) transcribe(role string, content any) {
	line, err := json.Marshal(map[string]any{
		"type": role, "timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		"message": map[string]any{"role": role, "content": content},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	f, err := os.OpenFile(l.transcript, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// maxSteps bounds what a client does.
const maxSteps = 60

// play lets the client go on until it has nothing more to report.
func (l *lab) play() {
	l.t.Helper()
	for range maxSteps {
		if len(l.pending) == 0 {
			return
		}
		l.step(0, true)
	}
	l.fault("endless: %s", l.last)
}

// die ends the client.
func (l *lab) die() {
	l.pending, l.working = nil, ""
	l.unlock()
}

// recovery is `heartbeat-stop recover`, or what the scheduler does where `run` has launched the
// client.
func (l *lab) recovery() stepper.Program {
	p := stepper.Program{
		Path: program(l.t, "heartbeat-stop"), Dir: l.home, Env: []string{"PATH=" + os.Getenv("PATH")},
		Args: []string{"recover", "--inbox", l.inbox, "--on-orphan", string(l.policy)},
	}
	if l.form.ours() {
		p.Path, p.Args = turn(l.t), []string{"recover", l.inbox, string(l.policy)}
	}
	return p
}

// recoverOrphan runs a recovery, killed before its n-th call when n > 0.
func (l *lab) recoverOrphan(n int) stepper.Outcome {
	l.t.Helper()
	began := time.Now()
	o := l.run(l.recovery(), n)
	if o.Killed {
		l.interrupted(began, "a recovery is killed")
	} else if o.Status != 0 || !strings.Contains(o.Stderr, "recover: ") {
		l.fault("recover: status %d, %q", o.Status, o.Stderr)
	}
	if !o.Killed {
		l.decides()
	}
	return o
}

// drain goes on as a scheduler does, recover and launch, until everything
// accepted was handed over and nothing is in flight.
func (l *lab) drain() {
	l.t.Helper()
	l.play()
	for range 6 {
		l.die()
		if len(l.atEnd().Open()) == 0 && !l.inFlight() {
			return
		}
		l.recoverOrphan(0)
		l.launch()
		l.play()
	}
	if open := l.atEnd().Open(); len(open) > 0 {
		l.fault("wedged: %q is not handed over; %s", open, l.last)
	}
}
