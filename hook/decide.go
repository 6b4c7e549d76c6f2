package hook

import (
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
	"heartbeat/hook/handover"
	"heartbeat/queue"
)

// evidence says whether the transcript shows the hand-over of the entry in flight and,
// where that only names a file, that a tool has read it.
type evidence int

const (
	notLooked evidence = iota
	absent
	present
	unread // the name of the file arrived, and no tool has read it
)

// facts are everything that a decision depends on.
type facts struct {
	now   time.Time
	event *client.Event
	// handOvers is how many hand-overs the session had had when the hook was
	// called.
	handOvers int
	client    Process      // that called the hook
	flight    *queue.Given // nil when nothing of this session is in flight
	// kickoff is the prompt that the session was started with, when the entry in
	// flight was handed over in it.
	kickoff  string
	evidence evidence
}

// decision says what an event means for the entry in flight. What it means for the
// session is written to the record.
type decision struct {
	// look asks for the transcript: as it is now or, with patience, waiting for
	// what the client may still write. The decision is then made again with the
	// evidence.
	look     bool
	patience time.Duration

	advance queue.State // "" for none
	// goesOn is true when the session demonstrably continues an entry whose turn a
	// failure had ended.
	goesOn bool
	// failure is the API failure that has ended the entry's turn, or "".
	failure string
	// acknowledge, when not nil, says that the entry is done.
	acknowledge *queue.Reply
	// check, when not nil, says that the session claims to be done with an entry that
	// has to be checked; proving, that the verdict is to be waited for.
	check   *queue.Reply
	proving bool
	// void is true when a turn that nobody handed over works on an entry that is being
	// checked.
	void bool
	// unread is true when the session has not read the file in which the entry was handed
	// over: another one is to begin with it.
	unread bool
	// again is true when the entry did not arrive, or its check has not passed, and it
	// must be offered again.
	again bool
	// next is true when the session can take the next entry.
	next bool
	// print goes to stdout.
	print []byte
	// log goes to hook.log.
	log string
}

// decide changes the record as the event says and returns what it means for
// the entry in flight (README.md has the proofs and the states).
func decide(r *Record, f facts) decision {
	bind(r, f)
	r.Events++
	r.LastEvent, r.LastEventAt = f.event.Name, f.now
	if f.event.AgentID != "" {
		return decideSubagent(r, f)
	}
	if f.event.PermissionMode != "" {
		r.PermissionMode = f.event.PermissionMode
	}
	switch f.event.Name {
	case client.SessionStart:
		return decideSessionStart(r, f)
	case client.UserPromptSubmit:
		return decideUserPromptSubmit(r, f)
	case client.PreToolUse:
		beginTurn(r, f.now)
		return decideTool(r, f, client.Claude.Transcript.Behind)
	case client.Stop:
		return decideStop(r, f)
	case client.StopFailure:
		return decideStopFailure(r, f)
	case client.Notification:
		return decideNotification(r, f)
	case client.PermissionRequest:
		return decidePermission(r, f)
	case client.SessionEnd:
		if f.event.Cause != "clear" && f.event.Cause != "resume" {
			r.Enter(Ending, f.now)
		}
	}
	return decision{}
}

// bind ties the session to the client process of its first event. That event is
// SessionStart, or a later one when its hook was killed; a nested client can only
// come later. A client whose first event is its end has not begun: it was ended at
// a question that it asks at its start.
func bind(r *Record, f facts) {
	if r.BoundAt.IsZero() && f.event.Name != client.SessionEnd {
		r.Client, r.BoundAt = f.client, f.now
		r.ClientSession, r.Transcript = f.event.SessionID, f.event.Transcript
	}
}

// stray reports whether an event of the bound process belongs to a conversation
// other than the one that is followed.
func stray(r *Record, p *client.Event) bool {
	return !r.BoundAt.IsZero() && p.Name != client.SessionStart && p.SessionID != r.ClientSession
}

// decideSubagent: a subagent's tool is a side effect of the entry, but its
// events say nothing about the main agent's turn.
func decideSubagent(r *Record, f facts) decision {
	switch f.event.Name {
	case client.PreToolUse:
		return decideTool(r, f, 0)
	case client.PermissionRequest:
		return decidePermission(r, f)
	}
	return decision{}
}

func decideSessionStart(r *Record, f facts) decision {
	r.ClientSession, r.Transcript = f.event.SessionID, f.event.Transcript
	switch {
	case f.event.Cause == "compact":
		// A compaction in the middle of a turn, or after one: the session continues
		// what it was doing.
	case r.Phase == Starting || r.Phase == Ending:
	default:
		// /clear or /resume by a person: no Stop will come for it.
		r.PromptID = ""
		leave(r, Unattended, f.now)
	}
	return decision{}
}

