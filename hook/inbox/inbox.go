// Package inbox is a queue in one file: many appenders, one consumer, at
// least once.
//
// The inbox is a JSONL file that anybody may append to. Everything before the
// cursor is acknowledged; at most one entry is in flight. Each step of an
// entry's life is durable before the next begins:
//
//	queued → offered → taken → started → (background) → acknowledged
//
// The package decides nothing about sessions: callers tell it that an entry was
// taken or started, and it records that. It trusts no byte of the directory it
// reads (no link is followed out of it, every read is bounded), because the agent
// may write there.
//
// # What is synced, and why
//
// One tick that acknowledges an entry and offers the next makes five syncs:
//
//	fdatasync outbox.jsonl   the acknowledgement: what makes it durable
//	fsync the new cursor     one that a power cut empties would tell nothing
//	fdatasync the inbox      neither record nor cursor may outlive the line
//	fsync the new .in-flight an entry must not be given again once a tool ran,
//	fsync the folder         so its record has its content and its name
//
// Each step forward of an entry (taken, started, background) replaces the
// record with the last two again. Left out, because the promise does not need them: the folder after
// the cursor (the old cursor together with the outbox's record still says
// acknowledged), the removal of .in-flight and .responded (a record that comes
// back is told by the cursor), the sidecar .inbox-meta (an old one is valid for
// its own offset, a lost one is made again; while it carries the attempts of an
// entry that is queued again, it is synced), the memory of ids (what it lacks
// stands in the inbox).
//
// A failed sync is not tried again: the call fails, and the next one starts
// from what is on disk.
//
// # What is not promised
//
// A truncated and refilled inbox whose first bytes are what was acknowledged
// cannot be told from one that has only grown. Lines of two writers that write
// a line in pieces at the same time are mixed. Nothing here survives an agent
// that destroys its own files.
package inbox

import (
	"errors"
	"time"

	"heartbeat/queue"
)

// Place says where a queue lives.
type Place struct {
	// Inbox is the absolute path of the JSONL file. The files whose names
	// begin with a dot (cursor, in flight, dead letters, locks) stand in its
	// folder.
	Inbox string
	// Home is the absolute path of the folder of the files that have no dot
	// (outbox.jsonl, hook.log, session.json). Empty means the inbox's folder.
	Home string
	// Dir is the agent's directory, in which others may change files: neither it
	// nor a folder below it may be a link. Empty means that the folders' paths are
	// trusted.
	Dir string
	// Single says that there is no urgent lane: a file of that name is somebody else's.
	Single bool
	// MaxEntry is the largest line, in bytes, that is accepted or handed over; 0
	// means DefaultMaxEntry.
	MaxEntry int64
}

// DefaultMaxEntry is the largest line where Place sets no other limit.
const DefaultMaxEntry = 1 << 20

// OrphanPolicy says what happens to a started entry in flight whose session was
// interrupted.
type OrphanPolicy string

// The orphan policies of heartbeat-rs.
const (
	Retry      OrphanPolicy = "retry"      // hand it over again
	DeadLetter OrphanPolicy = "deadletter" // file it, never hand it over again
	Drop       OrphanPolicy = "drop"       // forget it
)

// State is how far an entry in flight has come.
type State string

// The recorded states. Queued and acknowledged need no record: the cursor's
// position shows them.
const (
	Offered    State = "offered"    // recorded, then handed over; no proof that it arrived
	Taken      State = "taken"      // the session demonstrably got it
	Started    State = "started"    // a tool was called since: side effects are possible
	Background State = "background" // its turn ended while background tasks run
	Checking   State = "checking"   // its turn ended; whether its work is done is being checked
	Unproven   State = "unproven"   // the check did not pass: it is to be handed over again
)

// InSession reports whether a session has the entry, or had it and is gone.
func (s State) InSession() bool { return s != "" && s != Checking && s != Unproven }

// Via says how an entry was handed over; the proof of its arrival depends on that.
type Via string

// The ways to hand over an entry.
const (
	ViaKickoff Via = "kickoff" // in the prompt argument the session started with
	ViaStop    Via = "stop"    // by a Stop hook
	ViaResume  Via = "resume"  // by going on with its conversation; see Held.Rebind
)

