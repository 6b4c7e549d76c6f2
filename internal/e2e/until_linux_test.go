package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heartbeat/hook"
)

// mended is a check that passes when the agent has worked three times.
const mended = `until: {check: [sh, -c, "n=$(wc -l < work); [ $n -ge 3 ] || { echo $((3-n)) tests fail; exit 1; }"], max-iterations: 5}`

// TestAPromptIsDoneWhenItsCheckPasses, whatever the agent says: it is handed over
// again in the same conversation, with what the check said.
func TestAPromptIsDoneWhenItsCheckPasses(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{mended})
		f.teach(behaviour{match: "mend it", bash: "echo x >> work", reply: "All tests pass now."})
		f.send("mend it")
		f.send("the next one")
		f.must("", "run", "--once")
		f.gone()
		got := f.prompts()
		if len(got) < 4 || got[0] != "mend it" || got[len(got)-1] != "the next one" {
			t.Fatalf("handed over: %q", got)
		}
		var iterations []string
		for _, p := range got[1:] {
			if strings.HasSuffix(p, "\n\nmend it") {
				iterations = append(iterations, p)
			}
		}
		if len(iterations) != 2 || !strings.Contains(iterations[0], "iteration 2 of 5 ") || !strings.Contains(iterations[0], "\n2 tests fail\n") ||
			!strings.Contains(iterations[1], "iteration 3 of 5 ") || !strings.Contains(iterations[1], "\n1 tests fail\n") {
			t.Errorf("iterations: %q", iterations)
		}
		done := f.outbox()
		if len(done) != 2 || done[0].Verdict == nil || done[0].Verdict.Iteration != 3 || done[0].Attempt != 1 || done[0].Reply != "All tests pass now." ||
			done[1].Verdict == nil || done[1].Verdict.Iteration != 1 {
			t.Errorf("done: %+v", done)
		}
		if why := f.ends(); len(why) != 1 || why[0] != "drained" {
			t.Errorf("sessions ended by %q", why)
		}
	})
}

// TestACheckOutlives the hook that waits for it, its session and the scheduler: the
// prompt is done by its verdict, and is not handed over again.
func TestACheckOutlives(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(f *fleet, s *scheduler) *scheduler{
		"the hook": func(f *fleet, s *scheduler) *scheduler {
			_ = kill(f.session().Waiter, syscall.SIGKILL)
			return s
		},
		"the session": func(f *fleet, s *scheduler) *scheduler {
			_ = kill(f.session().Shim, syscall.SIGKILL)
			return s
		},
		"the scheduler": func(f *fleet, s *scheduler) *scheduler {
			_ = s.cmd.Process.Kill()
			<-s.done
			return f.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, client{name: "simulate"}, []string{
				`until: {check: [sh, -c, "touch began; while [ ! -e go ]; do sleep 0.1; done"], check-timeout: 2m}`,
			})
			f.teach(behaviour{match: "work", reply: "done"})
			f.send("work")
			s := f.start()
			f.Until("the check to begin", func() bool {
				_, err := os.Stat(filepath.Join(f.Work, "began"))
				r := f.session()
				return err == nil && r.Phase == hook.Checking && r.Waiter > 0
			})
			kill(f, s)
			f.write(filepath.Join(f.Work, "go"), "")
			f.Until("the verdict", func() bool { return len(f.outbox()) > 0 })
			f.send("the next one")
			f.Until("the next one to be done", func() bool { return len(f.outbox()) > 1 })
			if done := f.outbox(); done[0].Verdict == nil || done[0].Attempt != 1 || len(f.dead()) > 0 {
				t.Errorf("done: %+v, dead letters: %+v", done, f.dead())
			}
			given := 0
			for _, p := range f.prompts() {
				if strings.Contains(p, "work") {
					given++
				}
			}
			if given != 1 {
				t.Errorf("handed over %d times: %q", given, f.prompts())
			}
		})
	}
}

// TestACheckThatTakesLongerThanHold releases the session; what is missing then comes as
// the next turn of the same conversation.
func TestACheckThatTakesLongerThanHold(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{
			`until: {check: [sh, -c, "while [ ! -e go ]; do sleep 0.1; done; [ -e once ] || { touch once; echo not yet; exit 1; }"], check-timeout: 2m, hold: 2s}`,
		})
		f.teach(behaviour{match: "work", reply: "done"})
		f.send("work")
		f.start()
		f.Until("the session to be released", func() bool { return len(f.ends()) > 0 })
		first := f.conversation()
		f.write(filepath.Join(f.Work, "go"), "")
		f.Until("the verdict", func() bool { return len(f.outbox()) > 0 })
		done, prompts := f.outbox(), f.prompts()
		if done[0].Verdict == nil || done[0].Verdict.Iteration != 2 || done[0].Attempt != 1 {
			t.Errorf("done: %+v", done)
		}
		if last := prompts[len(prompts)-1]; !strings.Contains(last, "iteration 2 of 10 ") || !strings.Contains(last, "\nnot yet\n") {
			t.Errorf("handed over: %q", prompts)
		}
		if now := f.conversation(); first == "" || now != first || !strings.HasPrefix(f.ends()[0], "released (its check takes longer than hold") {
			t.Errorf("conversation %q after %q; sessions ended by %q", now, first, f.ends())
		}
	})
}

// TestTasksThatNeverEndAreFollowedByACheck, with the tasks named.
func TestTasksThatNeverEndAreFollowedByACheck(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"background-timeout: 3s", `until: {check: ["true"]}`})
		f.teach(behaviour{match: "start a task", background: "sleep 600", reply: "started it"})
		f.send("start a task")
		f.send("the next one")
		f.must("", "run", "--once")
		f.gone()
		done := f.outbox()
		if len(done) != 2 || len(done[0].Abandoned) != 1 || done[0].Reply != "started it" || done[0].Verdict == nil || done[1].Verdict == nil {
			t.Errorf("done: %+v", done)
		}
	})
}
