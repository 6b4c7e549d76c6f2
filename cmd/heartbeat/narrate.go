package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// narrator tells who watches a run on a terminal what it does: a line when an agent
// gets a prompt, when it has answered, when its session fails and when a prompt is given
// up, and problems as they begin and end. Its methods may be called concurrently and with
// locks held.
type narrator struct {
	app      *app
	c        runCmd
	stateDir string
	begin    time.Time
	doors    func() []status.Door
	end      context.CancelFunc
	telling  sync.WaitGroup

	mu     sync.Mutex
	fleet  *config.Fleet
	events []told
	seen   map[string]time.Time // :: delivery → when it was told to be done
	given  map[string]string    // :: agent → the prompt that it was told to be given last
}

// told is something to tell: an entry was handed over, done or given up, a session has
// failed, or a check has passed.
type told struct {
	at      time.Time
	agent   string
	given   *inbox.InFlight
	done    *inbox.Delivery
	passed  string // the delivery whose reply is in the outbox
	failed  string // how the session ended, or what the check said
	givenUp bool   // the entry that it was given last
}

// The narrator tells that something is done when its cost is known, and looks for
// problems so often; lookDear limits the share of the time that it takes for that.
const (
	narrateEvery = 100 * time.Millisecond
	costWithin   = 700 * time.Millisecond
	problemsLook = 2 * time.Second
	lookDear     = 20
)

func newNarrator(a *app, c runCmd, fleet *config.Fleet, stateDir string, doors func() []status.Door) *narrator {
	return &narrator{app: a, c: c, fleet: fleet, stateDir: stateDir, begin: time.Now(), doors: doors, seen: map[string]time.Time{}, given: map[string]string{}}
}

// use puts another version of the fleet's file in force.
func (n *narrator) use(f *config.Fleet) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fleet = f
}

func (n *narrator) file() *config.Fleet {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fleet
}

func (n *narrator) add(t told) {
	if n == nil {
		return
	}
	t.at = time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, t)
}

func (n *narrator) handedOver(agent string, f *inbox.InFlight) { n.add(told{agent: agent, given: f}) }

func (n *narrator) done(agent string, d inbox.Delivery) { n.add(told{agent: agent, done: &d}) }

func (n *narrator) observe(e journal.Event) {
	switch {
	case e.Kind == journal.Checked && e.Verdict == journal.Passed:
		n.add(told{agent: e.Agent, passed: e.Entry})
	case e.Kind == journal.Checked:
		n.add(told{agent: e.Agent, failed: strings.TrimSuffix("its check: "+e.Reason.String()+": "+e.Detail.String(), ": ")})
		if e.Verdict != journal.Unproven {
			n.add(told{agent: e.Agent, givenUp: true})
		}
	case e.Kind == journal.Ended && failed(e.Why):
		n.add(told{agent: e.Agent, failed: e.Reason.String()})
	case e.Kind == journal.Recovered && inbox.Outcome(e.Reason.Raw()) == inbox.DeadLettered:
		n.add(told{agent: e.Agent, givenUp: true})
	}
}

// failed reports whether a session has ended otherwise than it was meant to. That its turn was
// interrupted is no failure: the next session goes on with the prompt.
func failed(why hook.End) bool { return !why.IsMeant() && why != hook.EndUnattended }

// start tells that the fleet runs, and what happens until finish or the end of ctx.
func (n *narrator) start(ctx context.Context, s *orchestrator.Scheduler) {
	if n == nil {
		return
	}
	what := count(len(n.c.chosen(n.file())), "agent")
	how := "Ctrl-C ends it. In another terminal: " + n.app.ours() + " status"
	if n.c.Once {
		how = "it ends when nothing is queued"
	}
	n.app.tell(func(p *page) {
		p.coloured(p.dim, n.begin.Format("15:04:05"))
		p.rest(len("15:04:05"), "          ", fmt.Sprintf("  heartbeat runs %s of %s; %s", what, n.app.file(), how))
	})
	ctx, n.end = context.WithCancel(ctx)
	n.telling.Go(func() { n.run(ctx, s) })
}

// finish tells what is left to tell.
func (n *narrator) finish() {
	if n != nil && n.end != nil {
		n.end()
		n.telling.Wait()
	}
}

func (n *narrator) run(ctx context.Context, s *orchestrator.Scheduler) {
	var problems problems
	for look := time.Now(); pause(ctx, narrateEvery); {
		n.tell(time.Now().Add(-costWithin))
		if now := time.Now(); now.After(look) {
			problems.look(n, s.Snapshot())
			look = time.Now().Add(max(problemsLook, lookDear*time.Since(now)))
		}
	}
	n.tell(time.Now())
	problems.look(n, s.Snapshot())
}

// costs reports whether the cost of an entry is told with it.
func (t told) costs() bool { return t.done != nil || t.passed != "" }

// tell tells what has come, in its order, but nothing done after until.
func (n *narrator) tell(until time.Time) {
	for {
		n.mu.Lock()
		if len(n.events) == 0 || n.events[0].costs() && n.events[0].at.After(until) {
			n.mu.Unlock()
			return
		}
		next := n.events[0]
		n.events = n.events[1:]
		n.mu.Unlock()
		switch {
		case next.given != nil:
			n.tellGiven(next)
		case next.done != nil:
			n.tellDone(next)
		case next.failed != "":
			n.line(next, n.app.out.paintErr.yellow, "failed", next.failed, "")
		case next.givenUp:
			n.line(next, n.app.out.paintErr.red, "gave up", n.given[next.agent], "it is a dead letter")
		default:
			n.tellPassed(next)
		}
	}
}

