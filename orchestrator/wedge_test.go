package orchestrator

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
)

// weather is what comes over a fleet by chance.
type weather struct {
	*rig
	rnd  *rand.Rand        // of what happens
	fate *rand.Rand        // of the sessions; the rig's mu guards it
	dirs map[string]string // :: agent → where it lives
	mode map[string]hook.Mode
	in   map[string]bool // the file
	away map[string]bool // directories that were moved away
	most int
}

func (w *weather) home(agent string) *config.Agent {
	c := w.declare(agent)
	c.Dir = filepath.Join(w.dir, w.dirs[agent])
	c.Home = filepath.Join(c.Dir, ".heartbeat")
	c.Inbox = filepath.Join(c.Home, "inbox.jsonl")
	c.Mode = w.mode[agent]
	if w.rnd.IntN(3) == 0 {
		c.Group = "g"
	}
	return c
}

func (w *weather) say(format string, args ...any) {
	w.t.Logf("%s: "+format, append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

func (w *weather) names() []string {
	var all []string
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		if w.in[n] {
			all = append(all, n)
		}
	}
	return all
}

func (w *weather) reload() {
	var all []*config.Agent
	for _, n := range w.names() {
		all = append(all, w.home(n))
	}
	f := w.with(all...)
	f.MaxSessions = w.most
	f.Groups = map[string]int{"g": 1 + w.rnd.IntN(2)}
	f.SlotTime = time.Duration(w.rnd.IntN(2)) * time.Minute
	plan, err := w.s.Reload(f)
	w.say("reload: %v, %v", plan, err)
}

// outcomes are how a session may end that does nothing.
var outcomes = []session.Outcome{
	{Why: hook.EndCrashed, Bound: true},
	{Why: hook.EndStartTimeout},
	{Why: hook.EndDrained, Bound: true},
	{Why: hook.EndReleased, Bound: true},
	{Why: hook.EndAPIFailure, Detail: "rate_limit", Bound: true},
	{Why: hook.EndAPIFailure, Detail: "server_error", Bound: true},
	{Why: hook.EndAPIFailure, Detail: "unknown", Bound: true},
	{Why: hook.EndNoHooks},
	{Why: hook.EndExited, ExitCode: 1, Bound: true},
	{NoRoom: true, Why: hook.EndCrashed},
	{Why: hook.EndAPIFailure, Detail: "authentication_failed", Bound: true},
	{Why: hook.EndRunaway, Bound: true},
}

// lives is a session that fares by chance.
func (w *weather) lives(calm *atomic.Bool) act {
	return func(f *fakeSession) session.Outcome {
		w.mu.Lock()
		roll, o := w.fate.IntN(10), outcomes[w.fate.IntN(len(outcomes))]
		w.mu.Unlock()
		switch {
		case calm.Load() || roll < 5:
			if f.spec.Policy.Mode == hook.Persist {
				return persists(f)
			}
			return drains(f)
		case roll < 8:
			return chokes("do", o)(f)
		}
		return ends(o)(f)
	}
}

func (w *weather) something() {
	all := w.names()
	n := all[w.rnd.IntN(len(all))]
	dir := filepath.Join(w.dir, w.dirs[n])
	switch k := w.rnd.IntN(14); k {
	case 0, 1, 2:
		w.say("send %s", n)
		w.put(n)
	case 3:
		_, err := w.s.Pause(n)
		w.say("pause %s: %v", n, err)
	case 4:
		_, err := w.s.Resume(n)
		w.say("resume %s: %v", n, err)
	case 5:
		if len(all) > 2 {
			w.in[n] = false
			w.reload()
		}
	case 6:
		for _, m := range []string{"a", "b", "c", "d", "e"} {
			w.in[m] = w.in[m] || w.rnd.IntN(2) == 0
		}
		w.reload()
	case 7:
		m := all[w.rnd.IntN(len(all))]
		w.dirs[n], w.dirs[m] = w.dirs[m], w.dirs[n]
		w.reload()
	case 8:
		w.most = 1 + w.rnd.IntN(4)
		w.reload()
	case 9:
		w.mode[n] = []hook.Mode{hook.Drain, hook.Persist}[w.rnd.IntN(2)]
		w.reload()
	case 10:
		if !w.away[w.dirs[n]] {
			w.say("away %s", dir)
			if os.Rename(dir, dir+".away") == nil {
				w.away[w.dirs[n]] = true
			}
		}
	case 11:
		w.back()
	case 12:
		if !w.away[w.dirs[n]] {
			w.say("replace %s", dir)
			_ = os.RemoveAll(dir)
			_ = os.Mkdir(dir, 0o700)
		}
	case 13:
		_, err := w.s.Resume()
		w.say("resume all: %v", err)
	}
}

// put queues a prompt where the agent lives, if that is there.
func (w *weather) put(n string) {
	c := w.home(n)
	if _, err := os.Stat(c.Dir); err != nil {
		return
	}
	_ = os.MkdirAll(c.Home, 0o700)
	f, err := os.OpenFile(c.Inbox, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(f, "do %d\n", w.rnd.Int())
	_ = f.Close()
	if w.rnd.IntN(2) == 0 {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		if changed != nil {
			changed(c.Inbox)
		}
	}
}

func (w *weather) back() {
	for _, d := range []string{"a", "b", "c", "d", "e"} {
		if w.away[d] {
			dir := filepath.Join(w.dir, d)
			w.say("back %s", dir)
			_ = os.RemoveAll(dir)
			_ = os.Rename(dir+".away", dir)
			delete(w.away, d)
		}
	}
}

// TestAfterAnyWeatherEveryAgentWorks lets come over a fleet what may, one upon
// the other, at the worst moments. When it is quiet again and a person has
// resumed all, everybody does what is queued.
func TestAfterAnyWeatherEveryAgentWorks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a b c d e", func(t *testing.T, r *rig) {
				w := &weather{
					rig: r, rnd: rand.New(rand.NewPCG(seed, 7)), fate: rand.New(rand.NewPCG(seed, 8)), dirs: map[string]string{}, mode: map[string]hook.Mode{},
					in: map[string]bool{}, away: map[string]bool{}, most: 3,
				}
				for _, n := range []string{"a", "b", "c", "d", "e"} {
					w.dirs[n], w.in[n], w.mode[n] = n, true, hook.Drain
				}
				var calm atomic.Bool
				r.rough = true
				r.set("", w.lives(&calm))
				stop := r.run()
				for range 60 {
					d := []time.Duration{0, time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second, 20 * time.Second, time.Minute}[w.rnd.IntN(7)]
					w.something()
					r.sleep(d)
				}
				w.say("quiet")
				w.back()
				for _, n := range w.names() {
					w.mode[n] = hook.Drain
				}
				w.reload()
				calm.Store(true)
				r.sleep(3 * time.Minute)
				for range 3 {
					if _, err := r.s.Resume(); err != nil {
						t.Fatal(err)
					}
					r.sleep(6 * time.Minute)
				}
				for _, n := range w.names() {
					w.put(n)
				}
				r.sleep(20 * time.Minute)
				for _, n := range w.names() {
					a, c := r.state(n), w.home(n)
					d := queue.LookInto(c).Depth
					if a.State != Idle && a.State != Running || d.Entries > 0 {
						t.Errorf("%s is %s (%s), %+v; %d queued", n, a.State, a.Reason, a, d.Entries)
					}
				}
				if got := len(r.s.Snapshot()); got != len(w.names()) {
					t.Errorf("%d agents are shown, want %v", got, w.names())
				}
				stop()
			})
		})
	}
}
