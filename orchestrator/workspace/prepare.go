package workspace

import (
	"cmp"
	"fmt"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/queue"
)

// Preparer brings agents' directories in line before their sessions, and says what
// would keep those from working. Its methods may be called from any goroutine.
type Preparer struct {
	keeper keeper
	ours   string
}

// NewPreparer returns the Preparer of a scheduler. self is the running binary, ours
// how a command line for its fleet begins.
func NewPreparer(stateDir, self, ours string) (*Preparer, error) {
	h, err := FindHook(self, stateDir)
	if err != nil {
		return nil, err
	}
	return &Preparer{keeper: keeper{stateDir: stateDir, hook: h}, ours: ours}, nil
}

// Prepare applies what has drifted, and says what the session has to know. Where it
// is known that no session can do its work, the error is a *preflight.BlockedError.
func (p *Preparer) Prepare(a *config.Agent) (launch.Prepared, error) {
	h, err := p.keeper.current()
	if err != nil {
		return launch.Prepared{}, err
	}
	plan, err := Apply(a, p.keeper.stateDir, h)
	if err != nil {
		_, blocked := Blocked(a, p.keeper.stateDir, h, p.ours)
		return launch.Prepared{}, cmp.Or(blocked, err)
	}
	answers, err := Blocked(a, p.keeper.stateDir, h, p.ours)
	if err != nil {
		return launch.Prepared{}, err
	}
	if err := plan.handable(); err != nil {
		return launch.Prepared{}, err
	}
	passed, err := plan.passed()
	if err != nil {
		return launch.Prepared{}, err
	}
	return launch.Prepared{
		Answers: answers, Settings: passed, Flags: plan.client().Added(), StopHooks: plan.Others.Present(), Changed: plan.Changes(),
	}, nil
}

// handable returns a *preflight.BlockedError if what a session would be given first cannot
// be handed over: it would be paid for, and get nothing.
func (p *Plan) handable() error {
	a := p.Agent
	text, err := queue.FirstText(a, client.MostWhole)
	if err != nil {
		return nil // what is wrong with the queue is said elsewhere
	}
	err = handover.Unhandable(a.Home, text)
	if err == nil {
		return nil
	}
	return p.client().Blocked([]preflight.Obstacle{{
		Code: preflight.PromptFile, Seen: fmt.Sprintf("the next prompt is too long for the client, and the file that would carry it cannot be written: %v", err),
		Why: "a session would be started, and could not be given it", Fix: "make room, and make it writable: " + settings.Quote(a.Home),
	}})
}

// Blocked returns a *preflight.BlockedError where it is known that no session of the
// agent can do its work, and changes nothing.
func (p *Preparer) Blocked(a *config.Agent) error {
	h, err := p.keeper.current()
	if err != nil {
		return err
	}
	_, err = Blocked(a, p.keeper.stateDir, h, p.ours)
	return err
}

// passed is what a session's client is given by --settings: a status line of ours,
// which tells what the session costs, and what closes its tools beside the prompt, in
// what the client would get otherwise. The client takes only the last --settings, so what
// the agent's command passes is in it. It is nil where the client cannot read that: it
// says so itself. A person's own client in the directory has neither, and the session
// cannot take them off.
func (p *Plan) passed() ([]byte, error) {
	base := p.rendered
	if base == nil {
		theirs, _ := p.client().Passed()
		if theirs.Err != nil {
			return nil, nil
		}
		base = theirs.Data
	}
	more := settings.Session{StatusLine: settings.StatusLineCommand(p.hook.binary, p.StatusLine)}
	more.Deny, more.Env = client.Claude.Shut(p.Agent.Permissions.Allow)
	data, err := settings.ForSession(base, more)
	if err != nil {
		return nil, fmt.Errorf("cannot render the settings of agent %q: %w", p.Agent.Name, err)
	}
	return data, nil
}
