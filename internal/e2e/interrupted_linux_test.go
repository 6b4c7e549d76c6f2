package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/internal/promise"
	"heartbeat/internal/simulate/script"
	"heartbeat/internal/testbed"
)

// TestClientKilledInTheMiddleOfATurn: the entry is given again, marked with
// its attempt; under deadletter not once a tool has run.
func TestClientKilledInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy   string
		tool     bool
		again    bool // the entry is given a second time
		deadWith promise.Reason
	}{
		"no tool has run":                 {policy: "deadletter", again: true},
		"a tool has run, deadletter":      {policy: "deadletter", tool: true, deadWith: promise.ByInterruption},
		"a tool has run, retry":           {policy: "retry", tool: true, again: true},
		"a tool has run, the policy drop": {policy: "drop", tool: true},
	} {
		t.Run(name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, []string{"on-orphan: " + tt.policy})
				b := behaviour{match: "long work", times: 1, hang: true}
				if tt.tool {
					b = behaviour{match: "long work", times: 1, bash: "touch started; python3 -c 'import time; time.sleep(60)'", reply: "never"}
				}
				f.teach(b)
				f.send("long work")
				f.send("the next")
				f.start()
				if tt.tool {
					f.Until("the tool", func() bool { _, err := os.Stat(filepath.Join(f.Work, "started")); return err == nil })
				} else {
					f.Until("the model call", func() bool { return len(f.calls()) == 1 })
					f.phase(hook.Turn)
				}
				if err := kill(f.session().Client, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				want := 1
				if tt.again {
					want = 2
				}
				f.Until("the rest of the queue", func() bool { return len(f.outbox()) == want })
				done := f.outbox()
				if last := f.prompts()[len(f.prompts())-1]; last != "the next" {
					t.Errorf("the last prompt is %q", last)
				}
				if tt.again && done[0].Attempt != 2 {
					t.Errorf("attempt %d, want 2", done[0].Attempt)
				}
				if tt.again && !strings.Contains(strings.Join(f.prompts(), "|"), "attempt 2") {
					t.Errorf("the repeat is not marked: %q", f.prompts())
				}
				dead := f.dead()
				if tt.deadWith == "" && len(dead) != 0 || tt.deadWith != "" && (len(dead) != 1 || dead[0].Reason != tt.deadWith) {
					t.Errorf("dead letters: %+v", dead)
				}
			})
		})
	}
}

// TestSchedulerKilledInTheMiddleOfATurn: no process is left within the grace
// and a second, nothing is lost, and the next run goes on.
func TestSchedulerKilledInTheMiddleOfATurn(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		f := newFleet(t, c, nil)
		f.teach(behaviour{match: "long work", times: 1, hang: true})
		f.send("long work")
		f.send("the next")
		s := f.start()
		f.Until("the model call", func() bool { return len(f.calls()) == 1 })
		f.phase(hook.Turn)
		_ = s.cmd.Process.Kill()
		<-s.done
		f.gone()
		f.must("", "run", "--once")
		if done := f.outbox(); len(done) != 2 || done[0].Attempt != 2 {
			t.Errorf("acknowledged: %+v", done)
		}
		f.gone()
	})
}

// TestShimAndSchedulerKilled: the client survives both for the moment; the
// next run ends it before it starts another.
func TestShimAndSchedulerKilled(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, nil)
		f.teach(behaviour{match: "long work", times: 1, hang: true})
		f.send("long work")
		s := f.start()
		f.Until("the model call", func() bool { return len(f.calls()) == 1 })
		f.phase(hook.Turn)
		shim := f.session().Shim
		_ = s.cmd.Process.Kill()
		if err := kill(shim, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-s.done
		f.must("", "run", "--once")
		if done := f.outbox(); len(done) != 1 || done[0].Attempt != 2 {
			t.Errorf("acknowledged: %+v", done)
		}
		f.gone()
	})
}

