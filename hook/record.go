package hook

import (
	"slices"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/hook/handover"
	"heartbeat/hook/process"
)

// EnvAgent is the environment variable that the shim sets for what runs in a session, beside
// those of ask: the agent's name.
const EnvAgent = "HEARTBEAT_AGENT"

// Variables returns the names of the variables that the shim sets for a session.
func Variables() []string {
	return []string{ask.EnvSession, ask.EnvSocket, ask.EnvHome, EnvAgent}
}

// Phase is what a live session is doing.
type Phase string

// The phases. Ended is the last one: the record stays for reading.
const (
	Starting   Phase = "starting"   // no prompt has been submitted yet
	Turn       Phase = "turn"       // the model is working
	Waiting    Phase = "waiting"    // our Stop hook waits for work
	Background Phase = "background" // the turn ended, background tasks run
	Checking   Phase = "checking"   // the turn ended, its entry is being checked; our Stop hook waits, or has ended
	Settling   Phase = "settling"   // we let the turn end; other Stop hooks may make it continue
	Unattended Phase = "unattended" // alive, no turn, no hook
	Ending     Phase = "ending"     // it will be ended; nothing is handed over
	Ended      Phase = "ended"
)

// End is why a session ended. The list is closed.
type End string

// Why a session ended.
const (
	EndDrained      End = "drained"
	EndReleased     End = "released"
	EndExited       End = "exited" // by itself, with a code
	EndTimeout      End = "timeout"
	EndStalled      End = "stalled"
	EndUnattended   End = "unattended"
	EndRunaway      End = "runaway"
	EndStartTimeout End = "start-timeout"
	EndAPIFailure   End = "api-failure"
	EndNoHooks      End = "hooks-do-not-run" // the client worked, and called none of ours
	EndDialog       End = "dialog"
	EndCrashed      End = "crashed"       // by a signal that was not ours
	EndOutOfMemory  End = "out-of-memory" // killed by the kernel, which had none left for it
	EndOverBudget   End = "over-budget"   // its entry has cost more than one may
	EndFinished     End = "finished"      // told to, after its turn, by a scheduler that goes on
	EndLost         End = "lost"          // its directory, its queue's folder or its lock is gone or another one
	EndShutdown     End = "shutdown"      // its scheduler ends, or its shim was told to
)

// IsMeant reports whether a session ended as it was meant to: its work was done, or somebody who
// may told it to end.
func (e End) IsMeant() bool {
	return slices.Contains([]End{EndDrained, EndReleased, EndFinished, EndShutdown}, e)
}

// Ends returns all reasons.
func Ends() []End {
	return []End{
		EndDrained, EndReleased, EndExited, EndTimeout, EndStalled, EndUnattended, EndRunaway, EndStartTimeout,
		EndAPIFailure, EndNoHooks, EndDialog, EndCrashed, EndOutOfMemory, EndOverBudget, EndFinished, EndLost, EndShutdown,
	}
}

// Mode says what a Stop hook does when nothing is queued.
type Mode string

// The modes of heartbeat-rs.
const (
	Drain   Mode = "drain"   // let the session end
	Persist Mode = "persist" // wait for work
)

// OnIdle says what a persist hook does after idle-interval without work.
type OnIdle string

// What to do after idle-interval.
const (
	IdleTick    OnIdle = "tick"    // a paid turn, as heartbeat-rs
	IdleRelease OnIdle = "release" // end the session; the next entry starts one
)

// Deliver says how a Stop hook hands an entry over.
type Deliver string

// The ways to hand over an entry.
const (
	DeliverStderr Deliver = "stderr" // exit 2, the entry on stderr: once, exact
	DeliverJSON   Deliver = "json"   // decision:block on stdout, as heartbeat-rs
)

// BackgroundRule says what a Stop means while background tasks run.
type BackgroundRule string

