package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/internal/testbed"
)

func TestAttach(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{}`, "mode: persist", "idle-grace: 500ms")
	f.ok("send", "triage", "first")
	first := f.is("the first is done and a hook waits", func(r *hook.Record) bool {
		return r.Acknowledged == 1 && r.Phase == hook.Waiting
	})

	// Who joins and leaves disturbs nothing.
	child, out := f.sit("attach", "triage")
	until(t, "it shows what was said", func() bool { return strings.Contains(out.String(), "done: first") })
	f.is("somebody is there", func(r *hook.Record) bool { return r.Attached == 1 })
	press(t, child, "\x1c")
	if code := exited(t, child); code != 0 || !strings.Contains(out.String(), "detached from triage") {
		t.Errorf("status %d: %q", code, out.String())
	}
	if left := out.String(); !strings.Contains(left[strings.LastIndex(left, "done: first"):], "\x1b[?2004l") {
		t.Errorf("the terminal is not put back: %q", left)
	}
	f.is("nobody is there", func(r *hook.Record) bool { return r.Attached == 0 })
	f.ok("send", "triage", "second")
	f.is("the second is done in the same session", func(r *hook.Record) bool {
		return r.Session == first.Session && r.Acknowledged == 2 && r.Phase == hook.Waiting
	})

	// Who types has the session for themselves.
	child, out = f.sit("attach", "triage")
	looker := f.command("attach", "triage", "--read-only")
	seen := &testbed.Output{}
	looker.Stdout = seen
	if err := looker.Start(); err != nil {
		t.Fatal(err)
	}
	f.is("somebody is there; a looker does not count", func(r *hook.Record) bool { return r.Attached == 1 })
	press(t, child, "\x1b")
	f.is("the waiting hook has ended", func(r *hook.Record) bool {
		return time.Since(r.TypedAt) < time.Minute && r.Phase == hook.Unattended
	})
	press(t, child, "a word from a person\r")
	for _, o := range []*testbed.Output{out, seen} {
		until(t, "an answer", func() bool { return strings.Contains(o.String(), "done: a word from a person") })
	}
	f.is("the session waits again", func(r *hook.Record) bool { return r.Phase == hook.Waiting })
	if o := f.ok("screen", "triage"); !strings.Contains(o, "done: a word from a person") {
		t.Errorf("heartbeat screen: %s", o)
	}
	var p struct {
		Agent string
		Size  struct{ Rows, Cols int }
		Lines []string
	}
	f.into(&p, "screen", "triage")
	if p.Agent != "triage" || p.Size.Rows != 30 || p.Size.Cols != 100 || len(p.Lines) == 0 {
		t.Errorf("heartbeat screen -o json: %+v", p)
	}
	f.ok("send", "triage", "third")
	until(t, "status says why it is not handed over", func() bool {
		return strings.Contains(f.ok("status"), "triage: a person has typed in its session; prompts continue in ")
	})
	typed := f.record()
	until(t, "three times idle-grace pass", func() bool { return time.Since(typed.TypedAt) > 3*time.Second })
	if r := f.record(); r.Session != first.Session || r.Phase != hook.Waiting || strings.Contains(f.outbox(), "third") {
		t.Errorf("a session in which somebody has just typed was ended or given work: %s %s", r.Session, r.Phase)
	}
	press(t, child, "\x1c")
	exited(t, child)
	f.is("who leaves hands it back: the third is done in the same session", func(r *hook.Record) bool {
		return r.Session == first.Session && r.Acknowledged == 3 && r.Phase == hook.Waiting
	})

	// Whose connection is lost may come back.
	child, _ = f.sit("attach", "triage")
	f.is("somebody is there again", func(r *hook.Record) bool { return r.Attached == 1 })
	press(t, child, "half a line")
	f.is("and types", func(r *hook.Record) bool { return time.Since(r.TypedAt) < time.Minute })
	child.End(t.Context())
	f.is("and is gone", func(r *hook.Record) bool { return r.Attached == 0 })
	f.ok("send", "triage", "fourth")
	until(t, "status says that it waits", func() bool { return strings.Contains(f.ok("status"), "a person has typed in its session") })
	f.ok("resume", "triage")
	f.is("the fourth is done in the same session", func(r *hook.Record) bool {
		return r.Session == first.Session && r.Acknowledged == 4 && r.Phase == hook.Waiting
	})
	if got := f.ends(); len(got) != 0 {
		t.Errorf("a session ended by %q", got)
	}
	if err := looker.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := looker.Wait(); err != nil || !strings.Contains(seen.String(), "detached from triage") {
		t.Errorf("the looker: %v %q", err, seen.String())
	}
}

// TestASessionThatAPersonBrokeOff: after Esc no hook waits any more. The
// session is the person's while they are there, and status says why it is
// handed nothing.
func TestASessionThatAPersonBrokeOff(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{}`, "mode: persist", "idle-grace: 500ms")
	f.ok("send", "triage", "first")
	f.is("a hook waits", func(r *hook.Record) bool { return r.Acknowledged == 1 && r.Phase == hook.Waiting })
	child, _ := f.sit("attach", "triage")
	f.is("somebody is there", func(r *hook.Record) bool { return r.Attached == 1 })
	press(t, child, "\x1b")
	alone := f.is("the waiting hook has ended", func(r *hook.Record) bool { return r.Phase == hook.Unattended })
	f.ok("send", "triage", "second")
	until(t, "three times idle-grace pass", func() bool { return time.Since(alone.Since) > 1500*time.Millisecond })
	if o := f.ok("status"); !strings.Contains(o, "triage: a person uses its session; prompts continue when they have left") {
		t.Errorf("status does not say why nothing is handed over:\n%s", o)
	}
	if r := f.record(); r.Session != alone.Session || r.Phase != hook.Unattended {
		t.Errorf("a session that somebody uses was ended or given work: %s %s", r.Session, r.Phase)
	}
	press(t, child, "\x1c")
	exited(t, child)
	until(t, "the second is done", func() bool { return strings.Contains(f.outbox(), "done: second") })
	if got := f.ends(); len(got) != 1 || !strings.HasPrefix(got[0], "released (the person who had joined it has left") {
		t.Errorf("the session that the person had used ended by %q", got)
	}
}

