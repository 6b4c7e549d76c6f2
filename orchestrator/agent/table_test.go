package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// fresh is an agent to which nothing has happened.
func fresh() *Agent {
	return New(&config.Agent{
		Name: "a", Mode: hook.Drain, OnIdle: hook.IdleRelease, MaxRestarts: 3, RestartWindow: time.Hour, StuckAfter: time.Hour,
		ClientDrift: config.DriftHolds,
	}, noon)
}

// situation is one of those in which an agent can be.
type situation struct {
	name string
	into func(a *Agent)
}

// The four parts of an agent, and the situations of each.
var (
	wishes = []situation{
		{"", func(*Agent) {}},
		{"paused", func(a *Agent) { a.Pause(memory.Paused{Since: noon}) }},
		{"redefined", func(a *Agent) { a.Redefine(fresh().def) }},
		{"removed", func(a *Agent) { a.Remove() }},
		{"expected", func(a *Agent) { a.Expects() }},
	}
	places = []situation{
		{"", func(*Agent) {}},
		{"lost", func(a *Agent) { a.Loses("it is not there") }},
		{"retaking", func(a *Agent) { a.Replaced() }},
	}
	pasts = []situation{
		{"", func(*Agent) {}},
		{"back-off", func(a *Agent) { a.Fails(Failed{Text: "x"}, noon, 0) }},
		{"hold", func(a *Agent) { a.Fails(Failed{Text: "x", Person: true}, noon, 0) }},
		{"blocked", func(a *Agent) { a.Fails(Failed{Text: "x", Fix: "y", Blocks: true}, noon, 0) }},
		{"parked", func(a *Agent) { a.Parks(Parking{Until: noon.Add(time.Minute), Reason: "a limit"}, noon) }},
		{"owing", func(a *Agent) { a.Recovered(session.Outcome{}, &Failed{Text: "x"}, noon, 0) }},
		{"asked", func(a *Agent) {
			a.blocks(Failed{Text: "x", Fix: "y", Blocks: true}, noon)
			a.past.blocked.answers = "answers"
		}},
		{"halted", func(a *Agent) {
			a.Fails(Failed{Text: "x"}, noon, 0)
			a.LeftInFlight(&hook.Work{DeliveryID: "d"})
		}},
		{"on its account", func(a *Agent) { a.Parks(Parking{Person: true, Reason: "a login"}, noon) }},
		{"probed", func(a *Agent) { a.Begin("", noon); a.Probes(badClient) }},
		{"with a bad client", func(a *Agent) { a.Meets(badClient, noon) }},
		{"overspent", func(a *Agent) { a.Overspends(Parking{Until: noon.Add(time.Minute), Reason: "it is spent"}, noon) }},
	}
	lives = []situation{
		{"none", func(*Agent) {}},
		{"waiting", func(a *Agent) { a.Begin("all session slots are taken", noon) }},
		{"recovering", func(a *Agent) { a.Recover("recovered") }},
		{"starting", func(a *Agent) { a.Begin("", noon) }},
		{"running", func(a *Agent) { a.Begin("", noon); a.Launched("s", Runs, noon) }},
		{"idling", func(a *Agent) { a.Begin("", noon); a.Launched("s", Runs, noon); a.Reports(waits, noon) }},
		{"ending", func(a *Agent) {
			a.Begin("", noon)
			a.Launched("s", Runs, noon)
			a.Reports(session.Report{Phase: hook.Ending}, noon)
		}},
	}
	goodClient = Client{ID: "good", Name: "good 1"}
	badClient  = Client{ID: "bad", Name: "bad 2", Breaks: "something", Fix: "go back"}
	waits      = session.Report{At: noon, Phase: hook.Waiting}
)

// later is when events come.
var later = noon.Add(time.Second / 2)

// event is one that can happen, by the name of its method.
type event struct {
	name    string
	happens func(a *Agent)
}