func decideUserPromptSubmit(r *Record, f facts) decision {
	first := r.Phase == Starting
	noteSubmitted(r, f.event)
	r.PromptID = f.event.PromptID
	beginTurn(r, f.now)
	switch {
	case f.checking():
		return decision{void: true}
	case f.kickoff == "":
		return decision{}
	case awaitsGoingOn(f.flight) && client.SamePrompt(f.event.Prompt, f.kickoff):
		return decision{goesOn: true}
	case f.flight.State != queue.Offered:
		return decision{}
	case client.SamePrompt(f.event.Prompt, f.kickoff):
		return decision{advance: queue.Taken}
	case first && strings.HasPrefix(strings.TrimSpace(f.event.Prompt), strings.TrimSpace(handover.KickoffPrompt(""))):
		// Handing it over again would do it twice.
		return decision{advance: queue.Taken, log: "entry " + f.flight.Delivery + " reached the model changed: " +
			"the client does not carry every character of a prompt argument"}
	}
	return decision{}
}

// checking reports whether the entry in flight is being checked.
func (f *facts) checking() bool { return f.flight != nil && f.flight.State == queue.Checking }

// awaitsGoingOn reports whether the session was started to continue the entry in
// flight, and nothing shows yet that it does.
func awaitsGoingOn(f *queue.Given) bool { return f.Handover.Via == queue.ViaResume && f.Failure != "" }

// beginTurn records that the model is working. A ruling that the session ends for
// lack of work is taken back: a background task that has just finished may have
// started the turn.
func beginTurn(r *Record, now time.Time) {
	r.Settles = ""
	switch {
	case r.Ruling == nil:
	case r.Ruling.Final:
		return
	case light(r.Ruling.Why):
		r.Ruling = nil
	case r.Phase != Starting:
		return
	}
	// The session was told to finish before its first turn began. That ruling
	// stands: the session ends after this turn.
	leave(r, Turn, now)
}

// leave enters a phase that is not waiting.
func leave(r *Record, p Phase, now time.Time) {
	r.Enter(p, now)
	r.Waiter = Process{}
}

// decideTool: a tool is about to run, so the entry in flight can have side
// effects, if the session has it. A subagent's tool proves nothing by its
// prompt_id: it may work for an earlier entry.
func decideTool(r *Record, f facts, patience time.Duration) decision {
	if f.flight == nil {
		return decision{}
	}
	switch f.flight.State {
	case queue.Checking:
		// What background tasks do beside a check is no matter where they are ignored.
		return decision{void: f.event.AgentID == "" || r.Policy.Background != BackgroundIgnore}
	case queue.Taken:
		return decision{advance: queue.Started}
	case queue.Offered:
		handedOn := f.event.AgentID == "" && continues(f) && !r.strangers()
		if handedOn || f.evidence == present {
			return decision{advance: queue.Started}
		}
		if f.evidence == notLooked {
			return decision{look: true, patience: patience}
		}
	}
	return decision{}
}

// continues reports whether the event belongs to the prompt whose Stop handed
// the entry over. A turn that anything else began has another prompt_id.
func continues(f facts) bool {
	return f.flight.Handover.Via == queue.ViaStop && f.event.PromptID != "" && f.event.PromptID == f.flight.Handover.PromptID
}

// decideStop: the main agent's turn is over.
func decideStop(r *Record, f facts) decision {
	if f.event.Cut {
		leave(r, Unattended, f.now)
		return decision{log: "the payload was cut off: nothing is acknowledged or handed over"}
	}
	r.PromptID = f.event.PromptID
	running := f.event.Running()
	waits := r.Policy.Background != BackgroundIgnore && len(running) > 0
	noteTasks(r, running, f.now)
	if f.flight == nil {
		return decision{next: true}
	}
	if twin(r, f) {
		return decision{log: "two of our Stop hooks were called for one Stop: the other one handed over " + f.flight.Delivery}
	}
	switch f.flight.State {
	case queue.Checking:
		return decision{proving: true}
	case queue.Unproven:
		return decision{again: true}
	}
	if awaitsGoingOn(f.flight) && f.evidence != present {
		if f.evidence == notLooked {
			return decision{look: true, patience: client.Claude.Transcript.Behind}
		}
		leave(r, Unattended, f.now)
		return decision{log: "the session does not continue with entry " + f.flight.Delivery}
	}
	if handover.ByFile(f.flight) {
		switch {
		case f.evidence == notLooked:
			return decision{look: true, patience: client.Claude.Transcript.Behind}
		case f.evidence == unread && !waits:
			r.End(EndReleased, "it has not read the file in which its prompt was handed over", f.now)
			leave(r, Ending, f.now)
			return decision{unread: true, log: "entry " + f.flight.Delivery + " was not read: no tool has read " + f.flight.Handover.File +
				", in which it was handed over. Another session begins with it, if it fits a command line. Do permissions deny Read?"}
		}
	}
	if f.flight.State == queue.Offered && f.evidence != present && f.evidence != unread {
		handedOn := f.event.StopHookActive && continues(f) && !r.strangers()
		switch {
		case handedOn:
		case f.evidence == notLooked:
			return decision{look: true, patience: client.Claude.Transcript.Behind}
		default:
			return decision{again: true, log: "entry " + f.flight.Delivery + " did not arrive: offered again"}
		}
	}
	if waits {
		r.LastReply = KeepReply(f.event.LastMessage)
		leave(r, Background, f.now)
		return decision{advance: queue.Background}
	}
	done := &queue.Reply{Session: r.Session, Text: KeepReply(reply(r, f.event)), Abandoned: running, At: f.now}
	if r.checks(&f.flight.Entry) {
		return decision{proving: true, check: done}
	}
	return decision{next: true, acknowledge: done}
}