// The background rules.
const (
	BackgroundWait   BackgroundRule = "wait"   // not done until they end
	BackgroundIgnore BackgroundRule = "ignore" // done at the first Stop
)

// Context says how long one conversation lasts.
type Context string

// The contexts.
const (
	ContextSession Context = "session" // one conversation per launch
	ContextEntry   Context = "entry"   // a new session for each entry
	ContextResume  Context = "resume"  // go on with the last conversation
)

// ForeignRule says what to do about Stop hooks that are not ours.
type ForeignRule string

// The rules for foreign Stop hooks.
const (
	ForeignLearn ForeignRule = "learn" // gates from their first block on
	ForeignGate  ForeignRule = "gate"  // one entry for each session
	ForeignFree  ForeignRule = "free"  // prompts are handed over whatever they say
)

// Policy is the set of rules that a session's Stop hook follows.
type Policy struct {
	Mode             Mode           `json:"mode"`
	IdleInterval     time.Duration  `json:"idle_interval"` // nanoseconds
	OnIdle           OnIdle         `json:"on_idle"`
	Deliver          Deliver        `json:"deliver"`
	Background       BackgroundRule `json:"background"`
	Context          Context        `json:"context"`
	MaxContinuations int            `json:"max_continuations"`
	// MaxEntry is the largest line that is handed over, in bytes; 0 means
	// queue.MaxLine.
	MaxEntry int64 `json:"max_entry,omitempty"`
	// ForeignStopHooks is true when another Stop hook is installed beside ours:
	// then only the transcript proves that a hand-over arrived.
	ForeignStopHooks bool `json:"foreign_stop_hooks,omitempty"`
	// Foreign is the rule for such hooks. Gated is true where the session takes one
	// entry only: one of those hooks is known to make the client go on, and its
	// text and our next entry would go out together at the same Stop.
	Foreign ForeignRule `json:"foreign,omitempty"`
	Gated   bool        `json:"gated,omitempty"`
	// Checked is true if each entry is done only when a check has passed, whatever its
	// envelope says. CheckTimeout is how long the longest check takes at most, with what
	// may be waited before the next iteration.
	Checked      bool          `json:"checked,omitempty"`
	CheckTimeout time.Duration `json:"check_timeout,omitempty"`
	// TypingPause is how long after a person's last key nothing is handed over; 0
	// means the constant TypingPause.
	TypingPause time.Duration `json:"typing_pause,omitempty"`
}

// Process identifies a process, as a record has it.
type Process = process.Process

// Work is the entry a session is working on.
type Work struct {
	DeliveryID string    `json:"delivery_id"`
	ID         string    `json:"id,omitempty"`
	Source     string    `json:"source,omitempty"`
	Attempt    int       `json:"attempt"`
	Iteration  int       `json:"iteration,omitempty"` // of an entry that is checked; see queue.Proving
	Since      time.Time `json:"since"`               // of the hand-over
}

// Ruling is a decision that the session must end.
type Ruling struct {
	Why    End    `json:"why"`
	Detail string `json:"detail,omitempty"` // e.g. the API error's kind
	// Told is what the client told people of an API failure.
	Told string `json:"told,omitempty"`
	// Final is true once the shim is about to send SIGTERM. Until then a starting
	// turn (a background task has finished) takes a drained or released ruling
	// back.
	Final bool `json:"final,omitempty"`
	// At is when the ruling was made.
	At time.Time `json:"at,omitzero"`
}

// Record is the live session of an agent and what it is doing. Its shim has it in memory (Live):
// the answers to hooks and the shim change it, one at a time.
//
// session.json is what it was last, for the recovery of a session whose shim was killed. The
// agent can write that: see Shown for what was read from the file.
type Record struct {
	Version   int       `json:"version"`
	TokenHash string    `json:"token_sha256"`
	Shim      Process   `json:"shim"`
	StartedAt time.Time `json:"started_at"`
	// Clock is when the record was written. Readers use it to correct the record's
	// times if the wall clock was set since.
	Clock Clock     `json:"clock,omitzero"`
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"` // of the phase
	// Ruling is set once the session must end.
	Ruling *Ruling `json:"ruling,omitempty"`

	Terms
	Bound
	Progress
	InBackground
	Others
	People
	Closing
}

