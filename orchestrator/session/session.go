// Package session is one supervised session of an agent: the shim that
// `heartbeat launch` becomes for `heartbeat run`. It recovers nothing and
// schedules nothing; it starts the client in a PTY, answers its hooks, and so
// knows what the session does, and ends it with one reason out of a closed
// list. ../README.md says what it looks at, and what it ends a session for.
//
// Scheduler and shim speak JSON, a line each: the Spec and then Orders on
// stdin, Reports on stdout, the last of which has the Outcome. The end of stdin
// is the scheduler's death, and the session's end.
package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/usage"
	"heartbeat/ptyrun"
	"heartbeat/queue/wire"
)

// Spec is everything a shim needs to run one session. It arrives as one JSON line
// on the shim's stdin, so that no secret is in argv.
type Spec struct {
	Agent   string `json:"agent"`
	Session string `json:"session"` // a UUID
	// Resume, if not "", is the id of the client's conversation to continue;
	// otherwise a new one begins, and Session is its id.
	Resume string `json:"resume,omitempty"`
	// GoOn, if not "", is the delivery id of the entry in flight that the session
	// continues, in the conversation that Resume names.
	GoOn    string      `json:"go_on,omitempty"`
	Token   string      `json:"token"` // 32 hex digits; secret
	Dir     string      `json:"dir"`   // AGENT_DIR, resolved
	Home    string      `json:"home"`  // AGENT_DIR/.heartbeat
	Inbox   string      `json:"inbox"`
	Command []string    `json:"command"` // argv before our additions
	Env     []string    `json:"env"`     // the whole environment but ours
	Policy  hook.Policy `json:"policy"`
	// StandsIn is true if the client is the stand-in (heartbeat simulate).
	StandsIn bool `json:"stands_in,omitempty"`
	// KickoffText, if not "", is the prompt argument instead of the first entry.
	KickoffText    string `json:"kickoff_text,omitempty"`
	PermissionMode string `json:"permission_mode"`
	// Settings are passed by --settings, in a file in the state directory that
	// exists as long as the session; nil: nothing is passed.
	Settings json.RawMessage `json:"settings,omitempty"`
	// HooksIn is the settings file in the agent's directory that has our hooks, or
	// "": they are in Settings.
	HooksIn string `json:"hooks_in,omitempty"`
	// Flags are passed on unchanged.
	Flags []string `json:"flags,omitempty"`

	EntryTimeout      time.Duration `json:"entry_timeout"`      // 0: none
	SessionTimeout    time.Duration `json:"session_timeout"`    // 0: none
	StartTimeout      time.Duration `json:"start_timeout"`      // until SessionStart
	IdleGrace         time.Duration `json:"idle_grace"`         // unattended, then it ends
	BackgroundTimeout time.Duration `json:"background_timeout"` // background, then it ends
	// Hold is how long the session is kept while its entry is being checked; 0: for as
	// long as it takes.
	Hold time.Duration `json:"hold,omitempty"`
	// StallTimeout is how long a turn in which no tool runs may go without any sign
	// of life: a hook, a new line in the transcript, more on the terminal than a
	// spinner. 0: forever.
	StallTimeout time.Duration `json:"stall_timeout,omitempty"`
	// ToolTimeout is how long one tool may run, ToolTimeouts the same by the tool's
	// name. 0: forever.
	ToolTimeout  time.Duration            `json:"tool_timeout,omitempty"`
	ToolTimeouts map[string]time.Duration `json:"tool_timeouts,omitempty"`
	// AutoUpdate lets the client update itself.
	AutoUpdate bool          `json:"auto_update,omitempty"`
	Grace      time.Duration `json:"grace"` // from SIGTERM to SIGKILL
	// Group is the agent's, "" for none: whose budget it spends from.
	Group string `json:"group,omitempty"`
	// EntryBudget is what one entry may cost, all its attempts together.
	EntryBudget usage.Allowance `json:"entry_budget,omitzero"`
	// Limits are what the session may use of the machine.
	Limits   ptyrun.Limits `json:"limits,omitzero"`
	KeepLogs int           `json:"keep_logs"`
	// Socket is where others join the terminal, in a directory that only this user
	// can enter; "": nobody can.
	Socket string `json:"socket,omitempty"`
	// Ours is how a command line for the agent's fleet begins; "": heartbeat.
	Ours string `json:"ours,omitempty"`
	// StateDir is where the pids that may be killed are kept.
	StateDir string `json:"state_dir"`
	// Account is the account that the session works on, for the record.
	Account string `json:"account,omitempty"`
}