// twin reports whether the entry in flight was handed over after this Stop hook was
// called. Then this call cannot be the Stop that follows the hand-over; it belongs
// to the same Stop, because the hook is installed twice.
func twin(r *Record, f facts) bool {
	return f.flight.Handover.Via == queue.ViaStop && f.flight.State == queue.Offered && r.HandOvers != f.handOvers
}

// noteTasks records which tasks run in the background, and since when.
func noteTasks(r *Record, running []string, now time.Time) {
	r.BackgroundTasks = running
	switch {
	case len(running) == 0:
		r.BackgroundSince = time.Time{}
	case r.BackgroundSince.IsZero():
		r.BackgroundSince = now
	}
}

// KeepReply cuts an agent's last message to what a session record keeps: a little
// more than the outbox keeps, so that the outbox can tell that it was cut.
func KeepReply(text string) string { return foreign.Cut(text, queue.MaxReply+utf8.UTFMax) }

// reply returns the agent's last message, or the one from before its background
// tasks.
func reply(r *Record, p *client.Event) string {
	if p.LastMessage != "" {
		return p.LastMessage
	}
	return r.LastReply
}

// decideStopFailure: the client gave up on the API, and the turn is over. The entry
// is marked with the failure if it is demonstrably part of the conversation.
func decideStopFailure(r *Record, f facts) decision {
	leave(r, Ending, f.now)
	kind := foreign.Short(client.Claude.Hooks.Failure(f.event), maxFailure)
	r.End(EndAPIFailure, kind, f.now)
	if r.Ruling.Why == EndAPIFailure {
		r.Ruling.Told = foreign.Short(f.event.LastMessage, maxTold)
	}
	d := decision{log: "the client gave up on the API: " + f.event.Error + ": " + f.event.LastMessage}
	if kind != f.event.Error {
		d.log = "taken for " + kind + ": " + d.log
	}
	if f.flight == nil || r.Conversation != f.event.SessionID || f.checking() || f.flight.State == queue.Unproven {
		return d
	}
	if f.flight.State == queue.Offered && f.evidence != present {
		handedOn := continues(f) && !r.strangers()
		switch {
		case handedOn:
		case f.evidence == notLooked:
			return decision{look: true, patience: client.Claude.Transcript.Behind}
		default:
			return d // it never arrived
		}
	}
	if f.flight.State == queue.Offered {
		d.advance = queue.Taken
	}
	d.failure = kind
	return d
}

// maxFailure bounds the name of a kind of failure, which is one word, and maxTold
// what people are told of it.
const (
	maxFailure = 100
	maxTold    = 1 << 10
)

func decideNotification(r *Record, f facts) decision {
	switch f.event.Notification.Kind {
	case "permission_prompt", "agent_needs_input":
		if r.Attached > 0 {
			return decision{log: "a dialog waits for the person who is attached: " + f.event.Notification.Message}
		}
		leave(r, Ending, f.now)
		r.End(EndDialog, f.event.Notification.Message, f.now)
		return decision{log: "a dialog waits for a person: " + f.event.Notification.Message}
	case "idle_prompt":
		if r.Phase != Background && r.Phase != Checking && r.Phase != Ending && r.Phase != Settling {
			leave(r, Unattended, f.now)
		}
	}
	return decision{}
}

// decidePermission refuses what would open a dialog, unless a person is
// there to answer it.
func decidePermission(r *Record, f facts) decision {
	if attended(r, f.now) {
		return decision{}
	}
	return decision{print: denial(f.event), log: refused(f.event)}
}