// Reason says why an entry became a dead letter. The list is closed.
type Reason = queue.Reason

// The reasons for dead letters.
const (
	Interrupted Reason = "interrupted" // its session ended after a tool had run, or may have, policy deadletter
	Poison      Reason = "poison"      // it used up max-attempts
	Torn        Reason = "torn"        // a fragment of a JSON line
	TooLarge    Reason = "too-large"   // over max-entry; filed by reference, or with its beginning
	Dropped     Reason = "dropped"     // a person dropped it from the queue
	Cancelled   Reason = "cancelled"   // a person had its turn ended
	OverBudget  Reason = "over-budget" // it has cost more than an entry may
	Unread      Reason = "unread"      // its session has not read the file in which it was handed over, and no command line carries it
	Lost        Reason = "lost"        // somebody else took it out of the inbox: another file, a cut
	IDTaken     Reason = "id-taken"    // another prompt was accepted with its id before its time came

	MaxIterations Reason = "max-iterations"     // its checks have not passed within max-iterations
	MaxTime       Reason = "max-time"           // nor within max-time of work
	NoProgress    Reason = "no-progress"        // nothing has changed from one check to the next
	TooFast       Reason = "iteration-too-fast" // its iterations end as soon as they begin
	Forged        Reason = "forged"             // the queue's files called it done, and no check has passed
)

// Outcomes that callers act on.
var (
	// ErrEmpty means that no complete line is queued.
	ErrEmpty = errors.New("nothing is queued")
	// ErrDuplicate means that an entry with this id was accepted before.
	ErrDuplicate = errors.New("an entry with this id was accepted before")
	// ErrNeedsOperator means that the queue cannot continue without the risk of
	// losing or repeating entries; a person must decide (Question, or by hand: ByHand).
	ErrNeedsOperator = errors.New("the queue needs a person")
	// ErrTooLarge means that an entry is larger than max-entry.
	ErrTooLarge = errors.New("the entry is too large")
	// ErrFull means that a queue has no room for a letter, see Letter.Most.
	ErrFull = errors.New("the queue is full")
	// ErrInFlight means that another entry is in flight.
	ErrInFlight = errors.New("an entry is in flight")
	// ErrNothingInFlight means that no entry is in flight.
	ErrNothingInFlight = errors.New("no entry is in flight")
	// ErrUnproven means that an entry is done only when its check has passed.
	ErrUnproven = errors.New("its check has not passed")
	// ErrStale means that a verdict is about another check than the one that is awaited.
	ErrStale = errors.New("another check is awaited, or none")
	// ErrNotFound means that no entry has the requested id.
	ErrNotFound = errors.New("no entry has this id")
)

// Entry is one queued line.
type Entry struct {
	// Raw is the line without its newline, byte for byte.
	Raw []byte
	// Start and End are its byte offsets in the inbox; End is after the newline.
	Start, End int64
	// ID is the envelope's id, or "".
	ID string
	// Source is the envelope's source ("send", "AGENT/TRIGGER@LABEL"), or "".
	Source string
	// Prompt is the text for the session: valid UTF-8, never empty.
	Prompt string
	// Checked is the envelope's mark that the entry is done when a check has passed.
	// Whoever can write the inbox can take it away.
	Checked bool
	// DeliveryID will be InFlight.DeliveryID.
	DeliveryID string
	// Urgent is true for one of the urgent lane, which Start and End are offsets in.
	Urgent bool
	// Unread is that of its Tries: it is not handed over by a file again.
	Unread bool
}