func (n *narrator) tellGiven(t told) {
	f := t.given
	from := status.Origin(t.agent, f.Source)
	if f.Attempt > 1 {
		from += fmt.Sprintf(", attempt %d", f.Attempt)
	}
	if f.Iteration > 1 {
		from += fmt.Sprintf(", try %d", f.Iteration)
	}
	n.given[t.agent] = firstLine(f.Prompt())
	n.line(t, n.app.out.paintErr.cyan, "starts", n.given[t.agent], from)
}

func (n *narrator) tellDone(t told) {
	d := t.done
	if _, again := n.seen[d.DeliveryID]; again {
		return
	}
	n.seen[d.DeliveryID] = t.at
	for id, at := range n.seen {
		if t.at.Sub(at) > time.Minute {
			delete(n.seen, id)
		}
	}
	took := status.Span(d.AcknowledgedAt.Sub(d.DeliveredAt))
	var cost usage.Sum
	_ = usage.Read(n.stateDir, func(v *store.View) error { // what cannot be read has no price
		return usage.Each(v, t.agent, d.DeliveredAt, func(r usage.Record) {
			if r.Delivery == d.DeliveryID {
				cost = cost.Plus(r.Sum)
			}
		})
	})
	if cost != (usage.Sum{}) {
		took += ", " + cost.Price()
	}
	said := firstLine(d.Reply)
	if said == "" {
		said = "(it said nothing)"
	}
	n.line(t, n.app.out.paintErr.green, "done", said, took)
}

// tellPassed tells of an entry whose check has passed after its session.
func (n *narrator) tellPassed(t told) {
	agent := n.file().Agent(t.agent)
	if agent == nil {
		return
	}
	replies, _ := queue.Replies(context.Background(), []*config.Agent{agent}, t.at.Add(-time.Minute), 20, nil)
	for _, r := range replies {
		if r.DeliveryID == t.passed {
			n.tellDone(told{at: t.at, agent: t.agent, done: &r.Delivery})
		}
	}
}

// line prints what an agent does: text, and behind it a remark or "".
func (n *narrator) line(t told, colour, what, text, remark string) {
	n.app.tell(func(p *page) {
		if remark != "" {
			remark = "  (" + shorten(foreign.Line(remark), 30) + ")"
		}
		room := cmp.Or(p.columns, pageColumns) - len("15:04:05    starts  ") - n.names() - width(remark)
		p.coloured(p.dim, t.at.Format("15:04:05"))
		p.printf("  %-*s  ", n.names(), t.agent)
		p.coloured(colour, what)
		p.printf("%*s%s", len("starts  ")-len(what), "", shorten(foreign.Line(text), max(room, 20)))
		p.coloured(p.dim, remark)
		p.printf("\n")
	})
}

// names is how wide the column of names is.
func (n *narrator) names() (widest int) {
	for _, a := range n.c.chosen(n.file()) {
		widest = max(widest, len(a.Name))
	}
	return min(widest, 20)
}

func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more {
		line = strings.TrimRight(line, " \r") + " …"
	}
	return line
}

// problems are those that were told and are not over.
type problems struct{ known map[string]lasting }

type lasting struct {
	what  string
	since time.Time
	dead  string // how many dead letters, where it is that
}

// look tells which problems have begun and which are over.
func (k *problems) look(n *narrator, says []status.AgentState) {
	fleet := n.file()
	begun, over := k.compare(n.app.troubles(fleet, n.c.chosen(fleet), &status.Live{Agents: says, Doors: n.doors()}), time.Now())
	n.app.tell(func(p *page) {
		troublesText(p, begun, 0)
		for _, was := range over {
			p.coloured(p.dim, time.Now().Format("15:04:05"))
			p.coloured(p.green, "  over")
			p.printf("  %s, after %s\n", was.what, status.Span(time.Since(was.since)))
		}
	})
}

// compare returns which problems have begun, and which are over, since it was called last. More
// dead letters are told of again.
func (k *problems) compare(all []status.Trouble, at time.Time) (begun []status.Trouble, over []lasting) {
	now := map[string]lasting{}
	for _, t := range all {
		if t.What == status.NotListening && at.Sub(t.Since) < problemsLook {
			continue // it is just being opened
		}
		key, dead := t.Agent+" "+string(t.What)+" "+t.Part, ""
		switch t.What {
		case status.NeedsApproval: // each is another one
			key += fmt.Sprint(" ", t.Since.UnixNano())
		case status.HasDeadLetters:
			dead, _, _ = strings.Cut(t.Text, ",")
		}
		was, known := k.known[key]
		if !known || was.dead != dead {
			begun = append(begun, t)
		}
		if !known {
			was = lasting{what: cmp.Or(t.Agent, "this fleet") + ": " + strings.ReplaceAll(string(t.What), "-", " "), since: at}
		}
		was.dead = dead
		now[key] = was
	}
	for _, key := range slices.Sorted(maps.Keys(k.known)) {
		if _, lasts := now[key]; !lasts {
			over = append(over, k.known[key])
		}
	}
	k.known = now
	return begun, over
}