var all = []event{
	{"Begin", func(a *Agent) { a.Begin("", later) }},
	{"Begin (line)", func(a *Agent) { a.Begin("all session slots are taken", later) }},
	{"NotBegun", func(a *Agent) { a.NotBegun("taken back") }},
	{"Fails", func(a *Agent) { a.Fails(Failed{Text: "x"}, later, 0) }},
	{"Fails (person)", func(a *Agent) { a.Fails(Failed{Text: "x", Person: true}, later, 0) }},
	{"Fails (blocked)", func(a *Agent) { a.Fails(Failed{Text: "x", Fix: "y", Blocks: true}, later, 0) }},
	{"Asked (gone)", func(a *Agent) { a.Asked(nil, "", later) }},
	{"Asked (there)", func(a *Agent) { a.Asked(&Failed{Text: "x", Fix: "y", Blocks: true}, "", later) }},
	{"Asked (same)", func(a *Agent) { a.Asked(nil, "answers", later) }},
	{"Asked (unknown)", func(a *Agent) { a.Asked(&Failed{Text: "x"}, "", later) }},
	{"Foresees", func(a *Agent) { a.Foresees(Failed{Text: "x", Fix: "y", Blocks: true}, later) }},
	{"Foresees (unknown)", func(a *Agent) { a.Foresees(Failed{Text: "x"}, later) }},
	{"AskNow", func(a *Agent) { a.AskNow(later) }},
	{"Launched", func(a *Agent) { a.Launched("t", Runs, later) }},
	{"Launched (stop)", func(a *Agent) { a.Launched("t", EndsNow, later) }},
	{"Reports (turn)", func(a *Agent) { a.Reports(session.Report{Phase: hook.Turn, At: later, Acknowledged: 1}, later) }},
	{"Reports (ending)", func(a *Agent) { a.Reports(session.Report{Phase: hook.Ending}, later) }},
	{"Yield", func(a *Agent) { a.Yield() }},
	{"Finish", func(a *Agent) { a.Finish(FinishSlotTime) }},
	{"Stop", func(a *Agent) { a.Stop() }},
	{"Ended (drained)", func(a *Agent) { a.Ended(End{Outcome: session.Outcome{Why: hook.EndDrained}}, later, 0) }},
	{"Ended (crashed)", func(a *Agent) { a.Ended(End{Outcome: session.Outcome{Why: hook.EndCrashed}, Left: true}, later, 0) }},
	{"Ended (no hooks)", func(a *Agent) { a.Ended(End{Outcome: session.Outcome{Why: hook.EndNoHooks}}, later, 0) }},
	{"Ended (asked)", func(a *Agent) {
		o := session.Outcome{Why: hook.EndStartTimeout, Asks: &session.Question{What: "a thing", Do: "answer"}}
		a.Ended(End{Outcome: o, Answers: "answers"}, later, 0)
	}},
	{"Ended (account)", func(a *Agent) {
		a.Ended(End{Parks: &Parking{Until: later.Add(time.Minute), Reason: "a limit"}}, later, 0)
	}},
	{"Ended (owing)", func(a *Agent) {
		a.Ended(End{Outcome: session.Outcome{Why: hook.EndDrained}, Unrecovered: &Failed{Text: "x"}}, later, 0)
	}},
	{"Ended (lost)", func(a *Agent) {
		a.Ended(End{Outcome: session.Outcome{Why: hook.EndFinished, Loss: &session.Loss{What: "gone"}}}, later, 0)
	}},
	{"Probes", func(a *Agent) { a.Probes(badClient) }},
	{"Probed (good)", func(a *Agent) { a.Probed(Client{ID: "bad"}, later) }},
	{"Probed (bad)", func(a *Agent) { a.Probed(badClient, later) }},
	{"Meets (good)", func(a *Agent) { a.Meets(goodClient, later) }},
	{"Meets (bad)", func(a *Agent) { a.Meets(badClient, later) }},
	{"FindsClient (another)", func(a *Agent) { a.FindsClient("good", later) }},
	{"FindsClient (the same)", func(a *Agent) { a.FindsClient("bad", later) }},
	{"Parks", func(a *Agent) { a.Parks(Parking{Until: later.Add(time.Minute), Reason: "a limit"}, later) }},
	{"Overspends", func(a *Agent) { a.Overspends(Parking{Until: later.Add(time.Minute), Reason: "it is spent"}, later) }},
	{"WithinBudget", func(a *Agent) { a.WithinBudget(later) }},
	{"Unparks", func(a *Agent) { a.Unparks() }},
	{"Recover", func(a *Agent) { a.Recover("recovered") }},
	{"Recovered", func(a *Agent) { a.Recovered(session.Outcome{}, nil, later, 0) }},
	{"Recovered (not)", func(a *Agent) { a.Recovered(session.Outcome{}, &Failed{Text: "x"}, later, 0) }},
	{"Pause", func(a *Agent) { a.Pause(memory.Paused{Since: later, By: "b"}) }},
	{"Resume", func(a *Agent) { a.Resume(later) }},
	{"Restart", func(a *Agent) { a.Restart(false) }},
	{"Restart (now)", func(a *Agent) { a.Restart(true) }},
	{"Cancel", func(a *Agent) { a.Cancel("", false) }},
	{"Cancel (again)", func(a *Agent) { a.Cancel("", true) }},
	{"Cancel (other)", func(a *Agent) { a.Cancel("another", false) }},
	{"Remove", func(a *Agent) { a.Remove() }},
	{"Redefine", func(a *Agent) { a.Redefine(fresh().def) }},
	{"TakeOver", func(a *Agent) { a.TakeOver() }},
	{"Loses", func(a *Agent) { a.Loses("it is not there") }},
	{"Finds", func(a *Agent) { a.Finds("it is there again") }},
	{"Replaced", func(a *Agent) { a.Replaced() }},
	{"Retaken", func(a *Agent) { a.Retaken(later) }},
	{"Sees", func(a *Agent) { a.Sees(a.Folders(), "it is gone", nil, nil, later) }},
	{"Recounted", func(a *Agent) { a.Recounted(7, nil, later) }},
	{"Parks (person)", func(a *Agent) { a.Parks(Parking{Person: true, Reason: "a login"}, noon) }},
	{"FinishForLimit", func(a *Agent) { a.FinishForLimit("its account is parked") }},
	{"Nothing", func(a *Agent) { a.Nothing(true, later) }},
	{"InspectLater", func(a *Agent) { a.InspectLater(later) }},
	{"CountLater", func(a *Agent) { a.CountLater(later) }},
	{"ReclaimLater", func(a *Agent) { a.ReclaimLater(later) }},
	{"Ring (early)", func(a *Agent) { a.Ring(later) }},
	{"Ring", func(a *Agent) { a.Ring(later.Add(2 * time.Hour)) }},
}