// InFlight is the content of .in-flight. The first five fields are
// heartbeat-rs's and keep their meaning.
type InFlight struct {
	EntryID     string    `json:"entry_id"` // sha256 of the raw line, hex
	StartOffset int64     `json:"start_offset"`
	EndOffset   int64     `json:"end_offset"`
	RawLine     string    `json:"raw_line"`
	DeliveredAt time.Time `json:"delivered_at"`

	// DeliveryID is the first 12 hex digits of sha256(generation, start
	// offset, raw line): the same for each attempt of one entry, different
	// for two equal lines.
	DeliveryID string `json:"delivery_id,omitempty"`
	// RawBase64 holds the line's bytes when they are not valid UTF-8.
	RawBase64 string `json:"raw_b64,omitempty"`
	ID        string `json:"id,omitempty"`
	Source    string `json:"source,omitempty"`
	State     State  `json:"state,omitempty"`
	Tries
	Offering
	Proving
	// Urgent is true for an entry of the urgent lane, whatever the record says.
	Urgent bool `json:"urgent,omitempty"`
	// Generation names the inbox file the offsets belong to; InboxSize is how large it
	// was when the entry was offered.
	Generation int64 `json:"generation,omitempty"`
	InboxSize  int64 `json:"inbox_size,omitempty"`
	// Failure is the kind of API failure that ended its turn. It is removed when a
	// session demonstrably continues the entry.
	Failure string `json:"failure,omitempty"`
	// Cancel is set once a person has cancelled it.
	Cancel Cancel `json:"cancel,omitempty"`
	// Aside is not nil once it was set aside (SetAside).
	Aside *Aside `json:"aside,omitempty"`
	// Renamed is true if the record has named another entry than its line does since the
	// last verdict. ID and Source are always the line's.
	Renamed bool `json:"renamed,omitempty"`
	// Own is not recorded: the line stands in the inbox where the record says, and the
	// delivery id is that of the two.
	Own bool `json:"-"`
}

// Repeat reports whether a session may have worked on an earlier attempt: then this
// attempt's prompt must warn of it.
func (f *InFlight) Repeat() bool { return f.Attempt > 1 && !f.Untouched }

// Same reports whether g is the same offer as f and has no proof of arrival yet.
func (f *InFlight) Same(g *InFlight) bool {
	return g != nil && g.State == Offered && g.DeliveryID == f.DeliveryID && g.Attempt == f.Attempt && g.Iteration == f.Iteration && g.Session == f.Session
}

// Offering says to whom and how an entry is handed over.
type Offering struct {
	Via      Via    `json:"via,omitempty"`
	Session  string `json:"session,omitempty"`   // our id of the session it is offered to
	PromptID string `json:"prompt_id,omitempty"` // the client's prompt_id, as far as known
	// Transcript and TranscriptOffset say where the client's transcript would show
	// the hand-over.
	Transcript       string `json:"transcript,omitempty"`
	TranscriptOffset int64  `json:"transcript_offset,omitempty"`
	// Unwatched is true where no PreToolUse hook of ours reports tools (hand-wired
	// directories): then taken counts as started. It is stored here because this is
	// the only file that must survive a power cut with the entry.
	Unwatched bool `json:"unwatched,omitempty"`
	// Unmarked is true where a repeat is handed over without a word that it is one.
	Unmarked bool `json:"unmarked,omitempty"`
	// Client names the client's process, for callers that have no session record.
	Client string `json:"client,omitempty"`
	// Checked is true if the entry is done only when a check of its work has passed.
	Checked bool `json:"checked,omitempty"`
	// File is the file whose name is handed over in place of a prompt that the client
	// would cut, "" for one that is handed over itself.
	File string `json:"file,omitempty"`
}

// Tries counts how often an entry was handed over.
type Tries struct {
	Attempt int `json:"attempt,omitempty"` // hand-overs, from 1
	// Repeats counts the interruptions that used up an attempt.
	Repeats int `json:"repeats,omitempty"`
	// Untouched is true while no session can have worked on an earlier attempt:
	// none got it, or the service refused it before any tool ran. On a first
	// attempt it means nothing.
	Untouched bool `json:"untouched,omitempty"`
	// Unread is true once a session was handed over the name of a file with it, and has not
	// read that: it is to be the first prompt of another session.
	Unread bool `json:"unread,omitempty"`
}

// Arrival is what a search for evidence found about an offer without proof.
type Arrival int

// The possible arrivals.
const (
	Unknown Arrival = iota // there is nothing to look into
	Unseen                 // it is not there; a client that was killed may not have written it
	Seen                   // the session got it
	Worked                 // and a tool was called for it
)