// TestKillsAtRandomMoments, over three hundred prompts with -full: of client, shim and scheduler, while
// a queue is worked through. Each prompt is done once and in order, and is given again at
// most once for each kill, with a mark.
func TestKillsAtRandomMoments(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"on-orphan: retry", "max-attempts: 50", "max-restarts: 100", "restart-window: 1s"})
		prompts, kills := 24, 0
		if *testbed.Full {
			prompts = 300
		}
		name := func(n int) string { return fmt.Sprintf("prompt %03d%s", n, []string{"", " with a tool"}[n%2]) }
		reply := func(n int) string { return fmt.Sprintf("reply %03d", n) }
		var taught []behaviour
		for n := range prompts {
			b := behaviour{match: name(n), reply: reply(n)}
			if n%2 == 1 {
				b.bash = "true"
			}
			taught = append(taught, b)
			f.send(name(n))
		}
		f.teach(taught...)
		s := f.start()
		for done := 0; done < prompts; {
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond) // anywhere in the work
			victim := []string{"client", "shim", "client", "scheduler"}[kills%4]
			if victim == "scheduler" {
				_ = s.cmd.Process.Kill()
				<-s.done
				s = f.start()
			} else if pid := map[string]int{"client": f.session().Client, "shim": f.session().Shim}[victim]; pid > 0 {
				_ = kill(pid, syscall.SIGKILL) // it may have ended
			}
			kills++
			f.UntilWithin("a prompt is done after the kill", 2*patience, func() bool { return len(f.outbox()) > min(done, prompts-1) })
			done = len(f.outbox())
		}
		s.stop()
		for n, d := range f.outbox() {
			if n >= prompts || d.Reply != reply(n) || d.Attempt > kills+1 {
				t.Errorf("number %d that was done: %+v", n, d)
			}
		}
		next, repeats := 0, 0
		for _, call := range f.prompts() {
			text, attempt := promise.Unmark(call)
			switch {
			case next < prompts && text == name(next):
				next++
				if attempt > 1 {
					repeats++ // it was offered before, and its client never asked
				}
			case next > 0 && text == name(next-1) && attempt > 1:
				repeats++
			default:
				t.Errorf("the model was given %q after prompt %d", call, next-1)
			}
		}
		if dead := f.dead(); next != prompts || repeats > kills || len(dead) > 0 {
			t.Errorf("%d of %d prompts were given, %d again, over %d kills; dead letters: %+v", next, prompts, repeats, kills, dead)
		}
		t.Logf("%d prompts, %d kills, %d repeats", prompts, kills, repeats)
	})
}

// TestOtherSessionsInTheDirectory: a person's client in the same directory
// and one that the agent itself starts neither take nor acknowledge anything.
func TestOtherSessionsInTheDirectory(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, persist)
		nested := fmt.Sprintf("%s -p 'a nested question' </dev/null > nested.txt 2>&1; echo $? >> nested.txt", f.clientCommand())
		f.teach(behaviour{match: "ask another", bash: nested, reply: "asked"})
		f.start()
		f.send("ask another")
		f.Until("the reply", func() bool { return len(f.outbox()) == 1 })
		if got := f.outbox()[0].Reply; got != "asked" {
			t.Errorf("reply %q", got)
		}
		f.phase(hook.Waiting)
		f.Until("its Stop in the journal", func() bool {
			return strings.Contains(fmt.Sprintf("%+v", f.events()), "Answer:waits")
		})
		before := len(f.events())

		person := exec.Command("/bin/sh", "-c", f.clientCommand()+" 'a person asks'")
		person.Dir, person.Env = f.Work, f.Env()
		term := startTerminal(t, person)
		f.Until("the person's turn", func() bool {
			return strings.Contains(strings.Join(f.prompts(), "|"), "a person asks")
		})
		time.Sleep(2 * time.Second) // for a Stop hook that must not do anything
		if after := f.session(); len(f.events()) != before || after.Phase != hook.Waiting {
			t.Errorf("something has happened in the session: %+v, %+v", after, f.events()[before:])
		}
		f.send("still mine")
		f.Until("our reply", func() bool { return len(f.outbox()) == 2 })
		term.Signal(syscall.SIGTERM)
		term.WaitExit(patience)
		prompts := strings.Join(f.prompts(), "|")
		if n := strings.Count(prompts, "still mine"); n != 1 {
			t.Errorf("the entry reached a model %d times: %s", n, prompts)
		}
		if !strings.Contains(prompts, "a nested question") {
			out, _ := os.ReadFile(filepath.Join(f.Work, "nested.txt"))
			t.Errorf("the nested client did not run: %s", out)
		}
	})
}

