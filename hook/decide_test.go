package hook

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/queue"
)

var (
	noon     = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	caller42 = Process{PID: 42, Start: 4200}
)

// liveRecord is a session in the middle of a turn.
func liveRecord(change ...func(*Record)) *Record {
	r := &Record{
		Version: 1,
		Terms: Terms{
			Agent: "a", Session: "S", Policy: Policy{Mode: Drain, Deliver: DeliverStderr, Background: BackgroundWait, MaxContinuations: 20},
		},
		Phase: Turn,
		Since: noon.Add(-time.Minute),
		Bound: Bound{Client: caller42, BoundAt: noon.Add(-time.Hour), ClientSession: "C", PromptID: "P1"},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func flightIn(s queue.State, change ...func(*queue.Given)) *queue.Given {
	g := &queue.Given{
		Entry: queue.Entry{
			Delivery: "d1", State: s, Tries: queue.Tries{Attempt: 1},
			Handover: queue.Handover{N: 1, Session: "S", Via: queue.ViaStop, PromptID: "P1"},
		},
		Text: queue.Text{Prompt: "do it"},
	}
	for _, c := range change {
		c(g)
	}
	return g
}

func byKickoff(g *queue.Given) { g.Handover.Via, g.Handover.PromptID = queue.ViaKickoff, "" }

func event(name string, change ...func(*client.Event)) *client.Event {
	p := &client.Event{Name: name, SessionID: "C", PromptID: "P1"}
	for _, c := range change {
		c(p)
	}
	return p
}

func active(p *client.Event)   { p.StopHookActive = true }
func otherID(p *client.Event)  { p.PromptID = "P2" }
func subagent(p *client.Event) { p.AgentID = "a0d2" }
func says(p *client.Event)     { p.LastMessage = "done" }
func hasTask(p *client.Event) {
	p.Tasks = []client.Task{{Kind: "shell", Status: "running", Description: "sleep"}}
}

func taskEnded(p *client.Event) {
	p.Tasks = []client.Task{{Kind: "shell", Status: "completed", Description: "sleep"}}
}

// TestDecideAboutTheEntryInFlight goes through the orders in which the client
// 2.1.329 was seen to call hooks, and an entry's states.
func TestDecideAboutTheEntryInFlight(t *testing.T) {
	t.Parallel()
	const (
		nothing = "nothing"
		look    = "look"
		ack     = "acknowledge"
		again   = "again"
		next    = "next"
		check   = "check"
		proving = "proving"
		void    = "void"
	)
	checked := func(r *Record) { r.Policy.Checked = true }
	marked := func(g *queue.Given) { g.Checked = true }
	foreign := func(r *Record) { r.Policy.ForeignStopHooks = true }
	ignore := func(r *Record) { r.Policy.Background = BackgroundIgnore }
	for _, c := range []struct {
		name     string
		record   *Record
		flight   *queue.Given
		event    *client.Event
		kickoff  string
		evidence evidence
		want     string // or the state it advances to
		phase    Phase
	}{
		{
			name: "kick-off submitted as ours", flight: flightIn(queue.Offered, byKickoff), kickoff: "K",
			event: event(client.UserPromptSubmit, func(p *client.Event) { p.Prompt = "K" }), want: "taken", phase: Turn,
		},
		{
			name: "kick-off, another prompt", flight: flightIn(queue.Offered, byKickoff), kickoff: "K",
			event: event(client.UserPromptSubmit, func(p *client.Event) { p.Prompt = "hello" }), want: nothing, phase: Turn,
		},
		{
			name: "kick-off that the client has changed", record: liveRecord(func(r *Record) { r.Phase = Starting }),
			flight: flightIn(queue.Offered, byKickoff), kickoff: handover.KickoffPrompt("a\u00adb"),
			event: event(client.UserPromptSubmit, func(p *client.Event) { p.Prompt = handover.KickoffPrompt("ab") }), want: "taken", phase: Turn,
		},
		{
			name: "a later prompt that begins like it", flight: flightIn(queue.Offered, byKickoff), kickoff: handover.KickoffPrompt("a\u00adb"),
			event: event(client.UserPromptSubmit, func(p *client.Event) { p.Prompt = handover.KickoffPrompt("ab") }), want: nothing, phase: Turn,
		},
		{
			name: "kick-off whose UserPromptSubmit hook died, at Stop", flight: flightIn(queue.Offered, byKickoff), kickoff: "K",
			event: event(client.Stop), want: look, phase: Turn,
		},
		{
			name: "kick-off in the transcript", flight: flightIn(queue.Offered, byKickoff), kickoff: "K",
			event: event(client.Stop), evidence: present, want: ack, phase: Turn,
		},
		{
			name: "kick-off never arrived", flight: flightIn(queue.Offered, byKickoff), kickoff: "K",
			event: event(client.Stop), evidence: absent, want: again, phase: Turn,
		},
		{
			name: "kick-off whose UserPromptSubmit hook died, a tool", flight: flightIn(queue.Offered, byKickoff), kickoff: "K",
			event: event(client.PreToolUse), want: look, phase: Turn,
		},

		{name: "Stop of the continuation", flight: flightIn(queue.Offered), event: event(client.Stop, active), want: ack, phase: Turn},
		{
			name: "Stop of the continuation beside a foreign hook (D)", record: liveRecord(foreign),
			flight: flightIn(queue.Offered), event: event(client.Stop, active), want: look, phase: Turn,
		},
		{
			name: "foreign hook blocked, ours was killed (D)", record: liveRecord(foreign),
			flight: flightIn(queue.Offered), event: event(client.Stop, active), evidence: absent, want: again, phase: Turn,
		},
		{name: "Stop that does not continue a Stop hook", flight: flightIn(queue.Offered), event: event(client.Stop), want: look, phase: Turn},
		{name: "Stop of a typed turn (K)", flight: flightIn(queue.Offered), event: event(client.Stop, active, otherID), want: look, phase: Turn},
		{name: "not written yet after 2 s (L)", flight: flightIn(queue.Offered), event: event(client.Stop), evidence: absent, want: again, phase: Turn},
		{
			name: "no prompt_id proves nothing", flight: flightIn(queue.Offered, func(g *queue.Given) { g.Handover.PromptID = "" }),
			event: event(client.Stop, active, func(p *client.Event) { p.PromptID = "" }), want: look, phase: Turn,
		},
		{name: "taken", flight: flightIn(queue.Taken), event: event(client.Stop), want: ack, phase: Turn},
		{name: "started", flight: flightIn(queue.Started), event: event(client.Stop, otherID), want: ack, phase: Turn},

		{
			name: "background task, entry just proven (A)", flight: flightIn(queue.Offered), event: event(client.Stop, active, hasTask),
			want: "background", phase: Background,
		},
		{name: "its notification's turn (A)", flight: flightIn(queue.Background), event: event(client.Stop, otherID), want: ack, phase: Turn},
		{
			name: "a task that never ends (B, E)", flight: flightIn(queue.Background), event: event(client.Stop, otherID, hasTask),
			want: "background", phase: Background,
		},
		{
			name: "background ignored", record: liveRecord(ignore), flight: flightIn(queue.Started), event: event(client.Stop, hasTask),
			want: ack, phase: Turn,
		},
		{name: "ended task is none (G)", flight: flightIn(queue.Started), event: event(client.Stop, taskEnded), want: ack, phase: Turn},
		{name: "session_crons never delay", flight: flightIn(queue.Started), event: event(client.Stop), want: ack, phase: Turn},

		{name: "tool of a taken entry", flight: flightIn(queue.Taken), event: event(client.PreToolUse), want: "started", phase: Turn},
		{name: "tool proves the hand-over", flight: flightIn(queue.Offered), event: event(client.PreToolUse), want: "started", phase: Turn},
		{name: "tool of another turn", flight: flightIn(queue.Offered), event: event(client.PreToolUse, otherID), want: look, phase: Turn},
		{
			name: "tool of another turn, not arrived", flight: flightIn(queue.Offered), event: event(client.PreToolUse, otherID),
			evidence: absent, want: nothing, phase: Turn,
		},
		{
			name: "tool beside a foreign hook", record: liveRecord(foreign), flight: flightIn(queue.Offered),
			event: event(client.PreToolUse), want: look, phase: Turn,
		},
		{name: "second tool", flight: flightIn(queue.Started), event: event(client.PreToolUse), want: nothing, phase: Turn},
		{name: "subagent's tool of a taken entry", flight: flightIn(queue.Taken), event: event(client.PreToolUse, subagent), want: "started", phase: Turn},
		{
			name: "subagent's tool proves nothing by itself", flight: flightIn(queue.Offered), event: event(client.PreToolUse, subagent),
			want: look, phase: Turn,
		},
		{name: "Stop of a subagent", flight: flightIn(queue.Taken), event: event(client.Stop, subagent), want: nothing, phase: Turn},

		{name: "a session of which each entry is checked", record: liveRecord(checked), flight: flightIn(queue.Started), event: event(client.Stop), want: check, phase: Turn},
		{name: "an entry that is checked", flight: flightIn(queue.Taken, marked), event: event(client.Stop), want: check, phase: Turn},
		{name: "it did not arrive", flight: flightIn(queue.Offered, marked), event: event(client.Stop), evidence: absent, want: again, phase: Turn},
		{name: "background tasks come first", flight: flightIn(queue.Started, marked), event: event(client.Stop, hasTask), want: "background", phase: Background},
		{name: "it is being checked already", flight: flightIn(queue.Checking, marked), event: event(client.Stop), want: proving, phase: Turn},
		{name: "its check has not passed", flight: flightIn(queue.Unproven, marked), event: event(client.Stop), want: again, phase: Turn},
		{
			name: "somebody types beside a check", flight: flightIn(queue.Checking, marked, byKickoff), kickoff: "K",
			event: event(client.UserPromptSubmit, func(p *client.Event) { p.Prompt = "K" }), want: void, phase: Turn,
		},
		{name: "a tool beside a check", flight: flightIn(queue.Checking, marked), event: event(client.PreToolUse), want: void, phase: Turn},
		{name: "a subagent's tool beside a check", flight: flightIn(queue.Checking, marked), event: event(client.PreToolUse, subagent), want: void, phase: Turn},
		{
			name: "background tasks are ignored", record: liveRecord(ignore), flight: flightIn(queue.Checking, marked),
			event: event(client.PreToolUse, subagent), want: nothing, phase: Turn,
		},
		{
			name: "a typed turn fails beside a check", record: liveRecord(func(r *Record) { r.Conversation = "C" }), flight: flightIn(queue.Checking, marked),
			event: event(client.StopFailure, func(p *client.Event) { p.Error = "rate_limit" }), want: nothing, phase: Ending,
		},

		{name: "nothing in flight", event: event(client.Stop), want: next, phase: Turn},
		{
			name: "API failure acknowledges nothing", flight: flightIn(queue.Taken),
			event: event(client.StopFailure, func(p *client.Event) { p.Error = "rate_limit" }), want: nothing, phase: Ending,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.record
			if r == nil {
				r = liveRecord()
			}
			d := decide(r, facts{now: noon, event: c.event, client: caller42, flight: c.flight, kickoff: c.kickoff, evidence: c.evidence})
			got := nothing
			switch {
			case d.look:
				got = look
			case d.check != nil:
				got = check
			case d.proving:
				got = proving
			case d.void:
				got = void
			case d.failure != "":
				got = d.failure
			case d.acknowledge != nil:
				got = ack
			case d.again:
				got = again
			case d.advance != "":
				got = string(d.advance)
			case d.next:
				got = next
			}
			if got != c.want || r.Phase != c.phase {
				t.Errorf("got %s in phase %s, want %s in %s", got, r.Phase, c.want, c.phase)
			}
		})
	}
}

func TestSubagentIsLookedForWithoutWaiting(t *testing.T) {
	t.Parallel()
	d := decide(liveRecord(), facts{now: noon, event: event(client.PreToolUse, subagent), client: caller42, flight: flightIn(queue.Offered)})
	if !d.look || d.patience != 0 {
		t.Errorf("look %v for %s, want one look", d.look, d.patience)
	}
}

func TestAcknowledgementCarriesReplyAndAbandonedTasks(t *testing.T) {
	t.Parallel()
	r := liveRecord(func(r *Record) { r.Policy.Background = BackgroundIgnore })
	d := decide(r, facts{now: noon, event: event(client.Stop, hasTask, says), client: caller42, flight: flightIn(queue.Started)})
	want := &queue.Reply{Session: "S", Text: "done", Abandoned: []string{"shell: sleep"}, At: noon}
	if diff := cmp.Diff(want, d.acknowledge); diff != "" {
		t.Error(diff)
	}
}

func TestReplyBeforeBackgroundTasksIsKept(t *testing.T) {
	t.Parallel()
	r := liveRecord()
	decide(r, facts{now: noon, event: event(client.Stop, hasTask, says), client: caller42, flight: flightIn(queue.Started)})
	if r.LastReply != "done" || r.BackgroundSince != noon || len(r.BackgroundTasks) != 1 {
		t.Fatalf("record: %+v", r)
	}
	later := noon.Add(time.Minute)
	decide(r, facts{now: later, event: event(client.Stop, hasTask), client: caller42, flight: flightIn(queue.Background)})
	if r.BackgroundSince != noon {
		t.Errorf("the limit began anew at %s", r.BackgroundSince)
	}
	d := decide(r, facts{now: later, event: event(client.Stop), client: caller42, flight: flightIn(queue.Background)})
	if d.acknowledge == nil || !r.BackgroundSince.IsZero() {
		t.Errorf("not acknowledged: %+v %+v", d, r)
	}
}

func TestPhases(t *testing.T) {
	t.Parallel()
	source := func(s string) func(*client.Event) {
		return func(p *client.Event) { p.Cause, p.SessionID = s, "C2" }
	}
	kind := func(s string) func(*client.Event) {
		return func(p *client.Event) { p.Notification.Kind, p.Notification.Message = s, "m" }
	}
	in := func(p Phase) func(*Record) {
		return func(r *Record) { r.Phase = p }
	}
	attached := func(r *Record) { r.Attached, r.TypedAt = 1, noon.Add(-time.Second) }
	ruled := func(why End, final bool) func(*Record) {
		return func(r *Record) { r.Phase, r.Ruling = Ending, &Ruling{Why: why, Final: final} }
	}
	for _, c := range []struct {
		name   string
		record *Record
		event  *client.Event
		phase  Phase
		ruling End
	}{
		{"start", liveRecord(in(Starting)), event(client.SessionStart, source("startup")), Starting, ""},
		{"clear: no Stop will come (M)", liveRecord(), event(client.SessionStart, source("clear")), Unattended, ""},
		{"clear while a hook waited (M)", liveRecord(in(Waiting)), event(client.SessionStart, source("clear")), Unattended, ""},
		{"a person resumes another conversation", liveRecord(), event(client.SessionStart, source("resume")), Unattended, ""},
		{"compaction in a turn", liveRecord(), event(client.SessionStart, source("compact")), Turn, ""},
		{"compaction while unattended", liveRecord(in(Unattended)), event(client.SessionStart, source("compact")), Unattended, ""},
		{"prompt", liveRecord(in(Starting)), event(client.UserPromptSubmit), Turn, ""},
		{"prompt while a hook waits (K)", liveRecord(in(Waiting)), event(client.UserPromptSubmit), Turn, ""},
		{"notification's turn takes drained back (G)", liveRecord(ruled(EndDrained, false)), event(client.UserPromptSubmit), Turn, ""},
		{"its tool does, when that hook died", liveRecord(ruled(EndReleased, false)), event(client.PreToolUse), Turn, ""},
		{"final stays", liveRecord(ruled(EndDrained, true)), event(client.UserPromptSubmit), Ending, EndDrained},
		{"a limit is not taken back", liveRecord(ruled(EndTimeout, false)), event(client.UserPromptSubmit), Ending, EndTimeout},
		{"subagent's tool while a hook waits", liveRecord(in(Waiting)), event(client.PreToolUse, subagent), Waiting, ""},
		{"dialog", liveRecord(), event(client.Notification, kind("permission_prompt")), Ending, EndDialog},
		{"question", liveRecord(), event(client.Notification, kind("agent_needs_input")), Ending, EndDialog},
		{"dialog, a person is there", liveRecord(attached), event(client.Notification, kind("permission_prompt")), Turn, ""},
		{"idle", liveRecord(), event(client.Notification, kind("idle_prompt")), Unattended, ""},
		{"idle while a task runs (B, E)", liveRecord(in(Background)), event(client.Notification, kind("idle_prompt")), Background, ""},
		{"idle while a check runs whose hook was killed", liveRecord(in(Checking)), event(client.Notification, kind("idle_prompt")), Checking, ""},
		{"clear while a check runs", liveRecord(in(Checking)), event(client.SessionStart, source("clear")), Unattended, ""},
		{"prompt while a check runs", liveRecord(in(Checking)), event(client.UserPromptSubmit), Turn, ""},
		{"API failure", liveRecord(), event(client.StopFailure), Ending, EndAPIFailure},
		{"API failure outweighs drained", liveRecord(ruled(EndDrained, false)), event(client.StopFailure), Ending, EndAPIFailure},
		{"end of the client", liveRecord(), event(client.SessionEnd, func(p *client.Event) { p.Cause = "other" }), Ending, ""},
		{"end of a conversation", liveRecord(), event(client.SessionEnd, func(p *client.Event) { p.Cause = "clear" }), Turn, ""},
		{"unknown event", liveRecord(), event("TeammateIdle"), Turn, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := c.record.Events
			decide(c.record, facts{now: noon, event: c.event, client: caller42})
			var ruling End
			if c.record.Ruling != nil {
				ruling = c.record.Ruling.Why
			}
			if c.record.Phase != c.phase || ruling != c.ruling {
				t.Errorf("phase %s, ruling %q; want %s, %q", c.record.Phase, ruling, c.phase, c.ruling)
			}
			if c.record.Events != before+1 || c.record.LastEvent != c.event.Name || c.record.LastEventAt != noon {
				t.Errorf("the event was not counted: %+v", c.record)
			}
			if c.phase != Waiting && c.record.Waiter != (Process{}) {
				t.Errorf("a waiter is left: %+v", c.record.Waiter)
			}
		})
	}
}

