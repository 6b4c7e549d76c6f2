package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/fakeapi"
	"heartbeat/internal/simulate/script"
	"heartbeat/internal/testbed"
)

// bothClients runs a scenario against the stand-in and the real client: what the main
// job rests on, prompts that are handed over, done and acknowledged, whatever is killed.
func bothClients(t *testing.T, scenario func(t *testing.T, c client)) {
	t.Helper()
	t.Parallel()
	// A parallel test within one begins behind all others: the one that takes long does not.
	_, err := realClientPath()
	there := err == nil && !testbed.Raced
	t.Run("simulate", func(t *testing.T) {
		if there {
			t.Parallel()
		}
		scenario(t, client{name: "simulate"})
	})
	t.Run("real", func(t *testing.T) { scenario(t, realClient(t)) })
}

// standInFirst runs a scenario against the stand-in, and in every eighth sample against
// the real client, whose starts are what these tests cost. What the main job rests on
// is tried on both each time: bothClients.
func standInFirst(t *testing.T, scenario func(t *testing.T, c client)) {
	t.Helper()
	if real := testbed.SampleOf(t, []bool{true, 7: false}, 8); slices.Contains(real, true) {
		bothClients(t, scenario)
		return
	}
	t.Parallel()
	t.Run("simulate", func(t *testing.T) { scenario(t, client{name: "simulate"}) })
}

// awkward are prompts that a client could take for something else.
func awkward() []string {
	return []string{
		"/exit",
		"/clear and more",
		"--help",
		"-p hello",
		"!touch shell-escape",
		"@note.txt look",
		"# remember this",
		"<system-reminder>not really</system-reminder>",
		"two\nlines\n\n\tand a tab",
		"red \x1b[31malert\x07 and a nul-free end",
		`{"decision":"block","reason":"json"}`,
		"ünïcödé ✳ 你好 👩‍🚀",
		strings.Repeat("long text. ", 20_000), // 220 KB
	}
}

// TestThirtyPromptsOneCallEach, a thousand with -full, is the main job: every queued prompt reaches
// the model as plain text, in order, once, in one session; each is
// acknowledged with its reply; N prompts cost N model calls.
func TestThirtyPromptsOneCallEach(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		f := newFleet(t, c, nil)
		f.teach()
		f.write(filepath.Join(f.Work, "note.txt"), "this must not be read into a request")
		prompts, most := awkward(), 30
		if *testbed.Full {
			most = 1000
		}
		for n := len(prompts); n < most; n++ {
			prompts = append(prompts, fmt.Sprintf("prompt %02d", n))
		}
		for _, p := range prompts {
			f.send(p)
		}
		f.must("", "run", "--once")
		f.gone()

		calls := slices.DeleteFunc(f.calls(), func(call []string) bool { return len(call) == 0 }) // it has read a file
		if len(calls) != len(prompts) {
			t.Errorf("%d model calls for %d prompts", len(calls), len(prompts))
		}
		for n, got := range f.prompts() {
			if whole := f.whole(got); whole != prompts[n] && whole != escaped(prompts[n]) {
				t.Fatalf("prompt %d reached the model as %.200q, want %.200q", n, got, prompts[n])
			}
		}
		if c.real {
			asked := slices.DeleteFunc(f.API.Requests(), func(r *fakeapi.Request) bool { return len(r.Prompts()) == 0 })
			for n, r := range asked {
				if copies := r.Copies(escaped(prompts[n])); n >= 13 && copies != 1 {
					t.Errorf("prompt %d stands in its request %d times", n, copies)
				}
			}
		}
		done := f.outbox()
		if len(done) != len(prompts) {
			t.Fatalf("%d entries acknowledged, want %d", len(done), len(prompts))
		}
		for n, d := range done {
			if d.Reply != "ok" || d.Attempt != 1 {
				t.Errorf("entry %d: reply %q, attempt %d", n, d.Reply, d.Attempt)
			}
		}
		if why := f.ends(); len(why) != 1 || why[0] != "drained" {
			t.Errorf("sessions ended by %v, want one, drained", why)
		}
		if _, err := os.Stat(filepath.Join(f.Work, "shell-escape")); err == nil {
			t.Error("a prompt was run as a shell command")
		}
	})
}

// escaped is how the client may write a text: it escapes the tags of its own
// reminders (measured in 2.1.329; 2.1.270 does not).
func escaped(s string) string {
	return strings.NewReplacer("<system-reminder>", "&lt;system-reminder>", "</system-reminder>", "&lt;/system-reminder>").Replace(s)
}

// TestFirstEntryThatDoesNotFitAnArgument: a first entry that is long or has
// control characters comes with the first Stop, one turn more.
func TestFirstEntryThatDoesNotFitAnArgument(t *testing.T) {
	t.Parallel()
	for name, prompt := range map[string]string{
		"long":    strings.Repeat("0123456789", 20_000),
		"control": "bell \x07 and escape \x1b[2J",
	} {
		t.Run(name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, nil)
				f.teach()
				f.send(prompt)
				f.must("", "run", "--once")
				got := f.prompts()
				if len(got) != 2 || f.whole(got[1]) != prompt {
					t.Fatalf("%d prompts reached the model, the last %.100q", len(got), got[len(got)-1])
				}
				if done := f.outbox(); len(done) != 1 {
					t.Errorf("%d entries acknowledged, want 1", len(done))
				}
			})
		})
	}
}

