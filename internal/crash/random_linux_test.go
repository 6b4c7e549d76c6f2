package crash

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// TestRandomKills kills hooks and recoveries at random moments while entries
// keep coming, until that has happened often enough.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	want := *kills
	if want == 0 {
		want = 120
		if *testbed.Full {
			want = 10_000
		}
	}
	totals := make([]tally, len(forms)*len(policies))
	queues := max(3*len(totals), want/killsEach)
	each := (want + queues - 1) / queues
	atOnce(24, queues, func(i int) {
		kind := i % len(totals)
		inLab(t, forms[kind/len(policies)], policies[kind%len(policies)], func(l *lab) {
			r := testbed.Chance(t, fmt.Sprint("lab ", i))
			for l.record.Count().Interruptions < each {
				l.round(r)
			}
			l.drain()
			totals[kind].add(l, fmt.Sprintf("%s, %s, run %d", l.form, l.policy, i))
		})
	})
	all := new(tally)
	for kind := range totals {
		t.Logf("%-12s %-10s %s", forms[kind/len(policies)], policies[kind%len(policies)], &totals[kind])
		all.merge(&totals[kind])
	}
	t.Logf("all: %s", all)
}

// killsEach is how many random kills one queue lives through at most.
const killsEach = 250

// forms are those with the strictest promises.
var forms = []form{wiredStderr, session, checked}

// round is a few events of a session, and maybe its end.
func (l *lab) round(r *rand.Rand) {
	l.slay = func() time.Duration {
		if r.IntN(2) == 0 {
			return 0
		}
		return 1 + time.Duration(r.Int64N(int64(l.usual()*5/4)))
	}
	defer func() { l.slay = nil }()
	for len(l.record.Open()) < 3 {
		prompt := fmt.Sprintf("e%d: %s", l.record.Count().Prompts, strings.Repeat("x", 1+r.IntN(300)))
		if r.IntN(2) == 0 {
			l.echo(prompt+"\n", prompt)
		} else {
			l.send(prompt)
		}
	}
	if l.session == 0 || l.release == nil && l.form.ours() {
		l.launch()
	}
	for range 1 + r.IntN(8) {
		if len(l.pending) == 0 {
			break
		}
		l.step(0, true)
	}
	if len(l.pending) > 0 {
		return
	}
	if r.IntN(12) == 0 { // now and then, because it waits for the transcript
		l.wake()
		return
	}
	l.die()
	for range 3 {
		if l.recoverOrphan(0); !l.lastKilled {
			break
		}
	}
	if l.lastKilled {
		l.slay = nil
		l.recoverOrphan(0)
	}
	l.launch()
}

// usual is how long a program takes here that nobody kills: a busy machine
// would otherwise kill all of them at their start.
func (l *lab) usual() time.Duration {
	return min(max(l.took, 4*time.Millisecond), 100*time.Millisecond)
}

// slain runs a program that is killed after a time, if it still runs.
func slain(t testing.TB, p stepper.Program, after time.Duration) stepper.Outcome {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Dir, p.Env, strings.NewReader(p.Stdin), &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	timer.Stop()
	status := cmd.ProcessState.ExitCode()
	return stepper.Outcome{Status: status, Stdout: stdout.String(), Stderr: stderr.String(), Killed: status == -1}
}

// TestRecoverIsKilledToo kills a hook and then the recovery that follows, each
// before each of its calls. Without -full that is a sample of both.
func TestRecoverIsKilledToo(t *testing.T) {
	t.Parallel()
	needPtrace(t)
	totals := map[promise.Policy]*tally{}
	var points []double
	const stride = 397 // with no common divisor with the number of policies
	n := testbed.Turn(t, stride)
	of := calls(t, forms)
	for i, f := range forms {
		for tick, made := range of[i] {
			for call := 1; call <= made; call++ {
				for _, p := range policies {
					totals[p] = new(tally)
					if n++; n%testbed.Stride(stride) == 0 {
						for lane := range doubleLanes {
							points = append(points, double{p, f, tick, call, n / stride, lane})
						}
					}
				}
			}
		}
	}
	atOnce(24, len(points), func(i int) {
		p := points[i]
		inLab(t, p.form, p.policy, func(l *lab) { p.run(l, totals[p.policy]) })
	})
	all := new(tally)
	for _, p := range policies {
		t.Logf("%-10s %s", p, totals[p])
		all.merge(totals[p])
	}
	t.Logf("all: %s", all)
}

// double is one kill of a hook, after which the recovery is killed at each point of
// a lane.
type double struct {
	policy     promise.Policy
	form       form
	tick, call int
	turn       int // the sample's first point
	lane       int
}

// doubleLanes share the points of one recovery: most of the time is waiting.
const doubleLanes = 5

func (d double) run(l *lab, c *tally) {
	l.fill()
	l.launch()
	for range d.tick {
		l.step(0, true)
	}
	l.step(d.call, false)
	l.die()
	before := l.picture()
	const thin = 4
	stride := testbed.Stride(thin)
	for n := 1 + d.turn%stride + d.lane*stride; ; n += doubleLanes * stride {
		l.restore(before)
		o := l.recoverOrphan(n)
		if !o.Killed {
			return
		}
		l.echo("delta: after the kills\n", "delta: after the kills")
		l.drain()
		c.add(l, fmt.Sprintf("%s, %s, tick %d call %d, recover killed before call %d of %q",
			d.form, d.policy, d.tick, d.call, n, o.Calls))
	}
}