// TestEachEventInEachSituation: an event changes something or nothing, it never
// makes a second session or an agent that nothing wakes.
func TestEachEventInEachSituation(t *testing.T) {
	t.Parallel()
	situations := 0
	for _, wish := range wishes {
		for _, place := range places {
			for _, past := range pasts {
				for _, life := range lives {
					situations++
					for _, e := range all {
						a := fresh()
						for _, s := range []situation{past, life, place, wish} {
							s.into(a)
						}
						a.Settle(noon)
						before := a.Doing()
						name := strings.Join([]string{wish.name, place.name, past.name, life.name, e.name}, " ")
						e.happens(a)
						a.Adopt(later)
						a.Settle(later)
						if problem := sound(a, before, later); problem != "" {
							t.Errorf("%s: %s", name, problem)
						}
					}
				}
			}
		}
	}
	t.Logf("%d situations, %d events", situations, len(all))
}

// follows are the changes of what is done with an agent that may be.
var follows = map[Doing][]Doing{
	None:       {Recovering, Starting},
	Recovering: {None},
	Starting:   {None, Live},
	Live:       {None},
}

// sound says what is wrong with an agent, or "".
func sound(a *Agent, before Doing, now time.Time) string {
	st, doing := a.State(), a.Doing()
	r := a.Standing(now)
	switch {
	case doing != before && !slices.Contains(follows[before], doing) && (before != Live || doing != Recovering):
		return fmt.Sprintf("from %d to %d", before, doing)
	case !slices.Contains(status.States(), st):
		return "no state: " + string(st)
	case (doing == Live) != (st == status.Running || st == status.Ending), (doing == Starting) != (st == status.Starting):
		return fmt.Sprintf("%s while it does %d", st, doing)
	case st == status.Held && (r.Text == "" || !r.Until.IsZero()):
		return "held, and nothing says why, or that a person has to come"
	case a.past.blocked.why != "" && doing == None && !a.Removed() && a.Next().IsZero():
		return "blocked, and never asked again"
	case a.past.client.held && doing == None && !a.Removed() && a.Next().IsZero():
		return "held for its client, and nobody looks for another one"
	case (st == status.BackingOff || st == status.Parked) && (r.Until.IsZero() || a.Next().IsZero() || a.Next().After(r.Until)):
		return fmt.Sprintf("%s until %v, and woken at %v", st, r.Until, a.Next())
	case st == status.Waiting && (r.Text == "" || !a.Wants(now)):
		return "in the line, and it would not start"
	}
	return wedged(a, now)
}

