package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// TestMoments: what a time means, also where the clocks change.
func TestMoments(t *testing.T) {
	t.Parallel()
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, rome) // the day before the clocks go forward
	autumn := time.Date(2026, 10, 24, 12, 0, 0, 0, rome)
	for _, tt := range []struct {
		now        time.Time
		text, want string // "" is refused
	}{
		{now, "18:30", "2026-03-28T18:30:00+01:00"},
		{now, "11:00", "2026-03-29T11:00:00+02:00"},
		{now, "12:00", "2026-03-29T12:00:00+02:00"},
		{now, "02:30", "2026-03-29T03:00:00+02:00"}, // there is none
		{now, "2026-03-29 02:30", "2026-03-29T03:00:00+02:00"},
		{now, "2026-03-29T01:59:59", "2026-03-29T01:59:59+01:00"},
		{now, "2026-03-29T02:30:00Z", "2026-03-29T04:30:00+02:00"},
		{now, "2026-03-29T02:30:00-05:00", "2026-03-29T09:30:00+02:00"},
		{autumn, "02:30", "2026-10-25T02:30:00+02:00"}, // there are two
		{autumn, "2026-10-25 02:30", "2026-10-25T02:30:00+02:00"},
		{autumn, "2026-10-25T02:30:00+01:00", "2026-10-25T02:30:00+01:00"},
		{now, "2026-12-01T10:00Z", "2026-12-01T11:00:00+01:00"},
		{now, "2026-12-01T10:00+01:00", "2026-12-01T10:00:00+01:00"},
		{now, "2026-12-01T10:00-0530", "2026-12-01T16:30:00+01:00"},
		{now, "2026-12-01 10:00:30 +02", "2026-12-01T09:00:30+01:00"},
		{now, "2026-12-01t10:00z", "2026-12-01T11:00:00+01:00"},
		{now, "2026-12-01 10:00 UTC", "2026-12-01T11:00:00+01:00"},
		{now, "2026-12-01T10:00:00.25Z", "2026-12-01T11:00:00+01:00"},
		{now, "2026-12-01", "2026-12-01T00:00:00+01:00"},
		{now, "2026-12-1 9:05", "2026-12-01T09:05:00+01:00"},
		{now, "2026-03-28", ""}, // its midnight is over
		{now, "2026-12-01T10Z", ""},
		{now, "2026-02-30", ""},
		{now, "2026-12-01T24:00", ""},
		{now, "10:00Z", ""},
		{now, "2h", ""},
		{now, "2026-03-28 11:59", ""},
		{now, "yesterday", ""},
		{now, "25:00", ""},
		{now, "", ""},
	} {
		at, err := moment(tt.text, tt.now, rome)
		if got := at.In(rome).Format(time.RFC3339); (err != nil) != (tt.want == "") || err == nil && got != tt.want {
			t.Errorf("%q is %s, %v, want %s", tt.text, got, err, tt.want)
		}
	}
}