// TestAnEndAloneIsNoSession: a client that is ended at a question that it asks at
// its start calls SessionEnd, and counted as one that had begun.
func TestAnEndAloneIsNoSession(t *testing.T) {
	t.Parallel()
	r := liveRecord(func(r *Record) { r.BoundAt, r.Client, r.ClientSession = time.Time{}, Process{}, "" })
	decide(r, facts{now: noon, event: event(client.SessionEnd), client: caller42})
	if !r.BoundAt.IsZero() || r.LastEvent != client.SessionEnd {
		t.Errorf("%+v", r)
	}
}

func TestSessionIDFollowsSessionStartsOfTheBoundProcess(t *testing.T) {
	t.Parallel()
	r := liveRecord(func(r *Record) { r.BoundAt, r.Client, r.ClientSession = time.Time{}, Process{}, "" })
	decide(r, facts{now: noon, event: event(client.SessionStart), client: caller42})
	if r.Client != caller42 || r.BoundAt != noon || r.ClientSession != "C" {
		t.Fatalf("not bound: %+v", r)
	}
	if !stray(r, event(client.Stop, func(p *client.Event) { p.SessionID = "C2" })) {
		t.Error("another conversation's Stop counts")
	}
	start := event(client.SessionStart, func(p *client.Event) { p.SessionID, p.Cause = "C2", "clear" })
	if stray(r, start) {
		t.Error("a SessionStart does not count")
	}
	decide(r, facts{now: noon, event: start, client: caller42})
	if r.ClientSession != "C2" || r.BoundAt != noon || stray(r, event(client.Stop, func(p *client.Event) { p.SessionID = "C2" })) {
		t.Errorf("not followed: %+v", r)
	}
}

