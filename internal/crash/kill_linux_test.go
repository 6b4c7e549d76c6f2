package crash

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	hookclient "heartbeat/hook/client"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// followUp is what happens after a hook was killed.
type followUp string

// The follow-ups.
const (
	sameSession followUp = "same session goes on"
	recovered   followUp = "recover, then a new session"
	unrecovered followUp = "a new session, recover not run"
)

var (
	policies  = []promise.Policy{promise.Retry, promise.DeadLetter, promise.Drop}
	followUps = []followUp{sameSession, recovered, unrecovered}
)

// fill queues what the enumerations drain: a plain line with blanks around
// it, a JSON string with a line break, and what `send` writes: as urgent where there is
// an urgent lane.
func (l *lab) fill() {
	l.echo("  alpha: a plain line – with ünïcode \n\n", "alpha: a plain line – with ünïcode")
	l.echo(`"beta: a\nJSON string"`+"\n", "beta: a\nJSON string")
	if sent := "gamma: sent\nby `heartbeat send` <b>&"; l.form.ours() {
		l.hurry(sent)
	} else {
		l.send(sent)
	}
}

// never is a call that no hook gets to.
const never = 1 << 30

// apart is how far apart the points are of all pairs of policy and follow-up together, and
// thin those of one pair.
const apart = 15

var thin = apart * len(policies) * len(followUps)

// allForms are those whose hooks are killed.
var allForms = []form{wiredJSON, wiredStderr, session, checked}

// thin is how far apart the points are at which the form is tried: where entries are
// checked, a session has twice as many events.
func (f form) thin() int {
	if f == checked {
		return 4 * thin
	}
	return thin
}

// calls is how many calls each event of the undisturbed session of each form makes that
// change something; the queue of fill is drained in that one session.
func calls(t testing.TB, of []form) [][]int {
	t.Helper()
	made := make([][]int, len(of))
	atOnce(len(of), len(of), func(i int) { made[i] = callsOf(t, of[i]) })
	return made
}

func callsOf(t testing.TB, f form) (calls []int) {
	t.Helper()
	inLab(t, f, promise.Retry, func(l *lab) {
		l.fill()
		l.launch()
		for len(l.pending) > 0 {
			calls = append(calls, len(l.step(never, true).Calls))
		}
		if v := l.record.Judge(); len(v.Findings) > 0 {
			t.Fatalf("undisturbed: %v", v.Findings)
		}
	})
	return calls
}

// job is one tick of one scenario: all kill points of it, or a slice of them.
type job struct {
	form   form
	policy promise.Policy
	follow followUp
	tick   int
	turn   int // the sample's first point
}

// first is the first call before which it kills.
func (j job) first() int { return 1 + j.turn%testbed.Stride(j.form.thin()) }

// TestKillBeforeEveryCall kills every hook of a session before each of its
// calls that change something, for every form. Every sixth of these points has one of
// the nine pairs of policy and follow-up, by the sample, and each has all of
// them with -full.
func TestKillBeforeEveryCall(t *testing.T) {
	t.Parallel()
	needPtrace(t)
	turn := testbed.Turn(t, 4*thin)
	var jobs []job
	totals := map[string]*tally{}
	of := calls(t, allForms)
	for n, f := range allForms {
		for tick, made := range of[n] {
			for i, p := range policies {
				for j, u := range followUps {
					is := job{f, p, u, tick, turn + apart*(i*len(followUps)+j)}
					totals[is.row()] = new(tally)
					if is.first() <= made {
						jobs = append(jobs, is)
					}
				}
			}
		}
	}
	// Most of the time is waiting for the transcript, 2 s at a time.
	atOnce(24, len(jobs), func(i int) { jobs[i].run(t, totals[jobs[i].row()]) })
	all := new(tally)
	for _, f := range allForms {
		for _, p := range policies {
			for _, u := range followUps {
				row := job{form: f, policy: p, follow: u}.row()
				t.Logf("%-58s %s", row, totals[row])
				all.merge(totals[row])
			}
		}
	}
	t.Logf("all: %s", all)
}

func (j job) row() string { return fmt.Sprintf("%s, %s, %s", j.form, j.policy, j.follow) }

// atOnce runs n jobs, width at a time. A job that gives up (t.Fatal) ends alone.
func atOnce(width, n int, do func(i int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, width)
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			do(i)
		})
	}
	wg.Wait()
}

// run kills at each point of one tick.
func (j job) run(t *testing.T, c *tally) {
	inLab(t, j.form, j.policy, func(l *lab) { j.runIn(l, c) })
}

func (j job) runIn(l *lab, c *tally) {
	l.fill()
	l.launch()
	for range j.tick {
		l.step(0, true)
	}
	before := l.picture()
	for n := j.first(); ; n += testbed.Stride(j.form.thin()) {
		l.restore(before)
		event := l.pending[0]
		o := l.step(n, j.follow == sameSession)
		if !o.Killed {
			return // one more than it makes
		}
		l.after(j.follow)
		c.add(l, fmt.Sprintf("%s, tick %d (%s), killed before call %d of %q", j.row(), j.tick, event, n, o.Calls))
	}
}

// TestALongPromptIsKilled: the hook that hands it over by a file is killed before each
// call that changes something; the sample has every tenth.
func TestALongPromptIsKilled(t *testing.T) {
	t.Parallel()
	needPtrace(t)
	turn := testbed.Turn(t, apart)
	long := "beta: " + strings.Repeat("0123456789", hookclient.MostWhole/10)
	for _, f := range []form{wiredStderr, wiredJSON, session} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			c := new(tally)
			for i, u := range []followUp{sameSession, recovered} {
				inLab(t, f, promise.Retry, func(l *lab) {
					l.echo("alpha\n", "alpha")
					l.echo(long+"\n", long)
					l.launch()
					for l.record.Count().Given < 1 || l.pending[0] != "Stop" {
						l.step(0, true)
					}
					before := l.picture()
					for n := 1 + (turn+i)%testbed.Stride(apart); ; n += testbed.Stride(apart) {
						l.restore(before)
						o := l.step(n, u == sameSession)
						if !o.Killed {
							break
						}
						l.after(u)
						c.add(l, fmt.Sprintf("%s, %s, killed before call %d of %q", f, u, n, o.Calls))
					}
				})
			}
			t.Log(c)
		})
	}
}

// after is the follow-up and the rest, with one more entry.
func (l *lab) after(u followUp) {
	switch u {
	case sameSession:
		if len(l.pending) == 0 {
			l.wake()
		}
	case unrecovered:
		l.die()
		l.echo("delta: after the kill\n", "delta: after the kill")
		l.newcomer()
		l.drain()
		return
	case recovered:
		l.die()
		l.recoverOrphan(0)
		l.launch()
	}
	l.echo("delta: after the kill\n", "delta: after the kill")
	l.drain()
}

// newcomer is a session that starts although nobody recovered. It may go on
// when nothing is in flight; otherwise it gets nothing, and is told why.
func (l *lab) newcomer() {
	given := l.record.Count().Given
	l.launch()
	l.play()
	if len(l.record.Open()) == 0 || l.record.Count().Given > given {
		return
	}
	if l.form == wiredJSON && strings.Contains(l.last, "recover --inbox") {
		return
	}
	if strings.Contains(read(l.t, l.home+"/hook.log"), "in flight for session") {
		return
	}
	l.note(promise.Fact{Kind: promise.Left, Note: "the new session got nothing and nobody was told why: " + l.last})
}
