package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/doctor"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/notify/memo"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// toldSomething leaves what a run of a fleet with the targets desk and dead leaves.
func (w *world) toldSomething(fleet string) {
	w.t.Helper()
	now := time.Now()
	n := notice.Notice{Key: "triage/held@1-began", Event: notice.Began, Kind: "held", Agent: "triage", Urgent: true, At: now, Since: now, Text: "x" + evilText(), Do: evilText()}
	reply := notice.Notice{Key: "triage/reply/1/desk", Event: notice.Happened, Kind: notice.Reply, Agent: "triage", At: now, Since: now, Text: "to 1", Entry: "1", Reply: evilText(), To: "desk"}
	state := memo.New()
	state.Boxes["dead"] = &outbox.Box{
		Sending: &outbox.Message{Key: n.Key, Made: now, Notices: []notice.Notice{n}, Attempts: 3}, Next: now.Add(time.Hour), Failing: now.Add(-time.Hour), Why: "exit status 1" + evilText(), Dropped: 1,
	}
	dir := filepath.Join(w.dir, "state", fleet)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	storetest.Write(w.t, dir, func(c *store.Change) error {
		return errors.Join(
			memo.Put(c, state),
			memo.Log(c, memo.Record{At: now, Target: "desk", Outcome: outbox.Sent, Key: n.Key, Attempts: 1, Notices: []notice.Notice{n, reply}}),
			memo.Log(c, memo.Record{At: now, Target: "dead", Outcome: outbox.Failed, Key: n.Key, Attempts: 1, Why: foreign.Text("the command failed: exit status 1; it said: " + evilText()), Notices: []notice.Notice{n}}),
		)
	})
}

const tellers = oneAgent + "    command: [heartbeat, simulate]\nnotify: {desk: {command: [tee, -a, told.txt]}, dead: {command: ['false']}}\n"

func TestWhatNotifyLogShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", tellers)
	if out := w.ok("notify", "log"); out != "no notice was sent yet\n" {
		t.Errorf("%s", out)
	}
	w.toldSomething("fleet")
	out := w.ok("notify", "log")
	harmless(t, "notify log", out)
	for _, want := range []string{"triage is held and 1 more", "exit status 1", "dead: 1 notice on the way; it has failed for 1h"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if out := w.ok("notify", "log", "desk"); strings.Contains(out, "exit status 1") {
		t.Errorf("desk's alone:\n%s", out)
	}
	harmless(t, "notify log -o json", w.ok("-o", "json", "notify", "log"))
	w.put("heartbeat.yaml", strings.Replace(tellers, "{desk:", "{renamed:", 1))
	for _, args := range [][]string{{"notify", "log"}, {"notify", "log", "desk"}} {
		if out := w.ok(args...); !strings.Contains(out, "  desk    sent") {
			t.Errorf("what a target got under its former name is not in\n%s", out)
		}
	}
	if o := w.run("notify", "log", "nobody"); o.status != exitError || !strings.Contains(o.stderr, "the targets are dead, renamed") {
		t.Errorf("%+v", o)
	}
}

func TestNotifyTest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", tellers)
	if out := w.ok("notify", "test", "desk"); !strings.Contains(out, "desk    sent") || !strings.Contains(w.get("told.txt"), "if you can read this, notices arrive here") {
		t.Errorf("%s\n%s", out, w.get("told.txt"))
	}
	if o := w.run("notify", "test"); o.status != exitError || !strings.Contains(o.stderr, "cannot reach dead: the command failed: exit status 1") || !strings.Contains(o.stdout, "desk    sent") {
		t.Errorf("%+v", o)
	}
	if o := w.run("notify", "test", "nobody"); o.status != exitError || !strings.Contains(o.stderr, "the targets are dead, desk") {
		t.Errorf("%+v", o)
	}
	w.put("heartbeat.yaml", oneAgent)
	if o := w.run("notify", "test"); o.status != exitError || !strings.Contains(o.stderr, "heartbeat help notify") {
		t.Errorf("%+v", o)
	}
}