func TestPermissionDenialNamesWhatAndHow(t *testing.T) {
	t.Parallel()
	p := event(client.PermissionRequest, func(p *client.Event) {
		p.Tool.Name, p.Tool.Command = "Bash", "touch xfile && ls <a>"
	})
	d := decide(liveRecord(), facts{now: noon, event: p, client: caller42})
	for _, want := range []string{
		`"hookEventName":"PermissionRequest"`, `"behavior":"deny"`, `Bash(touch xfile && ls <a>)`, `Bash(touch *)`, "heartbeat apply",
	} {
		if !strings.Contains(string(d.print), want) {
			t.Errorf("%s lacks %q", d.print, want)
		}
	}
	typed := liveRecord(func(r *Record) { r.Attached, r.TypedAt = 1, noon.Add(-time.Second) })
	if d := decide(typed, facts{now: noon, event: p, client: caller42}); d.print != nil {
		t.Errorf("a person is there, and we answered %s", d.print)
	}
}

// TestTheFirstTurnOfASessionThatWasToldToFinish: a reload came while the client
// started, its kick-off was in work, and the session was ended as one that had
// not begun.
func TestTheFirstTurnOfASessionThatWasToldToFinish(t *testing.T) {
	t.Parallel()
	r := liveRecord(func(r *Record) {
		r.Phase = Starting
		r.End(EndShutdown, "the agent's definition changed", noon)
	})
	submitted := facts{now: noon, event: event(client.UserPromptSubmit, func(p *client.Event) { p.Prompt = "go" }), client: caller42, kickoff: "go"}
	submitted.flight = flightIn(queue.Offered, byKickoff)
	if d := decide(r, submitted); d.advance != queue.Taken || r.Phase != Turn || r.Ruling == nil {
		t.Fatalf("%+v, %+v, want the entry taken and a turn that may end", d, r)
	}
	stop := facts{now: noon, event: event(client.Stop, says), client: caller42, flight: flightIn(queue.Taken, byKickoff)}
	d := decide(r, stop)
	if d.acknowledge == nil || proceed(r, true, noon) != approve || r.Phase != Ending || r.Ruling.Why != EndShutdown {
		t.Errorf("%+v, %+v, want the entry done, and no other", d, r)
	}
	// A turn that begins when the end is final changes nothing.
	r.Ruling.Final = true
	if beginTurn(r, noon); r.Phase != Ending {
		t.Errorf("phase %s", r.Phase)
	}
}