// clientCommand is a shell command that starts the client.
func (f *fleet) clientCommand() string {
	if f.client.real {
		return "'" + f.client.path + "'"
	}
	return fmt.Sprintf("'%s/heartbeat' simulate --script '%s/script.json'", f.bin, f.Dir)
}

// TestTheQueueGoesInTheMiddleOfATurn: hooks find no session any more, and
// nothing can be acknowledged; it ends, and says what was lost.
func TestTheQueueGoesInTheMiddleOfATurn(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, nil)
		// Again as long as it is there: what is written there meanwhile keeps a folder.
		const gone = "import os, shutil, time; [shutil.rmtree(\".heartbeat\", True) for _ in iter(lambda: os.path.exists(\".heartbeat\"), False)]; time.sleep(60)"
		f.teach(behaviour{match: "clean up", bash: "python3 -c '" + gone + "'", reply: "never"})
		f.send("clean up")
		f.send("the next")
		f.send("the one behind it")
		f.start()
		f.Until("the session has ended", func() bool { return strings.Contains(f.must("", "events", "a"), "queue-lost") })
		events := f.must("", "events", "a")
		for _, want := range []string{"ended, 0 done: lost (", "2 prompts were queued", "was in flight"} {
			if !strings.Contains(events, want) {
				t.Errorf("the journal lacks %q:\n%s", want, events)
			}
		}
	})
}

// TestOurHooksGoInTheMiddleOfATurn: nobody hears of the tool that runs then. The
// transcript tells, and the entry is not given again under deadletter: its tool
// had run twice.
func TestOurHooksGoInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	for name, vanish := range map[string]func(f *fleet){
		"their program": func(f *fleet) {
			programs, _ := filepath.Glob(filepath.Join(f.Dir, "state", "*", "bin", "*", "*"))
			for _, p := range programs {
				_ = os.Remove(p)
			}
		},
		"their settings": func(f *fleet) {
			f.write(filepath.Join(f.Work, ".claude", "settings.json"), `{"permissions":{"allow":["Bash"]}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, nil)
				f.turns(turn{match: "think first", steps: []script.Step{think(4 * time.Second), bash("echo ran >> ran.txt"), say("done")}})
				f.send("think first")
				f.send("the next one")
				f.start()
				f.phase(hook.Turn)
				vanish(f)
				f.Until("the tool", func() bool { _, err := os.Stat(filepath.Join(f.Work, "ran.txt")); return err == nil })
				if err := kill(f.session().Client, syscall.SIGTERM); err != nil { // it would be idle, and end as unattended in a minute
					t.Fatal(err)
				}
				f.Until("the next one", func() bool { return len(f.outbox()) == 1 })
				ran, _ := os.ReadFile(filepath.Join(f.Work, "ran.txt"))
				if dead := f.dead(); string(ran) != "ran\n" || len(dead) != 1 || dead[0].Reason != promise.ByInterruption {
					t.Errorf("the tool: %q, dead letters: %+v", ran, dead)
				}
				if got := f.prompts(); len(got) != 2 {
					t.Errorf("prompts: %q", got)
				}
			})
		})
	}
}
