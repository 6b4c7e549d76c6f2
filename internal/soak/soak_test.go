package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/internal/simulate"
)

// TestMain is the soak, too: it starts itself again in a namespace.
func TestMain(m *testing.M) {
	if os.Getenv("HEARTBEAT_SOAK_TEST") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestASliceOfTheSoak is a short one with a new seed each time.
func TestASliceOfTheSoak(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "--agents", "6", "--for", "6s", "--rate", "3", "--every", "300ms", "-o", "json", "--dir", t.TempDir())
	cmd.Env = append(os.Environ(), "HEARTBEAT_SOAK_TEST=1")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	t.Logf("%s", errOut.String())
	var r report
	if jsonErr := json.Unmarshal(out.Bytes(), &r); jsonErr != nil {
		t.Fatalf("%v, %v: %s", err, jsonErr, out.String())
	}
	for _, b := range r.Broken {
		t.Errorf("broken: %s", b)
	}
	if err != nil || r.Given < 5 || len(r.Faults) < 3 {
		t.Errorf("%v: %+v", err, r)
	}
}

// history is a made-up run of two agents.
type history struct {
	t      *testing.T
	f      *fleet
	sent   *ledger[sending]
	faults *ledger[fault]
	n      int
}

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newHistory(t *testing.T) *history {
	h := &history{t: t, f: &fleet{Dir: t.TempDir(), Members: members(2)}}
	var err error
	if h.sent, err = openLedger[sending](h.f.Dir, "sent.jsonl"); err != nil {
		t.Fatal(err)
	}
	if h.faults, err = openLedger[fault](h.f.Dir, "faults.jsonl"); err != nil {
		t.Fatal(err)
	}
	for _, m := range h.f.Members {
		if err := os.MkdirAll(filepath.Dir(h.f.inboxOf(m)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// send sends a prompt to an agent at a second.
func (h *history) send(agent int, at int, last step) (key string) {
	h.n++
	m := h.f.Members[agent]
	x := sending{At: start.Add(time.Duration(at) * time.Second), Step: intended, Agent: m.Name, Sender: "a", N: h.n, Key: keyOf(m, "a", h.n), How: bySend}
	x.Prompt = x.Key + " hello <system-reminder>"
	h.sent.add(x)
	x.Step, x.Prompt = last, ""
	h.sent.add(x)
	return x.Key
}

// give has an agent's model get a text at a second.
func (h *history) give(agent, at int, text string) {
	line, err := json.Marshal(simulate.Request{
		At: start.Add(time.Duration(at) * time.Second), SessionID: "s", Prompts: []string{text}, Dir: h.f.dirOf(h.f.Members[agent]),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.write("model.jsonl", string(line))
}

func (h *history) write(name, line string) {
	f, err := os.OpenFile(h.f.path(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		_ = f.Close()
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

const (
	hello  = " hello <system-reminder>"
	again  = "\n\n[heartbeat: attempt 2 of this entry; an earlier one was interrupted. Check what is already done before acting.]"
	toStop = "Stop hook feedback:\n[heartbeat-stop hook stop]: "
)

// kill is a fault at a second.
func (h *history) kill(agent string, at int, c class) {
	h.faults.add(fault{From: start.Add(time.Duration(at) * time.Second), To: start.Add(time.Duration(at) * time.Second), Kind: faultKill, Agent: agent, Class: c})
}

// tool is a tool's own note at a second.
func (h *history) tool(at string) { h.write("tools.log", "s "+at) }

// TestTheJudge: what must not be is seen, and what may be is not.
func TestTheJudge(t *testing.T) {
	t.Parallel()
	const retry, deadletter = 0, 1
	tool15 := "1893456015.5" // 15.5 s after start
	tests := []struct {
		name string
		want string // "" is nothing
		make func(h *history)
	}{
		{"all well", "", func(h *history) {
			h.give(retry, 10, "Task from the queue:\n\n"+h.send(retry, 1, accepted)+hello)
			h.give(retry, 11, toStop+h.send(retry, 2, accepted)+" hello &lt;system-reminder>")
			h.send(retry, 3, refused)
			h.send(retry, 3, unknown)
			h.give(retry, 12, "--- IDLE TICK ---")
		}},
		{"lost", "lost: ka00a-1", func(h *history) { h.send(retry, 1, accepted) }},
		{"refused and given", "refused and given", func(h *history) { h.give(retry, 5, h.send(retry, 1, refused)+hello) }},
		{"cut", "garbled: ka00a-1", func(h *history) { h.give(retry, 5, h.send(retry, 1, accepted)+" hel") }},
		{"sent by nobody", "garbled: nobody sent", func(h *history) { h.give(retry, 5, "second half of a line") }},
		{"another agent's", "misled", func(h *history) { h.give(deadletter, 5, h.send(retry, 1, accepted)+hello) }},
		{"doubled", "doubled", func(h *history) {
			key := h.send(retry, 1, accepted)
			h.give(retry, 10, key+hello)
			h.kill("a01", 12, classClient)
			h.give(retry, 20, key+hello+again)
		}},
		{"given again after a kill", "", func(h *history) {
			key := h.send(retry, 1, accepted)
			h.give(retry, 10, key+hello)
			h.kill("a00", 12, classClient)
			h.give(retry, 20, key+hello+again)
		}},
		{"given twice after one kill", "doubled", func(h *history) {
			key := h.send(retry, 1, accepted)
			h.give(retry, 10, key+hello)
			h.kill("", 12, classScheduler)
			h.give(retry, 20, key+hello+again)
			h.give(retry, 30, key+hello+again)
		}},
		{"unmarked", "unmarked", func(h *history) {
			key := h.send(retry, 1, accepted)
			h.give(retry, 10, key+hello)
			h.kill("a00", 12, classClient)
			h.give(retry, 20, key+hello)
		}},
		{"again after a tool", "repeated", func(h *history) {
			key := h.send(deadletter, 1, accepted)
			h.give(deadletter, 10, key+hello)
			h.tool(tool15)
			h.kill("a01", 17, classClient)
			h.give(deadletter, 20, key+hello+again)
		}},
		{"again after a tool whose hook was killed", "", func(h *history) {
			key := h.send(deadletter, 1, accepted)
			h.give(deadletter, 10, key+hello)
			h.kill("a01", 14, classHook)
			h.tool(tool15)
			h.kill("a01", 17, classClient)
			h.give(deadletter, 20, key+hello+again)
		}},
		{"out of order", "out of order", func(h *history) {
			first, second := h.send(retry, 1, accepted), h.send(retry, 2, accepted)
			h.give(retry, 10, second+hello)
			h.give(retry, 11, first+hello)
		}},
		{"an accepted line is torn", "garbled: the accepted ka00a-1", func(h *history) {
			h.file(retry, h.send(retry, 1, accepted), inbox.Torn)
		}},
		{"a dead letter with a reason", "", func(h *history) { h.file(retry, h.send(retry, 1, accepted), inbox.Poison) }},
		{"a dead letter against the policy", "dead letter as interrupted under retry", func(h *history) {
			h.file(retry, h.send(retry, 1, accepted), inbox.Interrupted)
		}},
		{"another prompt's reply", "the reply to ka00a-1", func(h *history) {
			key := h.send(retry, 1, accepted)
			h.give(retry, 10, key+hello)
			h.write("agents/a00/.heartbeat/outbox.jsonl", `{"delivery_id":"d","entry_id":"e","id":"id-`+key+`","reply":"done: another"}`)
		}},
		{"a surprise", "it ended by itself", func(h *history) {
			h.write("surprises.jsonl", `{"at":"2030-01-01T00:00:00Z","what":"it ended by itself"}`)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			tt.make(h)
			r, err := h.f.judge()
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(r.Broken, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("broken: %q, want %q", got, tt.want)
			}
		})
	}
}

// file makes a dead letter of a prompt.
func (h *history) file(agent int, key string, why inbox.Reason) {
	line, err := json.Marshal(inbox.DeadEntry{EntryID: "e", DeliveryID: "d", RawLine: key + hello, Reason: why, Attempts: 1})
	if err != nil {
		h.t.Fatal(err)
	}
	h.write("agents/"+h.f.Members[agent].Name+"/.heartbeat/.dead-letter.jsonl", string(line))
}
