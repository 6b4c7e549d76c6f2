package launch

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/resources"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/stophooks"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
	"heartbeat/ptyrun"
)

// keepLogs is how many sessions' terminal logs an agent keeps.
const keepLogs = 20

// Prepared is what a session has to know about its workspace.
type Prepared struct {
	// Settings are the settings passed to the client by --settings; nil: none.
	Settings []byte
	// Flags are more flags for the client.
	Flags     []string
	StopHooks stophooks.Present // beside ours
	// Answers changes with everything that may answer a question that the client
	// asks at its start; "" if that is not known.
	Answers string
	// Changed is true if something was not as declared.
	Changed bool
}

// Ticket is everything that the Spec of an agent's next session is made of.
type Ticket struct {
	Agent       *config.Agent
	Key         string      // names what is kept of the agent
	Env         []string    // of Environment
	Account     string      // the account that it uses
	Policy      hook.Policy // the agent's, completed
	Prepared    Prepared
	Interrupted *inbox.InFlight // the entry in flight whose turn ended early, or nil
	// Unproven is the entry in flight if it continues because its check has not passed,
	// or nil.
	Unproven *inbox.InFlight
	// Apart is the conversation of the entry in flight if that was set aside once: it goes
	// on in it, and the queue in its own; "" for any other.
	Apart string
	// GoesOn is until when queued entries continue the last conversation.
	GoesOn time.Time
	// Store has the conversations.
	Store *store.Store
	// StateDir has what may be killed, RuntimeDir the sockets; "": none.
	StateDir, RuntimeDir string
	Ours                 string // how a command line for the fleet begins; "": heartbeat
}

// Spec returns the next session, with new ids, and saves which conversation it has.
func (t *Ticket) Spec() (session.Spec, error) {
	c := t.Agent
	limits := resources.Of(c)
	if err := ptyrun.CanLimit(os.Getpid(), limits); err != nil && limits.Required {
		return session.Spec{}, &unlimitedError{err}
	}
	command := c.Argv()
	if c.Self {
		command = append([]string{session.Self()}, c.Command[1:]...)
	}
	socket := ""
	if t.RuntimeDir != "" {
		socket = filepath.Join(t.RuntimeDir, session.SocketName(c.Name))
	}
	id := newUUID()
	resume, goesOn, err := t.converse(id, time.Now())
	if err != nil {
		return session.Spec{}, err
	}
	_, shut := client.Claude.Shut(c.Permissions.Allow)
	goOn := ""
	if goesOn {
		goOn = t.Interrupted.DeliveryID
	}
	return session.Spec{
		Agent: c.Name, Session: id, Resume: resume, GoOn: goOn, Token: newToken(), Dir: c.Dir, Home: c.Home, Inbox: c.Inbox,
		Command: command, Env: slices.Concat(t.Env, shut), Policy: t.Policy, StandsIn: c.StandsIn(), KickoffText: c.KickoffText,
		PermissionMode: c.Permissions.Mode, Settings: t.Prepared.Settings, HooksIn: hooksIn(c), Flags: t.Prepared.Flags,
		EntryTimeout: c.Timeout, SessionTimeout: c.SessionTimeout, StartTimeout: c.StartTimeout,
		Hold: c.HoldsFor(), IdleGrace: c.IdleGrace, BackgroundTimeout: c.BackgroundTimeout, StallTimeout: c.StallTimeout, ToolTimeout: c.ToolTimeout, ToolTimeouts: c.ToolTimeouts,
		AutoUpdate: c.AutoUpdate, Grace: c.Grace,
		Limits: limits, EntryBudget: usage.Allowance(c.Budget.Entry), Account: t.Account, Group: c.Group, KeepLogs: keepLogs, StateDir: t.StateDir, Socket: socket, Ours: t.Ours,
	}, nil
}

// unlimitedError prevents the start of a session whose limits are required and
// cannot be enforced: only a person can help.
type unlimitedError struct{ why error }

func (e *unlimitedError) Error() string {
	return "no session is started, as resources: required: true says: " + e.why.Error()
}
func (e *unlimitedError) Hint() string  { return ptyrun.Cure(e.why) }
func (e *unlimitedError) Unwrap() error { return ErrNeedsPerson }

// hooksIn returns the settings file in an agent's directory that has our hooks, or
// "".
func hooksIn(a *config.Agent) string {
	s := client.Claude.Settings
	switch a.Settings {
	case config.SettingsLocal:
		return filepath.Join(a.Dir, s.Folder, s.Local)
	case config.SettingsFlag, config.SettingsOnly:
		return ""
	}
	return filepath.Join(a.Dir, s.Folder, s.File)
}

// newToken returns a session's 128-bit cookie.
func newToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// newUUID returns a random UUID (RFC 9562, version 4), as --session-id wants.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