// TestWhileAWorkIsChecked nothing is handed over, in no mode, and the turn ends for
// what ends that of a waiting session.
func TestWhileAWorkIsChecked(t *testing.T) {
	t.Parallel()
	types := func(r *Record) { r.Attached, r.TypedAt = 1, noon.Add(-time.Minute) }
	for _, c := range []struct {
		name   string
		record *Record
		want   step
		phase  Phase
		ruling End
	}{
		{"drain", liveRecord(), await, Turn, ""},
		{"persist", liveRecord(persistent), await, Turn, ""},
		{"as many hand-overs as there may be", liveRecord(func(r *Record) { r.Continuations = 20 }), await, Turn, ""},
		{"context entry", liveRecord(func(r *Record) { r.Policy.Context, r.Acknowledged = ContextEntry, 1 }), await, Turn, ""},
		{"a person types", liveRecord(types), await, Turn, ""},
		{"a person has submitted something", liveRecord(types, func(r *Record) { r.Line.Submitted = 1 }), approve, Turn, ""},
		{"another agent needs the slot", liveRecord(func(r *Record) { r.Yield = true }), approve, Ending, EndReleased},
		{"the session is to end", liveRecord(func(r *Record) { r.Ruling = &Ruling{Why: EndShutdown} }), approve, Ending, EndShutdown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := proves(c.record, noon)
			var ruling End
			if c.record.Ruling != nil {
				ruling = c.record.Ruling.Why
			}
			if got != c.want || c.record.Phase != c.phase || ruling != c.ruling {
				t.Errorf("step %d, phase %s, ruling %q; want %d, %s, %q", got, c.record.Phase, ruling, c.want, c.phase, c.ruling)
			}
		})
	}
}

