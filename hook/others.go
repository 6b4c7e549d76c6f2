package hook

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
	"heartbeat/hook/handover"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// goneOn records that the client went on after a Stop at which we let it end, or
// that others beside us made it go on: others are their command lines. Under the
// rule learn the session hands over nothing more from then on: otherwise their text
// and ours would go out together, and the entry before would be taken for done.
func (r *Record) goneOn(others []string, now time.Time) {
	r.AddGates(others)
	r.Prolonged = true
	if r.Ruling != nil && light(r.Ruling.Why) && !r.Ruling.Final {
		r.Ruling = nil
	}
	r.Settles = ""
	leave(r, Turn, now)
}

// AddGates remembers the command lines of hooks, not ours, that have the client go on.
func (r *Record) AddGates(commands []string) {
	for _, command := range commands {
		if len(r.Gates) < handover.MaxGates {
			r.Gates = client.AppendNew(r.Gates, handover.ShownCommand(command))
		}
	}
}

// strangers reports whether other Stop hooks run beside ours.
func (r *Record) strangers() bool { return r.Policy.ForeignStopHooks || r.Prolonged }

// Gated reports whether the session takes one entry only, because a hook is known
// to make the client go on, from an earlier session or this one.
func (r *Record) Gated() bool {
	return r.Policy.Gated || r.Prolonged && r.Policy.Foreign == ForeignLearn
}

// heedOthers finds out from the transcript, at a Stop, whether other Stop hooks
// made the client go on since the last Stop. The lock is released while it reads.
// It returns false when the session was lost meanwhile.
func (t *tick) heedOthers() bool {
	r := t.Record
	if t.event.Name != client.Stop || t.event.AgentID != "" || t.event.Cut || r.HandOvers != t.handOvers {
		return true
	}
	spoke := r.Spoke
	if !t.event.StopHookActive || spoke && !r.strangers() {
		if r.Spoke = false; spoke {
			t.save() // what follows may read it again
		}
		return true
	}
	heard, mine := r.Heard, ""
	if heard.Path != t.event.Transcript {
		heard = handover.Stops{Path: t.event.Transcript}
	}
	if spoke {
		mine = t.lastSaid()
	}
	t.exit()
	others := heard.Others(mine, client.Claude.Transcript.Behind)
	if !t.enter(turnPatience) {
		return false
	}
	r = t.Record
	r.Heard, r.Spoke = heard, false
	if !spoke {
		r.Continuations++
		if len(others) == 0 {
			others = []string{client.UnknownHook}
		}
	}
	if len(others) > 0 {
		r.goneOn(others, time.Now())
		t.answers(WentOn, NameHooks(others))
	}
	t.save() // what follows may read it again
	return true
}

// lastSaid returns the text with which our last Stop hook made the client go on.
func (t *tick) lastSaid() string {
	g := t.InFlight()
	if g == nil {
		return handover.IdleTick
	}
	return handover.PromptFor(g)
}

// settles reports whether the entry of this Stop is done only once it is known that
// no other Stop hook makes the client go on. next says that another entry is
// queued. Where we hand over or wait, only the next Stop could tell, so the entry
// is done now, unless other hooks are known to make the client go on.
func settles(r *Record, next bool, now time.Time) bool {
	p := r.Policy
	switch {
	case !r.strangers():
		return false
	case r.Gated() || r.Ruling != nil || p.Context == ContextEntry:
		return true
	case typing(r, now):
		return false
	}
	return !next && p.Mode != Persist && r.Attached == 0
}

// settle lets the turn end; the shim then finds out whether it really did.
func (t *tick) settle(said *queue.Reply) {
	at := wire.RefOf(&t.last.Entry)
	if _, ok := t.ask(wire.Step{Do: wire.Advance, At: at, State: queue.Taken, PromptID: t.event.PromptID}); !ok {
		t.giveUp()
		return
	}
	r := t.Record
	r.LastReply, r.Settles = said.Text, at.Delivery
	if r.Prolonged && runsAway(r) {
		t.runAway()
		return
	}
	leave(r, Settling, time.Now())
	t.answers(LetGo, r.whyLetGo())
	t.save()
}