// TestWhatAPersonTypesInATurnRunsFirst: it was swallowed when they left
// before the turn's end, and what was queued ran before it.
func TestWhatAPersonTypesInATurnRunsFirst(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"drain", "persist"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, `{"rules": [{"match": "slow", "steps": [`+untilLetGo+`, {"reply": "done: slow"}]}]}`, "mode: "+mode)
			f.ok("send", "triage", "slow")
			f.ok("send", "triage", "second")
			f.is("a turn", func(r *hook.Record) bool { return r.Phase == hook.Turn })
			child, out := f.sit("attach", "triage")
			f.is("somebody is there", func(r *hook.Record) bool { return r.Attached == 1 })
			press(t, child, "please also do this\r")
			f.is("it was submitted", func(r *hook.Record) bool { return r.Line.Submitted == 1 })
			press(t, child, "\x1c")
			if exited(t, child); strings.Contains(out.String(), "done: slow") {
				t.Fatal("the turn was over before they left")
			}
			f.letGo()
			until(t, "the second is done", func() bool { return strings.Contains(f.outbox(), "done: second") })
			logs := f.run("logs", "triage").stdout
			typed, second := strings.Index(logs, "> please also do this"), strings.Index(logs, "> second")
			if typed < 0 || second >= 0 && second < typed {
				t.Errorf("what they had typed was not done first:\n%s", logs)
			}
		})
	}
}

func TestAttachToNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	for _, args := range [][]string{{"attach", "triage", "--read-only"}, {"screen", "triage"}} {
		o := w.run(args...)
		if o.status != 3 || o.stdout != "" || !strings.Contains(o.stderr, `cannot join agent "triage": no session is running`) ||
			!strings.Contains(o.stderr, "hint: heartbeat status triage") {
			t.Errorf("%q: %+v", args, o)
		}
	}
	for _, tt := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"attach", "triage"}, 2, "attach needs a terminal"},
		{[]string{"attach", "triage", "--detach-keys", "ctrl-1"}, 2, `--detach-keys: "ctrl-1" is not a key`},
		{[]string{"attach", "traige", "--read-only"}, 1, "did you mean triage?"},
	} {
		if o := w.run(tt.args...); o.status != tt.status || !strings.Contains(o.stderr, tt.stderr) {
			t.Errorf("%q: %+v", tt.args, o)
		}
	}
}

// TestAttachThatWaits: for the next session, and until the person has enough.
func TestAttachThatWaits(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{}`, "mode: persist")
	child, out := f.sit("attach", "triage", "--wait")
	until(t, "it says what it waits for", func() bool { return strings.Contains(out.String(), "waiting for a session of triage; ") })
	f.ok("send", "triage", "first")
	until(t, "it has joined", func() bool { return strings.Contains(out.String(), "done: first") })
	press(t, child, "\x1c")
	if code := exited(t, child); code != 0 || !strings.Contains(out.String(), "detached from triage") {
		t.Errorf("status %d: %q", code, out.String())
	}
	f.ok("pause", "triage")
	until(t, "its session has ended", func() bool { return f.agent("triage").State == "held" })
	child, out = f.sit("attach", "triage", "--wait")
	until(t, "it says that the agent is paused", func() bool { return strings.Contains(out.String(), "it is held: paused by a person") })
	press(t, child, "\x03")
	if code := exited(t, child); code != 0 || !strings.Contains(out.String(), "triage has no session yet") {
		t.Errorf("ctrl-c: status %d: %q", code, out.String())
	}
	looker := f.command("attach", "triage", "--wait", "--read-only")
	seen := &testbed.Output{}
	looker.Stdout = seen
	if err := looker.Start(); err != nil {
		t.Fatal(err)
	}
	f.ok("resume", "triage")
	f.ok("send", "triage", "second")
	until(t, "without a terminal it joins, too", func() bool { return strings.Contains(seen.String(), "done: second") })
	_ = looker.Process.Signal(os.Interrupt)
	if err := looker.Wait(); err != nil {
		t.Error(err)
	}
}