// The reply to a prompt, and the news that one was given up, go to who asked for
// them, also to prompts that were queued before the run, and once.
func TestReplyTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent+"    command: [heartbeat, simulate]\n    trigger: {cron: \"@yearly\", prompt: hello, name: new, reply-to: desk}\nnotify: {desk: {command: [tee, -a, told.txt], tier: replies}}\n")
	w.ok("apply")
	if out := w.ok("send", "triage", "--id", "one", "--reply-to", "desk", "how are you?"); !strings.Contains(out, "the reply goes to desk") {
		t.Errorf("%s", out)
	}
	w.ok("send", "triage", "--id", "two", "--reply-to", "desk", "never mind")
	w.ok("inbox", "triage", "drop", "two")
	w.ok("send", "triage", "--id", "three", "and you?")
	if o := w.run("send", "triage", "--reply-to", "phone", "x"); o.status != exitError || !strings.Contains(o.stderr, "the targets are desk") {
		t.Errorf("%+v", o)
	}
	w.run("run", "--once", "--fire")
	until(t, "all is told", func() bool { // a busy machine may need another run for what is on its way
		told, _ := os.ReadFile(filepath.Join(w.dir, "told.txt"))
		if strings.Count(string(told), "triage has replied") == 2 && strings.Contains(string(told), "two: dropped") {
			return true
		}
		w.run("run", "--once")
		return false
	})
	told := w.get("told.txt")
	for want, times := range map[string]int{"triage has replied: to one": 1, "triage has given up prompts: two: dropped": 1, "to three": 0, "triage has replied": 2} {
		if n := strings.Count(told, want); n != times {
			t.Errorf("%q is there %d times, want %d:\n%s", want, n, times, told)
		}
	}
	w.run("run", "--once")
	if again := w.get("told.txt"); again != told {
		t.Errorf("the next run tells it again:\n%s", again)
	}
	if left, err := store.Ask(t.Context(), filepath.Join(w.dir, "state/fleet"), awaited.All); err != nil || len(left) > 0 {
		t.Errorf("somebody still waits: %v, %v", left, err)
	}
	w.ok("send", "triage", "--id", "one", "--reply-to", "desk", "how are you?") // who asks again waits for what is there
	w.run("run", "--once")
	if n := strings.Count(w.get("told.txt"), "to one"); n != 1 {
		t.Errorf("the reply came %d times", n)
	}
}

// TestARunWithOnceFailsForAReplyThatHasNotArrived: it exited with 0, and only the next run
// tried again.
func TestARunWithOnceFailsForAReplyThatHasNotArrived(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	desk := "    command: [heartbeat, simulate]\nnotify: {desk: {command: [sh, -c, 'cat >> told.txt; test -e open'], tier: replies}}\n"
	w.put("heartbeat.yaml", oneAgent+desk)
	w.ok("apply")
	w.ok("send", "triage", "--id", "one", "--reply-to", "desk", "how are you?")
	for range 2 { // the next run tries again, too
		o := w.run("run", "--once")
		if o.status != exitError || !strings.Contains(o.stderr, "1 reply has not arrived at desk, and the next run tries again: ") || !strings.Contains(o.stderr, "notify log") {
			t.Errorf("%+v", o)
		}
	}
	w.put("open", "")
	until(t, "it arrives", func() bool { return w.run("run", "--once").status == 0 })
	if out := w.ok("notify", "log"); !strings.Contains(out, "sent") {
		t.Errorf("%s", out)
	}
}

// An agent that cannot work refuses prompts where its file says so, with its words.
func TestWhileDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent+"    command: [heartbeat, simulate]\n    while-down: refuse\n    down-text: Ask in the office.\n")
	w.ok("apply")
	o := w.run("send", "triage", "hello")
	if o.status != exitLater || !strings.Contains(o.stderr, `agent "triage" takes none now: no scheduler runs the agent; Ask in the office.`) {
		t.Errorf("%+v", o)
	}
	if out := w.ok("inbox"); out != "nothing is queued\n" {
		t.Errorf("it was queued: %s", out)
	}
	w.put("heartbeat.yaml", strings.Replace(w.get("heartbeat.yaml"), "refuse", "queue", 1))
	if out := w.ok("send", "triage", "hello"); !strings.Contains(out, "Ask in the office.") {
		t.Errorf("%s", out)
	}
}