// letGo records that a turn ends with nothing handed over. Where there are other
// Stop hooks the client may go on: the shim finds out.
func (t *tick) letGo() {
	if r := t.Record; r.strangers() && r.Phase == Ending && r.Ruling != nil && r.Ruling.Why != EndRunaway {
		leave(r, Settling, time.Now())
	}
}

// runsAway reports whether the session has reached the limit of turns without an
// acknowledgement.
func runsAway(r *Record) bool {
	return r.Policy.MaxContinuations > 0 && r.Continuations >= r.Policy.MaxContinuations
}

// holdRunaway is how long the Stop of a runaway session is held open. The client
// makes no model call while a Stop hook runs, and the shim ends it meanwhile.
const holdRunaway = 30 * time.Second

// NameHooks names hooks by their command lines, for a message to a person: the
// first two of them, each shortened as far as it can still be told from the others.
func NameHooks(commands []string) string {
	var names []string
	for i, command := range commands {
		if i == 2 {
			names = append(names, fmt.Sprintf("%d more", len(commands)-i))
			break
		}
		names = append(names, foreign.Short(command, 60))
	}
	return cmp.Or(strings.Join(names, "; "), "another Stop hook")
}

// runAway ends the session: what other hooks said by now would become the next
// turn.
func (t *tick) runAway() {
	r := t.Record
	why := "turns without an acknowledgement"
	if len(r.Gates) > 0 {
		why = NameHooks(r.Gates) + " has the client go on"
	}
	r.End(EndRunaway, why, time.Now())
	leave(r, Ending, time.Now())
	t.answers(LetGo, r.whyLetGo())
	t.save()
	t.exit()
	held := time.NewTimer(holdRunaway)
	defer held.Stop()
	for changed, stop := t.live.Watch(); ; {
		select {
		case <-changed:
			if !t.gone() {
				continue
			}
		case <-held.C:
		case <-t.ctx.Done():
		}
		stop()
		return
	}
}

// Stopped reports whether the client demonstrably stopped after the Stop that the
// session settles.
func (r *Record) Stopped(s *handover.Stops) bool { return s.Stopped(r.Transcript, r.PromptID) }

// CutShort returns the hook that made the client stop at the Stop at which ours
// handed over, or "".
func (r *Record) CutShort(s *handover.Stops) string {
	if r.Phase != Turn || !r.Spoke || !r.strangers() {
		return ""
	}
	return s.CutShort(r.Transcript, r.PromptID)
}

// PassedOver returns the hooks that make the client go on without ours being
// called, once the session has reached the limit of turns without an
// acknowledgement: only the shim can end it then. Before that it returns nil.
func (r *Record) PassedOver(s *handover.Stops) []string {
	if r.Phase != Turn || r.Policy.MaxContinuations <= 0 {
		return nil
	}
	times, by := s.PassedOver(r.Transcript)
	if times == 0 || r.Continuations+times < r.Policy.MaxContinuations {
		return nil
	}
	return by
}

// Finished returns what a session that is gone has said of an entry, if it had settled its last
// turn; nil when nothing proves that. Whoever could forge this proof could have written the outbox
// as well.
func Finished(home, session, delivery string, now time.Time) *queue.Reply {
	shown, err := ReadRecord(home)
	if err != nil || shown == nil || shown.Session != session || shown.Settles != delivery {
		return nil
	}
	r := (*Record)(shown)
	if s := (handover.Stops{Path: r.Transcript}); !r.Stopped(&s) {
		return nil
	}
	said := r.Says(now)
	return &said
}

// Says is what the session has said of the entry whose turn it settles.
func (r *Record) Says(now time.Time) queue.Reply {
	return queue.Reply{Session: r.Session, Text: r.LastReply, Abandoned: r.BackgroundTasks, At: now}
}