// SocketName returns the name of an agent's socket in the runtime directory. It is
// short enough for every path that state.RuntimeDir returns.
func SocketName(agent string) string {
	const most = 24
	if len(agent) > most {
		sum := sha256.Sum256([]byte(agent))
		agent = agent[:12] + "-" + hex.EncodeToString(sum[:4])
	}
	return agent + ".tty"
}

// Report is one line of the shim's stdout.
type Report struct {
	At           time.Time  `json:"at"`
	Phase        hook.Phase `json:"phase"`
	Acknowledged int        `json:"acknowledged"`
	Work         *hook.Work `json:"work,omitempty"`
	// Attached counts the people in the session who may type, and Hush is until when it gets no
	// prompt because one of them has typed; zero: it may.
	Attached int       `json:"attached,omitempty"`
	Hush     time.Time `json:"hush,omitzero"`
	// Checking is what is being checked of its work, nil for nothing.
	Checking *Checking `json:"checking,omitempty"`
	// Why it will end, while Phase is ending.
	Why string `json:"why,omitempty"`
	// Told is what the client has told our status line last; nil: nothing yet. The
	// agent can forge it, within bounds.
	Told *client.StatusLine `json:"told,omitempty"`
	// Spent is what the session has cost so far, as far as it is seen.
	Spent usage.Sum `json:"spent,omitzero"`
	// Tool runs in its turn, the one that runs longest; nil: none.
	Tool *Tool `json:"tool,omitempty"`
	// Silent is since when a turn in which no tool runs has shown no sign of life, once
	// that is a while; zero: it does.
	Silent time.Time `json:"silent,omitzero"`
	// Said is what the session has said of itself, last; nil: nothing. It proves no
	// more than that something in it runs.
	Said *Said `json:"said,omitempty"`
	// Answers are what Stop hooks were answered since the last report.
	Answers []hook.Answered `json:"answers,omitempty"`
	// Answered is true once the model has answered.
	Answered bool `json:"answered,omitempty"`
	// Denied are the calls of tools that no rule allows.
	Denied []Denied `json:"denied,omitempty"`
	// Servers are those of MCP that did not connect; nil: all did, as in most sessions.
	Servers *[]Server `json:"servers,omitempty"`
	// Strays are the prompts of the session that neither its queue nor a person has given.
	Strays []Stray `json:"strays,omitempty"`
	// Wish, if not nil, is what something in the session wants: such a report says nothing else.
	Wish *Wish `json:"wish,omitempty"`
	// Bill, if not nil, are records to write of what the session has cost: such a report says
	// nothing else. Those that were not answered are in the next one again.
	Bill []usage.Record `json:"bill,omitempty"`
	// Ask, if not nil, is what the session asks of its queue: such a report says nothing else.
	Ask *wire.Request `json:"ask,omitempty"`
	// Outcome is set in the last report only.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Checking names a check of a session's work: a verdict about it names the same.
type Checking struct {
	Delivery  string `json:"delivery"`
	Iteration int    `json:"iteration"`
	Check     int    `json:"check"`
	// Since is when the session claimed to be done.
	Since time.Time `json:"since,omitzero"`
}

// Outcome is how a session ended.
type Outcome struct {
	Why    hook.End `json:"why"`
	Detail string   `json:"detail,omitempty"`
	// ExitCode is the client's if it ended by itself, Signal what ended it if that
	// was not us: a session that we end is no failure.
	ExitCode     int    `json:"exit_code,omitempty"`
	Signal       string `json:"signal,omitempty"`
	Acknowledged int    `json:"acknowledged"`
	Bound        bool   `json:"bound"` // a SessionStart was seen
	// Unwatched is true if the client worked on a prompt and none of our hooks,
	// which report its tools, was called.
	Unwatched bool `json:"unwatched,omitempty"`
	// Delivery is the delivery id of the entry in flight, or "".
	Delivery string `json:"delivery,omitempty"`
	// Unproved is true if the entry in flight is left to a check, or to its next
	// iteration: what the session did for it was not in vain.
	Unproved bool `json:"unproved,omitempty"`
	// Untaken is true if the entry that the session was to begin with is still
	// offered, and the client, which ended in order, demonstrably never got it.
	Untaken bool `json:"untaken,omitempty"`
	// NoRoom is true if the machine had no room for the session (NoRoom): the agent
	// has not failed. DiskFull is true if that was room on a disk.
	NoRoom   bool `json:"no_room,omitempty"`
	DiskFull bool `json:"disk_full,omitempty"`
	// Gates are the command lines of Stop hooks, not ours, that continued the
	// client. GoesOn is true if the session ended because with such hooks it takes
	// one entry: queued entries continue in its conversation.
	Gates  []string `json:"gates,omitempty"`
	GoesOn bool     `json:"goes_on,omitempty"`
	// Denied are the calls of tools that no rule allows.
	Denied []Denied `json:"denied,omitempty"`
	// Servers are those of MCP that did not connect.
	Servers []Server `json:"servers,omitempty"`
	// Strays are the prompts that neither the queue nor a person has given.
	Strays []Stray `json:"strays,omitempty"`
	// Asks is what the client asked on the screen instead of starting, or nil.
	Asks *Question `json:"asks,omitempty"`
	// Refused is what the client told of the request that the API refused, where that
	// ended the session.
	Refused *Refused `json:"refused,omitempty"`
	// Loss is what was lost with the queue's folder, if that ended it.
	Loss *Loss `json:"loss,omitempty"`
	// Owes is true if not all that it cost was recorded: its note has the rest.
	Owes   bool   `json:"owes,omitempty"`
	Screen string `json:"screen,omitempty"` // what the terminal showed, for start-timeout, dialog, stalled and the like
}

// Refused is what a client told of a request that the API refused. The agent can
// write all of it.
type Refused struct {
	Told    string          `json:"told,omitempty"`    // to its hook, in words for people
	Written *client.Refusal `json:"written,omitempty"` // in its record of the conversation
	Limits  client.Limits   `json:"limits,omitzero"`   // the last figures that it showed
}

// String returns one line about how the session ended.
func (o *Outcome) String() string {
	text := string(o.Why)
	if o.Why == hook.EndExited {
		text += " with code " + strconv.Itoa(o.ExitCode)
	}
	if o.Detail != "" {
		text += " (" + o.Detail + ")"
	}
	return text
}

// Order is one line on the shim's stdin after the Spec. When stdin ends, the
// orchestrator is gone and the session ends at once.
type Order struct {
	Yield bool `json:"yield,omitempty"` // end when nothing is queued
	Stop  bool `json:"stop,omitempty"`  // end now
	// Finish, if not "", says why the session is handed nothing more and ends after
	// its turn, or at once if it is in none. With Stop it is why the session ends
	// now.
	Finish string `json:"finish,omitempty"`
	// Cancel ends the session like Stop, unless its entry in flight is another one:
	// then that one was done, and the session goes on.
	Cancel *Cancel `json:"cancel,omitempty"`
	// HandBack says that the person who has typed is done.
	HandBack bool `json:"hand_back,omitempty"`
	// Shutdown says that the scheduler itself is ending.
	Shutdown bool `json:"shutdown,omitempty"`
	// Granted, if not nil, answers a wish: such an order says nothing else.
	Granted *Granted `json:"granted,omitempty"`
	// Billed, if not nil, answers a bill: such an order says nothing else.
	Billed *Billed `json:"billed,omitempty"`
	// Answer, if not nil, answers what the session has asked of its queue: such an order says
	// nothing else.
	Answer *wire.Answer `json:"answer,omitempty"`
	// Queued says that the agent's queue has changed, Moved that its entry in flight may have been
	// moved, by a verdict: such orders say nothing else.
	Queued bool `json:"queued,omitempty"`
	Moved  bool `json:"moved,omitempty"`
}

// Cancel is a person's wish that an entry in flight is not worked on any more.
type Cancel struct {
	// Delivery is its delivery id; any other entry is left alone. "": the turn has none.
	Delivery string `json:"delivery"`
	// Again has it queued once more, at the end of the queue and as if it were new.
	Again bool `json:"again,omitempty"`
}

// finishes returns how a session ends that was told to finish.
func (o Order) finishes() hook.End {
	if o.Shutdown {
		return hook.EndShutdown
	}
	return hook.EndFinished
}