// A run that is killed in the middle of a delivery sends that notice again, with the
// same key, and loses none.
func TestAKillInTheMiddleOfADelivery(t *testing.T) {
	t.Parallel()
	f := &fleet{world: newWorld(t)}
	f.put("heartbeat.yaml", simulated+"  bad: {dir: agents/bad, command: ['false'], max-restarts: 0, max-attempts: 1}\n"+
		"notify: {desk: {command: [sh, -c, \"echo $HEARTBEAT_KEY >> began; while ! test -e open; do sleep 0.1; done; cat >> told.txt; echo $HEARTBEAT_KEY >> done\"]}}\n")
	f.put("agents/triage/README", "")
	f.put("agents/bad/README", "")
	f.world.ok("send", "bad", "hello")
	f.start()
	read := func(name string) string {
		data, _ := os.ReadFile(filepath.Join(f.dir, name))
		return string(data)
	}
	until(t, "the delivery has begun", func() bool { return strings.Contains(read("began"), "bad/held@") })
	if err := f.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-f.done
	if read("done") != "" {
		t.Fatal("it was delivered")
	}
	f.put("open", "")
	f.start()
	t.Cleanup(f.stop)
	until(t, "it is delivered", func() bool {
		return strings.Contains(read("done"), "bad/held@") && strings.Contains(read("told.txt"), "after a crash")
	})
	began := strings.Fields(read("began"))
	if began[0] != strings.Fields(read("done"))[0] || began[0] != began[1] {
		t.Errorf("other keys: %q, then %q", began, read("done"))
	}
	if n := strings.Count(read("told.txt"), "bad is held"); n != 1 {
		t.Errorf("told %d times:\n%s", n, read("told.txt"))
	}
}

// status and doctor say which target gets nothing, also without a run.
func TestWhoGetsNothingIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", tellers)
	w.put("agents/triage/x", "")
	w.toldSomething("fleet")
	out := w.ok("status")
	harmless(t, "status", out)
	if !strings.Contains(out, "notices to dead have failed for 1h: exit status 1") || !strings.Contains(out, "notify test dead") {
		t.Errorf("%s", out)
	}
	o := w.run("doctor")
	harmless(t, "doctor", o.stdout)
	for _, want := range []string{"target-fails", "not-watched", "help notify"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("%s is not in\n%s", want, o.stdout)
		}
	}
}

// What doctor finds is told once, but for what status says anyway.
func TestFindingsAreFacts(t *testing.T) {
	t.Parallel()
	got := newsOf([]doctor.Finding{
		{Severity: doctor.Error, Code: "hook-missing", Agent: "a", Seen: "x", Fix: "y"},
		{Severity: doctor.Warning, Code: "no-such-code", Seen: "z"},
		{Severity: doctor.Error, Code: "held", Agent: "a"},
		{Severity: doctor.Info, Code: "not-watched"},
		{Severity: doctor.Warning, Code: "old-queue", Seen: "in this", Fix: "rm this"},
		{Severity: doctor.Warning, Code: "old-queue", Seen: "in that", Fix: "rm that"},
		{Severity: doctor.Warning, Code: "login-ends", Seen: "the login ends", Fix: "run claude"},
		{Severity: doctor.Error, Code: "hook-missing", Agent: "a", Seen: "another one", Fix: "z"},
	})
	if len(got) == 6 && (got[5].Key == got[0].Key || got[5].Text != "hook-missing: another one") {
		t.Errorf("a second finding with the same code is %+v", got[5])
	}
	got = got[:len(got)-1]
	if len(got) != 5 || got[4].Text != "login-ends: the login ends" || got[2].Key == got[3].Key || got[3].Text != "old-queue: in that" || got[0].Key != "a/finding/hook-missing" || !got[0].Urgent || got[0].Text != "hook-missing: x" || got[1].Key != "/finding/no-such-code" || got[1].Urgent {
		t.Errorf("%+v", got)
	}
}

// TestAFileWithoutATargetThatRepliesWaitForIsWarnedOf before it is run, or applied.
func TestAFileWithoutATargetThatRepliesWaitForIsWarnedOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", tellers)
	w.ok("apply")
	for _, target := range []string{"desk", "gone"} {
		storetest.Write(t, filepath.Join(w.dir, "state/fleet"), func(c *store.Change) error {
			_, err := awaited.Order{Reply: awaited.Reply{Agent: "triage", ID: "1", Target: target, At: time.Now()}}.Do(c)
			return err
		})
	}
	for _, command := range []string{"validate", "diff", "apply"} {
		if o := w.run(command); !strings.Contains(o.stderr, "1 reply is waited for at gone, which notify: does not name") || strings.Contains(o.stderr, "desk") {
			t.Errorf("%s says %+v", command, o)
		}
	}
}