// TestSentLater: a prompt that is for later is kept without a scheduler, shown, taken
// back, and sent when its time has come, or at once when that is over.
func TestSentLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.ok("apply")
	if out := w.ok("send", "triage", "--in", "10ms", "--id", "over", "what is over"); !strings.Contains(out, "to be sent to triage at ") || !strings.Contains(out, "No scheduler runs the agent now") {
		t.Errorf("send says %q", out)
	}
	w.ok("send", "triage", "--in", "2h", "--id", "far", "what is \x1b[31mfar away")
	w.ok("send", "triage", "--in", "3h", "--id", "dropped", "what is taken back")
	if out := w.ok("send", "triage", "--in", "4h", "what is far away, too"); !regexp.MustCompile(`(?m)^heartbeat send triage --cancel [0-9a-f]{16} takes it back$`).MatchString(out) {
		t.Errorf("how to take it back was not said: %q", out)
	}
	if out := w.ok("send", "--cancel", "dropped"); out != "taken back from triage: dropped\n" {
		t.Errorf("cancel says %q", out)
	}
	if o := w.run("send", "triage", "--cancel", "dropped"); o.status != exitError || !strings.Contains(o.stderr, "hint: heartbeat next lists") {
		t.Errorf("twice: %+v", o)
	}
	for _, args := range [][]string{{"--in", "1h"}, {}, {"--urgent"}} {
		send := append([]string{"send", "triage", "--id", "far"}, args...)
		if o := w.run(append(send, "again")...); o.status != exitError || !strings.Contains(o.stderr, `"far" was accepted before, with another text`) || !strings.Contains(o.stderr, "--cancel far takes it back") {
			t.Errorf("%q, another text: %+v", args, o)
		}
		if out := w.ok(append(send, "what is \x1b[31mfar away")...); !strings.HasPrefix(out, "already accepted: far; it is sent at ") {
			t.Errorf("%q, the same text: %q", args, out)
		}
	}
	if o := w.run("send", "triage", "--id", "far", "--wait", "what is \x1b[31mfar away"); o.status != exitError || !strings.Contains(o.stderr, "it was accepted before, and is sent at ") {
		t.Errorf("its reply is waited for: %+v", o)
	}
	if out := w.ok("next"); !regexp.MustCompile(`(?m)^triage +far +\S{3} [0-9-]{10} .* in \S+ +what is .*far aw…$`).MatchString(out) || !strings.Contains(out, "what is due for triage is not sent yet: it is sent as soon as a scheduler runs") || strings.Contains(out, "dropped") || strings.Contains(out, "\x1b") {
		t.Errorf("next says\n%s", out)
	}
	for _, args := range [][]string{
		{"--at", "18:30", "--in", "1h", "x"}, {"--in", "1h", "--wait", "x"}, {"--cancel", "far", "x"}, {"--at", "2020-01-01 10:00", "x"}, {"--in", "10000h", "x"},
	} {
		if o := w.run(append([]string{"send", "triage"}, args...)...); o.status != exitUsage {
			t.Errorf("%q: %+v", args, o)
		}
	}
	r := w.background()
	until(t, "what is over is done", func() bool { return w.agent("triage").Acknowledged == 1 })
	if out := w.ok("send", "triage", "--in", "1h", "--id", "over", "what is over"); out != "already accepted: over\n" {
		t.Errorf("what was accepted before is kept: %q", out)
	}
	for id, why := range map[string]string{"over": "was accepted before, with another text", "two\nlines": "it must be printable text"} {
		if o := w.run("send", "triage", "--in", "1h", "--id", id, "again"); o.status != exitError || !strings.Contains(o.stderr, why) {
			t.Errorf("what the queue would refuse at its time is kept: %+v", o)
		}
	}
	w.ok("send", "triage", "--in", "1s", "soon")
	until(t, "what was soon is done", func() bool { return w.agent("triage").Acknowledged == 2 })
	if out := w.ok("next"); !strings.Contains(out, "far") || strings.Contains(out, "soon as") {
		t.Errorf("next says\n%s", out)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestATimedPromptIsProvenAndItsReplyGoesToATarget: --at and --in go with --reply-to and
// --until-check, and none of it is kept where the agent can write. Taking the prompt back
// takes that back, too.
func TestATimedPromptIsProvenAndItsReplyGoesToATarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    permissions: {allow: [Bash]}\n"+
		"    command: [heartbeat, simulate, --home, .home, --script, ../script.json]\n"+
		"notify: {desk: {command: [tee, -a, told.txt], tier: replies}}\n")
	w.put("script.json", `{"rules": [{"match": "Mend", "steps": [{"tool": "Bash", "command": "echo one more >> mended"}, {"reply": "All is mended!"}]}]}`)
	w.done("apply")
	check := `[ "$(wc -l < mended)" -ge 2 ]`
	if o := w.run("send", "triage", "--in", "1h", "--reply-to", "nobody", "x"); o.status != exitError || !strings.Contains(o.stderr, `nobody is declared as "nobody"`) {
		t.Errorf("%+v", o)
	}
	out := w.done("send", "triage", "--in", "10ms", "--id", "mend", "--reply-to", "desk", "--until-check", check, "Mend it.")
	if !strings.Contains(out, "the reply goes to desk\n") {
		t.Errorf("send says %q", out)
	}
	w.done("send", "triage", "--in", "1h", "--id", "back", "--reply-to", "desk", "--until-check", "false", "Mend it.")
	w.done("send", "triage", "--cancel", "back")
	waits, err := store.Ask(t.Context(), filepath.Join(w.dir, "state", "fleet"), awaited.All)
	if demands := w.glob("state/fleet/demands/*/*.json"); err != nil || len(waits) != 1 || len(demands) != 1 {
		t.Errorf("%v wait, %v, and %q are to be passed", waits, err, demands)
	}
	if text := w.get("triage/.heartbeat/later/" + w.glob("triage/.heartbeat/later/*.json")[0]); strings.Contains(text, "desk") || strings.Contains(text, "wc -l") {
		t.Errorf("the agent can write %s", text)
	}
	w.put("told.txt", "")
	r := w.background()
	until(t, "the reply is told", func() bool { return strings.Contains(w.get("told.txt"), "All is mended!") })
	r.stop()
	if outbox := w.get("triage/.heartbeat/outbox.jsonl"); strings.Count(outbox, "\n") != 1 || !strings.Contains(outbox, `"verdict":{"by":"check","iteration":2`) {
		t.Errorf("outbox: %s", outbox)
	}
}