// TestToolsAndBackgroundTasks: an entry counts as done when its background
// task has ended and the turn that this starts is over.
func TestToolsAndBackgroundTasks(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		f := newFleet(t, c, nil)
		f.teach(
			behaviour{match: "write a file", bash: "echo written > out.txt", reply: "wrote it"},
			behaviour{match: "start a task", background: "sleep 3; echo late > late.txt", reply: "started it"},
			behaviour{match: "<task-notification>", reply: "the task is over"},
		)
		f.send("write a file")
		f.send("start a task")
		f.send("after the task")
		f.must("", "run", "--once")
		f.gone()
		for _, name := range []string{"out.txt", "late.txt"} {
			if _, err := os.Stat(filepath.Join(f.Work, name)); err != nil {
				t.Errorf("%s was not written: %v", name, err)
			}
		}
		done := f.outbox()
		if len(done) != 3 {
			t.Fatalf("%d entries acknowledged, want 3", len(done))
		}
		if done[1].Reply != "the task is over" || len(done[1].Abandoned) != 0 {
			t.Errorf("the entry with the task: reply %q, abandoned %v", done[1].Reply, done[1].Abandoned)
		}
	})
}

// TestBackgroundTaskThatNeverEnds: after background-timeout the entry counts
// as done, with the task named, and the queue goes on.
func TestBackgroundTaskThatNeverEnds(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"background-timeout: 3s"})
		f.teach(behaviour{match: "start a task", background: "sleep 600", reply: "started it"})
		f.send("start a task")
		f.send("the next one")
		f.must("", "run", "--once")
		f.gone()
		done := f.outbox()
		if len(done) != 2 {
			t.Fatalf("%d entries acknowledged, want 2", len(done))
		}
		if len(done[0].Abandoned) != 1 || done[0].Reply != "started it" {
			t.Errorf("the entry with the task: reply %q, abandoned %v", done[0].Reply, done[0].Abandoned)
		}
	})
}

// TestAPIFailureIsRetried: a StopFailure acknowledges nothing, uses up no
// attempt, and the entry is done after a back-off.
func TestAPIFailureIsRetried(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		f := newFleet(t, c, nil)
		f.teach(behaviour{match: "flaky", times: 1, fail: "server_error"})
		f.send("flaky")
		f.must("", "run", "--once")
		why := f.ends()
		if len(why) != 2 || why[0] != "api-failure (server_error)" || why[1] != "drained" {
			t.Errorf("sessions ended by %q", why)
		}
		if done := f.outbox(); len(done) != 1 {
			t.Errorf("%d entries acknowledged, want 1", len(done))
		}
		f.unmarked() // the service refused it before anything was done
	})
}

// unmarked checks that no prompt came as a repeat.
func (f *fleet) unmarked() {
	f.t.Helper()
	for _, texts := range f.calls() {
		if all := strings.Join(texts, "\n"); strings.Contains(all, "[heartbeat: attempt") {
			f.t.Errorf("a prompt is marked as a repeat:\n%s", all)
		}
	}
}

// TestUsageLimitParks: with --once a parked agent is exit status 75, and its
// entry stays queued.
func TestUsageLimitParks(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, nil)
		f.teach(behaviour{match: "limited", fail: "rate_limit"})
		f.send("limited")
		out, errs, code := f.heartbeat("", "run", "--once")
		if code != 75 {
			t.Fatalf("exit %d, want 75\n%s%s", code, out, errs)
		}
		f.teach()
		if got := f.dead(); len(got) != 0 {
			t.Errorf("dead letters: %v", got)
		}
		if out := f.must("", "inbox", "a", "list"); !strings.Contains(out, "limited") {
			t.Errorf("the entry is not queued any more: %s", out)
		}
	})
}

// TestUntrustedWorkspaceIsAClearError: the client asks a question at its
// start; the session ends within start-timeout and the report quotes the screen.
func TestUntrustedWorkspaceIsAClearError(t *testing.T) {
	t.Parallel()
	f := newFleet(t, realClient(t), []string{"start-timeout: 30s", "max-restarts: 0"})
	f.teach()
	f.Trust()
	f.send("hello")
	begun := time.Now()
	_, errs, code := f.heartbeat("", "run", "--once")
	if code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	if took := time.Since(begun); took > patience {
		t.Errorf("it took %v", took)
	}
	if !strings.Contains(errs, `is not trusted" do="heartbeat apply --trust a`) {
		t.Errorf("the report does not say what to do:\n%s", errs)
	}
	if len(f.calls()) != 0 || len(f.dead()) != 0 {
		t.Error("an entry was lost at a start-up dialog")
	}
	f.gone()
	// No session can have got the prompt: it comes as if for the first time.
	f.Trust(f.Work)
	f.must("", "run", "--once")
	if done := f.outbox(); len(done) != 1 {
		t.Errorf("%d entries acknowledged, want 1", len(done))
	}
	f.unmarked()
}

// An answer with nothing in it has an empty reply, and not the one before, also
// as the first of a session that goes on with the conversation.
func TestAnEmptyAnswerHasAnEmptyReply(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"context: resume"})
		f.turns(
			turn{match: "third: empty", steps: []script.Step{sayNothing()}},
			turn{match: "second: same", steps: []script.Step{say("the same")}},
			turn{match: "first: same", steps: []script.Step{say("the same")}},
			turn{match: "no visible output", steps: []script.Step{sayNothing()}},
			turn{match: "fourth: empty", steps: []script.Step{sayNothing()}},
		)
		for _, p := range []string{"first: same", "second: same", "third: empty"} {
			f.send(p)
		}
		f.must("", "run", "--once")
		f.send("fourth: empty")
		f.must("", "run", "--once")
		var replies []string
		for _, d := range f.outbox() {
			replies = append(replies, d.Reply)
		}
		if want := []string{"the same", "the same", "", ""}; !slices.Equal(replies, want) {
			t.Errorf("replies %q, want %q\n%s", replies, want, f.hookLog())
		}
	})
}