// wedged lets time pass, and then everything happen that is under way: what no
// person and no other agent keeps from starting wants work in the end.
func wedged(a *Agent, now time.Time) string {
	for range 10 {
		switch a.Doing() {
		case Recovering:
			a.Recovered(session.Outcome{}, nil, now, 0)
		case Starting:
			a.Launched("s", Runs, now)
		case Live:
			a.Ended(End{Outcome: session.Outcome{Why: hook.EndDrained, Acknowledged: 1}}, now, 0)
		case None:
		}
		a.Probed(badClient, now)
		a.Adopt(now)
		if next := a.Next(); !next.IsZero() {
			now = next
			a.Ring(now)
			if next = a.Next(); !next.IsZero() && !next.After(now) {
				return "it is woken again at once, without end"
			}
		}
		a.Settle(now)
	}
	r := a.Standing(now)
	switch kept := a.Removed() || a.Expected() || a.Place() != Ours || r.State == status.Held; {
	case kept && a.Wants(now):
		return "it would start although something keeps it from that"
	case !kept && !a.Wants(now):
		return fmt.Sprintf("it never starts again: %+v", r)
	}
	return ""
}

// TestTransitions is what an agent does after an event, by what it did before:
// "." where nothing changes.
func TestTransitions(t *testing.T) {
	t.Parallel()
	from := []string{"idle", "waiting", "starting", "running", "ending", "backing-off", "parked", "held", "paused", "blocked", "asked"}
	into := map[string]func(a *Agent){
		"idle": lives[0].into, "waiting": lives[1].into, "starting": lives[3].into, "running": lives[4].into, "ending": lives[6].into,
		"backing-off": pasts[1].into, "parked": pasts[4].into, "held": pasts[2].into, "paused": wishes[1].into,
		"blocked": pasts[3].into, "asked": pasts[6].into,
	}
	for name, want := range map[string]string{
		//                   idle        waiting     starting    running     ending      backing-off parked      held        paused      blocked     asked
		"Begin":            "starting    starting    .           .           .           .           .           .           .           .           .",
		"NotBegun":         ".           .           idle        .           .           .           .           .           .           .           .",
		"Fails":            "backing-off backing-off backing-off .           .           .           backing-off backing-off .           backing-off backing-off",
		"Fails (person)":   "held        held        held        .           .           held        held        .           .           .           .",
		"Fails (blocked)":  "held        held        held        .           .           held        held        .           .           .           .",
		"Asked (gone)":     ".           .           .           .           .           .           .           .           .           idle        idle",
		"Asked (same)":     ".           .           .           .           .           .           .           .           .           idle        .",
		"Asked (there)":    ".           .           .           .           .           .           .           .           .           .           .",
		"Foresees":         "held        held        .           .           .           .           .           .           .           .           .",
		"Launched":         ".           .           running     .           .           .           .           .           .           .           .",
		"Reports (turn)":   ".           .           .           .           running     .           .           .           .           .           .",
		"Reports (ending)": ".           .           .           ending      .           .           .           .           .           .           .",
		"Finish":           ".           .           .           .           .           .           .           .           .           .           .",
		"Ended (drained)":  ".           .           .           idle        idle        .           .           .           .           .           .",
		"Ended (crashed)":  ".           .           .           backing-off backing-off .           .           .           .           .           .",
		"Ended (no hooks)": ".           .           .           held        held        .           .           .           .           .           .",
		"Ended (asked)":    ".           .           .           held        held        .           .           .           .           .           .",
		"Ended (account)":  ".           .           .           parked      parked      .           .           .           .           .           .",
		"Parks":            "parked      parked      parked      .           .           parked      .           parked      .           parked      parked",
		"Unparks":          ".           .           .           .           .           .           idle        .           .           .           .",
		"Recover":          ".           idle        .           .           .           idle        idle        idle        .           idle        idle",
		"Pause":            "held        held        .           .           .           held        held        .           .           .           .",
		"Resume":           ".           .           .           .           .           idle        idle        idle        idle        idle        idle",
		"Redefine":         ".           .           .           .           .           idle        idle        idle        .           idle        idle",
		"Restart":          ".           .           .           .           .           .           .           .           .           .           .",
		"Cancel":           ".           .           .           .           .           .           .           .           .           .           .",
		"Loses":            ".           idle        .           .           .           .           .           .           .           .           .",
		"Nothing":          ".           idle        .           .           .           .           .           .           .           .           .",
		"Ring":             ".           .           .           .           .           idle        idle        .           .           .           .",
	} {
		i := slices.IndexFunc(all, func(e event) bool { return e.name == name })
		row := strings.Fields(want)
		if i < 0 || len(row) != len(from) {
			t.Fatalf("%s: no such event, or not a word for each state: %q", name, row)
		}
		for k, before := range from {
			a := fresh()
			into[before](a)
			a.Settle(noon)
			was := a.State()
			all[i].happens(a)
			a.Adopt(later)
			a.Settle(later)
			after := row[k]
			if after == "." {
				after = string(was)
			}
			if got := string(a.State()); got != after {
				t.Errorf("%s, %s: %s, want %s", before, name, got, after)
			}
		}
	}
}
