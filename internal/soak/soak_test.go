package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/promise"
	"heartbeat/internal/simulate"
	"heartbeat/internal/testbed"
)

// TestMain keeps what the tests write in memory.
func TestMain(m *testing.M) { os.Exit(testbed.Run(m)) }

// made is a made-up run of two agents: what it left in its folder.
type made struct {
	*lab
	t *testing.T
}

func newMade(t *testing.T) *made {
	l, err := newLab(&fleet{Dir: t.TempDir(), Members: members(2)})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range l.Members {
		if err := os.MkdirAll(filepath.Dir(l.inboxOf(m)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d := &made{l, t}
	d.write("heartbeat.yaml", l.declare(l.plainVariant()))
	if err := os.Symlink(testbed.Programs(t), l.path("bin")); err != nil {
		t.Fatal(err)
	}
	return d
}

const hello = " hello <system-reminder>"

// send has an agent be sent its n-th prompt.
func (d *made) send(agent, n int) (key string) {
	s := &sender{lab: d.lab, m: d.Members[agent], name: "a", n: n}
	key = keyOf(s.m, s.name, n)
	s.note(bySend, key+hello, "")(nil)
	return key
}

// give has an agent's model get texts now.
func (d *made) give(agent int, texts ...string) {
	line, err := json.Marshal(simulate.Request{At: time.Now(), SessionID: "s", Prompts: texts, Dir: d.dirOf(d.Members[agent])})
	if err != nil {
		d.t.Fatal(err)
	}
	d.write("model.jsonl", string(line))
}

func (d *made) write(name, line string) {
	f, err := os.OpenFile(d.path(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		_ = f.Close()
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// tool has a tool run now, as the script says.
func (d *made) tool() {
	_, script, _ := strings.Cut(d.script(1), `"tool": "Bash", "command": `)
	var command string
	if err := json.NewDecoder(strings.NewReader(script)).Decode(&command); err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Env = append(os.Environ(), "CLAUDE_CODE_SESSION_ID=s")
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
}

// TestWhatCameOfPrompts is read from the stand-in's log, from the tools' own
// notes and from the queues, whatever stands around a prompt there. That the
// judge sees what is wrong with it is tested with the judge.
func TestWhatCameOfPrompts(t *testing.T) {
	t.Parallel()
	const again = "\n\n[heartbeat: attempt 2 of this entry; an earlier one was interrupted. Check what is already done before acting.]"
	tests := map[string]struct {
		want promise.Wrong // "" is nothing
		make func(d *made)
	}{
		"all well": {"", func(d *made) {
			d.give(0, "Task from the queue:\n\n"+d.send(0, 1)+hello)
			d.give(0, "--- IDLE TICK ---\n", "Stop hook feedback:\n[heartbeat-stop hook stop]: "+d.send(0, 2)+" hello &lt;system-reminder>")
			d.give(1, "cron a01 2030-01-01T00:00+00:00")
			d.write("agents/a00/.heartbeat/outbox.jsonl", `{"delivery_id":"d","id":"id-ka00a-2","reply":"done: ka00a-2 hello &lt;system-reminder>"}`+"\n"+
				`{"delivery_id":"c","id":"id-ka00a-1","reply":"done: ka00a-1 hello &lt;system-reminder>"}`)
			d.write("agents/a01/.heartbeat/outbox.jsonl", `{"delivery_id":"e","reply":"done: cron a01 2030-01-01T00:00+00:00"}`)
		}},
		"given, and then gone": {promise.Lost, func(d *made) { d.give(0, d.send(0, 1)+hello) }},
		"cut":                  {promise.Garbled, func(d *made) { d.give(0, d.send(0, 1)+" hel") }},
		"sent by nobody":       {promise.Garbled, func(d *made) { d.give(0, "second half of a line") }},
		"another agent's":      {promise.Misled, func(d *made) { d.give(1, d.send(0, 1)+hello) }},
		"again":                {promise.Doubled, func(d *made) { d.give(0, d.send(0, 1)+hello, "ka00a-1"+hello+again) }},
		"unmarked":             {promise.Unmarked, func(d *made) { d.give(0, d.send(0, 1)+hello, "ka00a-1"+hello) }},
		"after a tool": {promise.Repeated, func(d *made) {
			d.give(1, d.send(1, 1)+hello)
			d.tool()
			d.record.over(faultKill.on("a01", classClient))
			d.give(1, "ka01a-1"+hello+again)
		}},
		"after a tool whose hook was killed": {"", func(d *made) {
			d.give(1, d.send(1, 1)+hello)
			d.record.over(faultKill.on("a01", classHook))
			d.tool()
			d.give(1, "ka01a-1"+hello+again)
			d.write("agents/a01/.heartbeat/outbox.jsonl", `{"delivery_id":"d","id":"id-ka01a-1","reply":"done: ka01a-1 hello &lt;system-reminder>"}`)
		}},
		"a torn line": {promise.Garbled, func(d *made) {
			d.write("agents/a00/.heartbeat/.dead-letter.jsonl", `{"entry_id":"e","delivery_id":"d","raw_line":"`+d.send(0, 1)+`","reason":"torn"}`)
		}},
		"another prompt's reply": {promise.WronglyAnswered, func(d *made) {
			d.give(0, d.send(0, 1)+hello)
			d.write("agents/a00/.heartbeat/outbox.jsonl", `{"delivery_id":"d","id":"id-ka00a-1","reply":"done: another"}`)
		}},
		"still queued":                  {promise.Waiting, func(d *made) { d.write("agents/a00/.heartbeat/inbox.jsonl", d.send(0, 1)+hello) }},
		"the scheduler ended by itself": {promise.Noticed, func(d *made) { d.surprise("it did") }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newMade(t)
			tt.make(d)
			r, err := d.judgeAll()
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" && len(r.Findings) > 0 || tt.want != "" && !r.Has(tt.want) {
				t.Errorf("found %v, want %q", r.Findings, tt.want)
			}
			if again, err := judge(r.Record); err != nil || !slices.EqualFunc(again.Findings, r.Findings, func(a, b promise.Finding) bool { return a.String() == b.String() }) {
				t.Errorf("judged again: %v, %v", again, err)
			}
		})
	}
}
