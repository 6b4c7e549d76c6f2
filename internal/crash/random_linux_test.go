package crash

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/internal/crash/stepper"
)

// TestRandomKills kills hooks and recoveries at random moments while entries
// keep coming, until that has happened often enough.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	want := *kills
	if want == 0 {
		want = 400
		if *full {
			want = 10_000
		}
	}
	var done atomic.Int64
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	atOnce(6, 6, func(i int) {
		policy, f := policies[i%3], []form{wiredStderr, session}[i%2]
		l := newLab(t, workDir(t), f, policy)
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		for done.Load() < int64(want) {
			before := l.kills
			l.round(r)
			done.Add(int64(l.kills - before))
		}
		l.drain()
		if faults := l.verdict(); len(faults) > 0 {
			t.Errorf("%s, %s:\n\t%s%s", f, policy, strings.Join(faults[:min(len(faults), 20)], "\n\t"), l.files())
		}
		t.Logf("%-12s %-10s %5d kills, %5d entries, %4d duplicates", f, policy, l.kills, len(l.want), l.duplicates())
	})
}

// round is a few events of a session, and maybe its end.
func (l *lab) round(r *rand.Rand) {
	l.slay = func() time.Duration {
		if r.IntN(2) == 0 {
			return 0
		}
		return time.Duration(r.Int64N(int64(12 * time.Millisecond)))
	}
	defer func() { l.slay = nil }()
	for len(l.open()) < 3 {
		prompt := fmt.Sprintf("e%d: %s", len(l.want), strings.Repeat("x", 1+r.IntN(300)))
		if r.IntN(2) == 0 {
			l.echo(prompt+"\n", prompt)
		} else {
			l.send(prompt)
		}
	}
	if l.session == 0 || l.release == nil && l.form == session {
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
// before each of its calls.
func TestRecoverIsKilledToo(t *testing.T) {
	t.Parallel()
	needPtrace(t)
	totals := map[inbox.OrphanPolicy]*tally{}
	type point struct {
		policy     inbox.OrphanPolicy
		form       form
		tick, call int
	}
	var points []point
	all := 0
	for _, f := range []form{wiredStderr, session} {
		for tick, n := range calls(t, f) {
			for call := 1; call <= n; call++ {
				for _, p := range policies {
					totals[p] = new(tally)
					if all++; *full || all%13 == 0 {
						points = append(points, point{p, f, tick, call})
					}
				}
			}
		}
	}
	atOnce(4, len(points), func(i int) {
		p := points[i]
		l := newLab(t, workDir(t), p.form, p.policy)
		l.fill()
		l.launch()
		for range p.tick {
			l.step(0, true)
		}
		l.step(p.call, false)
		l.die()
		before := l.picture()
		for n := 1; ; n++ {
			l.restore(before)
			o := l.recoverOrphan(n)
			if !o.Killed {
				return
			}
			l.echo("delta: after the kills\n", "delta: after the kills")
			l.drain()
			totals[p.policy].add(l, fmt.Sprintf("%s, %s, tick %d call %d, recover killed before call %d of %q",
				p.form, p.policy, p.tick, p.call, n, o.Calls))
		}
	})
	for _, p := range policies {
		t.Logf("%-10s %4d double kills, %3d duplicates, %d faults", p, totals[p].points, totals[p].duplicates, totals[p].faults)
	}
}