func TestStep(t *testing.T) {
	t.Parallel()
	me := Process{PID: 7, Start: 70}
	waiting := func(r *Record) { r.Phase, r.Waiter, r.Policy.Mode, r.Policy.OnIdle = Waiting, me, Persist, IdleRelease }
	persist := func(r *Record) { r.Policy.Mode = Persist }
	types := func(r *Record) { r.Attached, r.TypedAt = 1, noon.Add(-time.Minute) }
	there := func(r *Record) { r.Attached, r.TypedAt = 1, noon.Add(-3*time.Minute) }
	submitted := func(r *Record) { r.Line.Submitted = 1 }
	entryContext := func(r *Record) { r.Policy.Context = ContextEntry }
	for _, c := range []struct {
		name   string
		record *Record
		waits  bool // the hook waits already
		entry  bool
		idle   bool
		want   step
		phase  Phase
		ruling End
	}{
		{"entry", liveRecord(), false, true, false, handOver, Turn, ""},
		{"drained", liveRecord(), false, false, false, approve, Ending, EndDrained},
		{"persist waits", liveRecord(persist), false, false, false, await, Turn, ""},
		{"runaway", liveRecord(func(r *Record) { r.Continuations = 20 }), false, true, false, approve, Ending, EndRunaway},
		{"no limit", liveRecord(func(r *Record) { r.Continuations, r.Policy.MaxContinuations = 99, 0 }), false, true, false, handOver, Turn, ""},
		{"ruled", liveRecord(func(r *Record) { r.Ruling = &Ruling{Why: EndTimeout} }), false, true, false, approve, Ending, EndTimeout},
		{"a person types", liveRecord(types), false, true, false, await, Turn, ""},
		{"a person typed long ago", liveRecord(func(r *Record) { r.Attached, r.TypedAt = 1, noon.Add(-3*time.Minute) }), false, true, false, handOver, Turn, ""},
		{"a person typed and left a minute ago", liveRecord(func(r *Record) { r.TypedAt = noon.Add(-time.Minute) }), false, true, false, await, Turn, ""},
		{"a person typed and left two minutes ago", liveRecord(func(r *Record) { r.TypedAt = noon.Add(-2 * time.Minute) }), false, true, false, handOver, Turn, ""},
		{"a person types, and nothing is queued", liveRecord(types), false, false, false, await, Turn, ""},
		{"a person types, and tasks run", liveRecord(types, func(r *Record) { r.BackgroundTasks = []string{"shell: x"} }), false, true, false, approve, Background, ""},
		{"a person is there, and nothing is queued", liveRecord(there), false, false, false, await, Turn, ""},
		{"a person is there, and something is queued", liveRecord(there), false, true, false, handOver, Turn, ""},
		{"a prompt was typed in the turn", liveRecord(persist, submitted), false, true, false, approve, Turn, ""},
		{"a prompt was typed in the last turn", liveRecord(submitted), false, false, false, approve, Turn, ""},
		{"a prompt was typed, the session is to end", liveRecord(submitted, func(r *Record) { r.Ruling = &Ruling{Why: EndTimeout} }), false, true, false, approve, Ending, EndTimeout},
		{"what was typed was taken in the turn", liveRecord(func(r *Record) { r.Line = Line{In: 2, Out: 2, Submitted: 2} }), false, true, false, handOver, Turn, ""},
		{"the turn was let end for what was typed, and nothing came", liveRecord(func(r *Record) { r.Line = Line{In: 1, Submitted: 1, Let: 1} }), false, true, false, handOver, Turn, ""},
		{"context entry, after one, a person types", liveRecord(entryContext, types, func(r *Record) { r.Acknowledged = 1 }), false, true, false, await, Turn, ""},
		{"context entry, first", liveRecord(entryContext), false, true, false, handOver, Turn, ""},
		{"context entry, after one", liveRecord(entryContext, func(r *Record) { r.Acknowledged = 1 }), false, true, false, approve, Ending, EndReleased},
		{"tasks of nobody run", liveRecord(func(r *Record) { r.BackgroundTasks = []string{"shell: x"} }), false, false, false, approve, Background, ""},
		{"yield", liveRecord(persist, func(r *Record) { r.Yield = true }), false, false, false, approve, Ending, EndReleased},
		{"yield with work", liveRecord(persist, func(r *Record) { r.Yield = true }), false, true, false, handOver, Turn, ""},

		{"nothing yet", liveRecord(waiting), true, false, false, await, Waiting, ""},
		{"work came", liveRecord(waiting), true, true, false, handOver, Waiting, ""},
		{"idle, release", liveRecord(waiting), true, false, true, approve, Ending, EndReleased},
		{"idle, tick", liveRecord(waiting, func(r *Record) { r.Policy.OnIdle = IdleTick }), true, false, true, idleTick, Waiting, ""},
		{"idle, but work came", liveRecord(waiting), true, true, true, handOver, Waiting, ""},
		{"yield while waiting", liveRecord(waiting, func(r *Record) { r.Yield = true }), true, false, false, approve, Ending, EndReleased},
		{"ruled while waiting", liveRecord(waiting, func(r *Record) { r.Ruling = &Ruling{Why: EndShutdown} }), true, true, false, approve, Ending, EndShutdown},
		{"a person's turn began", liveRecord(waiting, func(r *Record) { r.Phase = Turn }), true, true, false, desert, Turn, ""},
		{"another hook waits", liveRecord(waiting, func(r *Record) { r.Waiter.PID = 8 }), true, true, false, desert, Waiting, ""},
		{"work came, a person types", liveRecord(waiting, types), true, true, false, await, Waiting, ""},
		{"idle, a person types", liveRecord(waiting, types), true, false, true, await, Waiting, ""},
		{"idle, a person is there", liveRecord(waiting, there), true, false, true, await, Waiting, ""},
		{"a person is there, but the slot is needed", liveRecord(waiting, there, func(r *Record) { r.Yield = true }), true, false, false, approve, Ending, EndReleased},
		{"a command was typed while the hook waits", liveRecord(waiting, types, func(r *Record) { r.Line = Line{In: 1} }), true, true, false, approve, Turn, ""},
		{"a person held a session that drains, and has left", liveRecord(waiting, func(r *Record) { r.Policy.Mode = Drain }), true, false, false, approve, Ending, EndDrained},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got step
			if c.waits {
				v := vigil{me: me, began: noon.Add(-time.Hour), idleAt: noon.Add(time.Hour)}
				if c.idle {
					v.idleAt = noon
				}
				got = awake(c.record, v, c.entry, noon)
			} else {
				got = proceed(c.record, c.entry, noon)
			}
			var ruling End
			if c.record.Ruling != nil {
				ruling = c.record.Ruling.Why
			}
			if got != c.want || c.record.Phase != c.phase || ruling != c.ruling {
				t.Errorf("step %d, phase %s, ruling %q; want %d, %s, %q", got, c.record.Phase, ruling, c.want, c.phase, c.ruling)
			}
		})
	}
}