// Bound is the client that a session follows. BoundAt is zero before the first
// event.
type Bound struct {
	Client         Process   `json:"client,omitzero"`
	BoundAt        time.Time `json:"bound_at,omitzero"`
	ClientSession  string    `json:"client_session,omitempty"` // the payload's session_id
	Transcript     string    `json:"transcript,omitempty"`
	PromptID       string    `json:"prompt_id,omitempty"`
	PermissionMode string    `json:"permission_mode,omitempty"`
}

// Progress is how far a session has come.
type Progress struct {
	Events        int       `json:"events"`
	LastEvent     string    `json:"last_event,omitempty"`
	LastEventAt   time.Time `json:"last_event_at,omitzero"`
	Work          *Work     `json:"work,omitempty"`
	HandOvers     int       `json:"hand_overs"`    // by Stop hooks of this session
	Continuations int       `json:"continuations"` // turns that a hook caused since the last acknowledgement or verdict
	Acknowledged  int       `json:"acknowledged"`
	SetAside      int       `json:"set_aside,omitempty"` // entries that wait for a person
	// Undone are the entries on which it has worked and that a verdict has ended otherwise.
	Undone int `json:"undone,omitempty"`
	// Answers are what our Stop hooks have decided, the newest last.
	Answers []Answered `json:"answers,omitempty"`
	// Waiter is the hook process that waits while Phase is Waiting or Checking. The shim uses
	// it to notice that the hook was killed.
	Waiter Process `json:"waiter,omitzero"`
}

// InBackground describes what still runs after a turn has ended.
type InBackground struct {
	BackgroundTasks []string  `json:"background_tasks,omitempty"` // as "type: description"
	BackgroundSince time.Time `json:"background_since,omitzero"`
	// LastReply is the agent's last message at the Stop that left background
	// tasks running (at most 64 KiB), for the outbox.
	LastReply string `json:"last_reply,omitempty"`
}

// Others is what Stop hooks other than ours do.
type Others struct {
	// Said is a digest of the last message that a Stop reported.
	Said string `json:"said,omitempty"`
	// Spoke is true when our last Stop hook made the client go on.
	Spoke bool `json:"spoke,omitempty"`
	// Prolonged is true once another Stop hook made the client go on where ours had
	// not, or together with ours.
	Prolonged bool `json:"prolonged,omitempty"`
	// Gates are the command lines of other Stop hooks that made it go on.
	Gates []string `json:"gates,omitempty"`
	// Heard is how far the transcript was read for other hooks' output.
	Heard handover.Stops `json:"heard,omitzero"`
	// Settles is the delivery id of the entry that is done if the client
	// demonstrably stops after the last Stop. The shim acknowledges it then.
	Settles string `json:"settles,omitempty"`
}

// People is what people and other agents want of a session.
type People struct {
	// Yield asks a waiting hook to end the session so that another agent
	// gets its slot.
	Yield bool `json:"yield,omitempty"`
	// TypedAt is when an attached person last pressed a key.
	TypedAt  time.Time `json:"typed_at,omitzero"`
	Attached int       `json:"attached,omitempty"` // people attached now
	Line     Line      `json:"line,omitzero"`
}

// Closing is set when Phase is Ended; ExitCode is set when the client ended by
// itself with a code other than 0.
type Closing struct {
	ExitCode int       `json:"exit_code,omitempty"`
	EndedAt  time.Time `json:"ended_at,omitzero"`
}

// Enter changes the phase. If the phase stays the same, so does Since.
func (r *Record) Enter(p Phase, now time.Time) {
	if r.Phase != p {
		r.Phase, r.Since = p, now
	}
}