// glob returns the names of files of the world.
func (w *world) glob(pattern string) (names []string) {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, pattern))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range found {
		names = append(names, filepath.Base(path))
	}
	return names
}

// TestWhyADuePromptIsNotSent: next said that it is sent as soon as a scheduler runs, while
// one did, and only the log said why not.
func TestWhyADuePromptIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated+"    max-queue: 1\n")
	w.ok("apply")
	w.ok("pause", "triage")
	w.ok("send", "triage", "the first")
	w.ok("send", "triage", "--in", "10ms", "--id", "later", "the later one")
	r := w.background()
	const why = "the queue is full: 1 of 1; it is tried again"
	until(t, "status says why", func() bool {
		out := strings.Join(strings.Fields(w.ok("status")), " ")
		return strings.Contains(out, "! triage: prompts whose time has come cannot be queued for ") && strings.Contains(out, "the queue is full: 1 of 1")
	})
	if out := w.ok("next"); !strings.Contains(out, "what is due for triage is not sent yet: it cannot be queued: ") || !strings.Contains(out, why) {
		t.Errorf("next says\n%s", out)
	}
	// Both say it with the same word, in the same form.
	var said struct {
		Data struct {
			Sends []struct{ Unsent *status.Unable }
		}
	}
	if err := json.Unmarshal([]byte(w.ok("next", "-o", "json")), &said); err != nil {
		t.Fatal(err)
	}
	if s := said.Data.Sends; len(s) != 1 || s[0].Unsent == nil || s[0].Unsent.Since.IsZero() || !strings.Contains(s[0].Unsent.Why.String(), why) {
		t.Errorf("next -o json says %+v", s)
	}
	r.stop()
}

// TestAPromptIsTakenBackByItsIDAlone: the agent had to be named, although next lists the ids
// of all agents. Where two have one with the same id, nothing is taken back.
func TestAPromptIsTakenBackByItsIDAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated+"  builder:\n    dir: agents/builder\n    command: [heartbeat, simulate]\n")
	w.ok("apply")
	w.ok("send", "builder", "--in", "2h", "--id", "one", "look")
	w.ok("send", "builder", "--in", "2h", "--id", "both", "look")
	w.ok("send", "triage", "--in", "2h", "--id", "both", "look")
	if out := w.ok("send", "--cancel", "one"); out != "taken back from builder: one\n" {
		t.Errorf("it says %q", out)
	}
	if o := w.run("send", "--cancel", "one"); o.status != exitError || !strings.Contains(o.stderr, `cannot take back "one": no prompt with this id waits`) || !strings.Contains(o.stderr, "heartbeat inbox drop one takes it out") {
		t.Errorf("twice: %+v", o)
	}
	if o := w.run("send", "--cancel", "both"); o.status != exitError || !strings.Contains(o.stderr, `cannot tell which "both" is meant: agents triage, builder have one`) || !strings.Contains(o.stderr, "hint: name the agent as well: heartbeat send AGENT --cancel both\n") {
		t.Errorf("of two agents: %+v", o)
	}
	if out := w.ok("next"); strings.Count(out, "both") != 2 {
		t.Errorf("one of them was taken back:\n%s", out)
	}
	if out := w.ok("send", "triage", "--cancel", "both"); out != "taken back from triage: both\n" {
		t.Errorf("it says %q", out)
	}
	if o := w.run("send"); o.status != exitUsage || !strings.Contains(o.stderr, "no agent is named") {
		t.Errorf("without an agent: %+v", o)
	}
}