// Acknowledgement describes an entry that is done. It becomes the entry's record in
// the outbox.
type Acknowledgement struct {
	Session   string
	Reply     string   // the agent's last message; cut at 64 KiB on a rune boundary
	Abandoned []string // background tasks that were still running, as "kind: description"
	Now       time.Time
}

// Delivery is one record of outbox.jsonl.
type Delivery struct {
	DeliveryID     string    `json:"delivery_id"`
	EntryID        string    `json:"entry_id"`
	ID             string    `json:"id,omitempty"`
	Source         string    `json:"source,omitempty"`
	Session        string    `json:"session,omitempty"`
	Attempt        int       `json:"attempt"`
	DeliveredAt    time.Time `json:"delivered_at"`
	AcknowledgedAt time.Time `json:"acknowledged_at"`
	Reply          string    `json:"reply"`
	ReplyCut       bool      `json:"reply_cut,omitempty"`
	Abandoned      []string  `json:"abandoned,omitempty"`
	// Verdict is what has proved that the work is done; nil if nothing had to.
	Verdict *Proven `json:"verdict,omitempty"`
	Urgent  bool    `json:"urgent,omitempty"` // of the urgent lane
}

// DeadEntry is one record of .dead-letter.jsonl: heartbeat-rs's five fields,
// then ours.
type DeadEntry struct {
	EntryID     string    `json:"entry_id"`
	StartOffset int64     `json:"start_offset"`
	EndOffset   int64     `json:"end_offset"`
	RawLine     string    `json:"raw_line"` // empty when filed by reference
	DeliveredAt time.Time `json:"delivered_at"`

	DeliveryID string `json:"delivery_id,omitempty"`
	RawBase64  string `json:"raw_b64,omitempty"`
	ID         string `json:"id,omitempty"`
	Source     string `json:"source,omitempty"`
	Reason     Reason `json:"reason"`
	// Attempts are all hand-overs, Counted those of them that an interruption used up of
	// max-attempts.
	Attempts int       `json:"attempts"`
	Counted  int       `json:"counted,omitempty"`
	At       time.Time `json:"at"`
	Length   int64     `json:"length,omitempty"` // bytes of a line or prompt that is not here whole
	// Excerpt is the beginning of a prompt that was too large for the inbox.
	Excerpt string `json:"excerpt,omitempty"`
	Urgent  bool   `json:"urgent,omitempty"` // of the urgent lane, to which it returns
	// Cause says what happened, where that is known: how its session ended, what
	// became of the inbox.
	Cause string `json:"cause,omitempty"`
	// Iterations is how often its work was checked, Output what the last check said.
	Iterations int    `json:"iterations,omitempty"`
	Output     string `json:"output,omitempty"`
}

// Depth is how much is queued after the entry in flight.
type Depth struct {
	Entries int   `json:"entries"`          // complete, non-blank lines; counted up to Limit
	Urgent  int   `json:"urgent,omitempty"` // those of them that are urgent
	Bytes   int64 `json:"bytes"`            // bytes behind the cursor
	More    bool  `json:"more"`             // counting stopped at its limit
	Tail    bool  `json:"tail"`             // an unterminated line stands at the end
	// TailUrgent is true if that is the urgent lane's.
	TailUrgent bool `json:"-"`
	// State is that of the entry in flight, "" if there is none, and Failure its failure;
	// see InFlight.
	State   State  `json:"-"`
	Failure string `json:"failure,omitempty"`
	// Aside are entries that are set aside and wait for an answer, the first of them since
	// AsideSince; they are not among Entries. Returning are answered ones that are handed
	// over before all that is queued.
	Aside      int       `json:"aside,omitempty"`
	AsideSince time.Time `json:"aside_since,omitzero"`
	Returning  int       `json:"returning,omitempty"`
	// Names are those of the first entries: their ids, or the beginning of their entry
	// ids. Disturbed says what somebody has done to the inbox that may have taken
	// entries out of it, or ""; see Missing.
	Names     []string `json:"-"`
	Disturbed string   `json:"-"`
}
