package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatWaitsAsideFromSendToDone: two of three prompts wait for a person aside, and the
// third is done meanwhile. One is approved; the other is rejected, handed over again with
// the reason, and approved then. Nothing of it is left.
func TestWhatWaitsAsideFromSendToDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    until: {check: [\"true\"], approve: [release], aside: true}\n"+
		"    command: [heartbeat, simulate, --home, .home, --script, ../script.json]\nnotify: {desk: {command: [tee, -a, told.txt]}}\n")
	w.put("script.json", `{"rules": [{"match": "too short", "steps": [{"reply": "a longer two"}]}, {"match": "two", "steps": [{"reply": "two"}]}, {"steps": [{"reply": "done"}]}]}`)
	w.done("apply")
	r := w.background()
	w.ok("send", "triage", "--id", "one", "write one")
	w.ok("send", "triage", "--id", "two", "write two")
	w.ok("send", "triage", "--id", "three", "--until-check", "true", "write three")
	asked := func(n int) map[string]string {
		t.Helper()
		ids := map[string]string{} // :: prompt → id
		until(t, "people are asked", func() bool {
			var list struct {
				Approvals []struct{ ID, State, Question string }
			}
			w.into(&list, "approval")
			for _, a := range list.Approvals {
				ids[strings.Split(a.Question, `"`)[1]] = a.ID
			}
			return len(list.Approvals) == n
		})
		return ids
	}
	aside := func(n int) {
		t.Helper()
		until(t, "they wait aside", func() bool { return w.agent("triage").Depth.Aside == n })
	}
	waited := func(id string) { // it may say that the session is just ending
		t.Helper()
		if o := w.run("send", "triage", "--id", id, "--until-check", "true", "--wait", "write "+id); o.status != 0 || o.stdout != "done\n" {
			t.Errorf("%s: %+v", id, o)
		}
	}
	waited("four")
	ids := asked(2)
	aside(2)
	if out := squeeze(w.ok("status")); !strings.Contains(out, "2 wait for approval aside since ") || !strings.Contains(out, "heartbeat approval") {
		t.Errorf("status: %s", out)
	}
	if out := squeeze(w.ok("inbox", "triage")); strings.Count(out, "waits for approval") != 2 || !strings.Contains(out, "write one") {
		t.Errorf("inbox: %s", out)
	}
	until(t, "the target is told", func() bool {
		told, err := os.ReadFile(filepath.Join(w.dir, "told.txt"))
		return err == nil && strings.Contains(string(told), "2 wait for approval aside since ")
	})
	child, out := (&fleet{world: w}).sit("send", "triage", "--id", "one", "--wait", "write one")
	until(t, "send says what it waits for", func() bool {
		return strings.Contains(out.String(), "set aside, it waits for a person: heartbeat approval")
	})
	press(t, child, "\x03")
	if code := exited(t, child); code != exitError {
		t.Errorf("send --wait, interrupted: status %d", code)
	}
	w.ok("approval", "approve", ids["write one"])
	aside(1)
	w.ok("approval", "reject", ids["write two"], "--note", "too short")
	var again string
	until(t, "it is asked about again", func() bool {
		id := asked(1)["write two"]
		again = id
		return id != "" && id != ids["write two"]
	})
	aside(1)
	w.ok("approval", "approve", again)
	waited("five")
	aside(0)
	if status := r.stop(); status != 0 {
		t.Errorf("run: exit status %d", status)
	}
	outbox := w.get("triage/.heartbeat/outbox.jsonl")
	for _, want := range []string{`"by":"check, release by a person","iteration":1`, `"by":"check, release by a person","iteration":2`, `"reply":"a longer two"`} {
		if strings.Count(outbox, want) != 1 {
			t.Errorf("outbox lacks %s: %s", want, outbox)
		}
	}
	if strings.Count(outbox, "\n") != 5 {
		t.Errorf("outbox: %s", outbox)
	}
	if out := w.ok("replies", "triage"); strings.Count(out, "a longer two") != 1 {
		t.Errorf("replies: %s", out)
	}
	if out := w.done("history", "triage"); !strings.Contains(out, "too short") {
		t.Errorf("history: %s", out)
	}
	if _, err := os.Lstat(filepath.Join(w.dir, "triage/.heartbeat/.waiting.jsonl")); !os.IsNotExist(err) {
		t.Errorf("the file of what waits is left: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(w.dir, "state/fleet/asides/*/*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the state directory keeps %q %v", left, err)
	}
	if status := w.run("inbox", "triage", "drop", "one").status; status != 1 {
		t.Errorf("what is done is dropped: exit status %d", status)
	}
}

// TestWhatWaitsAsideOutlivesWhatAPersonDoesToItsAgent: what apply has set up is undone, the
// directory moves, the queue is recovered: it is asked again, and done once.
func TestWhatWaitsAsideOutlivesWhatAPersonDoesToItsAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := func(dir string) {
		w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: "+dir+"\n    until: {check: [\"true\"], approve: [release], aside: true}\n"+
			"    command: [heartbeat, simulate, --home, .home, --script, ../script.json]\n")
	}
	asked := func() (id string) {
		t.Helper()
		until(t, "a person is asked", func() bool {
			var list struct{ Approvals []struct{ ID string } }
			if w.into(&list, "approval"); len(list.Approvals) == 1 {
				id = list.Approvals[0].ID
			}
			return id != "" && w.agent("triage").Depth.Aside == 1
		})
		return id
	}
	file("triage")
	w.put("script.json", `{"rules": [{"steps": [{"reply": "done"}]}]}`)
	w.done("apply")
	r := w.background()
	w.ok("send", "triage", "--id", "one", "write one")
	first := asked()
	r.stop()
	w.ok("unapply", "triage")
	if err := os.Rename(filepath.Join(w.dir, "triage"), filepath.Join(w.dir, "moved")); err != nil {
		t.Fatal(err)
	}
	file("moved")
	w.ok("recover", "triage", "--on-orphan", "drop")
	w.done("apply")
	r = w.background()
	second := asked()
	if o := w.run("approval", "approve", first); o.status == 0 || second == first {
		t.Errorf("the request that was withdrawn is answered: %+v", o)
	}
	w.ok("approval", "approve", second)
	until(t, "it is done", func() bool { return w.agent("triage").Depth.Aside == 0 })
	r.stop()
	if outbox := w.get("moved/.heartbeat/outbox.jsonl"); strings.Count(outbox, "\n") != 1 || !strings.Contains(outbox, `"id":"one"`) {
		t.Errorf("outbox: %s", outbox)
	}
}
