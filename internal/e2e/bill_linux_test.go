package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hookclient "heartbeat/hook/client"
	"heartbeat/internal/simulate/script"
	"heartbeat/orchestrator/usage"
)

// spent is what the records of agent "a" say, in all and by entry.
func (f *fleet) spent() (all usage.Sum, entries map[string]usage.Sum) {
	f.t.Helper()
	entries = map[string]usage.Sum{}
	states, err := filepath.Glob(filepath.Join(f.Dir, "state", "*", "usage"))
	if err != nil || len(states) != 1 {
		f.t.Fatalf("folders of records: %v, %v", states, err)
	}
	err = usage.Read(filepath.Dir(states[0]), "a", time.Time{}, func(r usage.Record) {
		all = all.Plus(r.Sum)
		entries[r.Delivery] = entries[r.Delivery].Plus(r.Sum)
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return all, entries
}

// billed is what the model behind the client has counted itself: calls and tokens.
// Of the stand-in it is what its clients have written into their transcripts, where
// one that was killed may have lost a line.
func (f *fleet) billed() (calls int64, tokens hookclient.Tokens) {
	f.t.Helper()
	if f.client.real {
		n, u := f.API.Spent()
		return int64(n), hookclient.Tokens{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)}
	}
	last := map[string]hookclient.Tokens{} // the last line of a message counts
	err := filepath.WalkDir(filepath.Join(f.Home, ".claude", "projects"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".jsonl" {
			return err
		}
		data, err := os.ReadFile(path)
		for line := range bytes.Lines(data) {
			var r struct {
				Type    string
				Message struct {
					ID, Model string
					Usage     struct {
						Input      int64 `json:"input_tokens"`
						Output     int64 `json:"output_tokens"`
						CacheRead  int64 `json:"cache_read_input_tokens"`
						CacheWrite int64 `json:"cache_creation_input_tokens"`
					}
				}
			}
			if json.Unmarshal(line, &r) == nil && r.Type == "assistant" && r.Message.Model != "<synthetic>" {
				last[r.Message.ID] = hookclient.Tokens(r.Message.Usage)
			}
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, u := range last {
		calls, tokens = calls+1, tokens.Plus(u)
	}
	return calls, tokens
}

// standInCost is what the stand-in says that tokens cost.
func standInCost(u hookclient.Tokens) float64 {
	return (float64(u.Input)*5 + float64(u.CacheWrite)*6.25 + float64(u.CacheRead)*0.5 + float64(u.Output)*25) / 1e6
}

// checkBill holds the records against what the model has counted.
func (f *fleet) checkBill() (all usage.Sum, entries map[string]usage.Sum) {
	f.t.Helper()
	calls, tokens := f.billed()
	all, entries = f.spent()
	if all.Calls != calls || all.Tokens != tokens {
		f.t.Errorf("recorded %d calls, %+v; the model has counted %d, %+v", all.Calls, all.Tokens, calls, tokens)
	}
	return all, entries
}

// manyTurns are entries with tools, subagents and a failure among plain ones.
func manyTurns() []turn {
	return []turn{
		{match: "with tools", steps: []script.Step{bash("echo a"), bash("echo b"), say("done")}},
		{match: "with a subagent", steps: []script.Step{subagent("sub answer", 50*time.Millisecond), say("started")}},
		{match: "fails once", times: 1, steps: []script.Step{fail("server_error")}},
	}
}

// TestBillsAreWhatTheModelHasCounted: of plain entries and of those with tools, of
// subagents, and of one whose request was refused first.
func TestBillsAreWhatTheModelHasCounted(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"background: wait"})
		f.turns(manyTurns()...)
		f.allowAgents()
		n := 12
		for i := range n {
			f.send(fmt.Sprintf("entry %d, %s", i, []string{"plain", "with tools", "with a subagent", "plain"}[i%4]))
		}
		f.send("this one fails once")
		f.must("", "run", "--once")
		all, entries := f.checkBill()
		if all.Unseen != 0 || all.Unpriced != 0 {
			t.Errorf("not all was seen: %+v", all)
		}
		if want := standInCost(all.Tokens); !c.real && math.Abs(all.Cost-want) > 1e-9 || all.Cost <= 0 {
			t.Errorf("it cost $%v; the client says $%v", all.Cost, want)
		}
		var without []string
		for _, d := range f.outbox() {
			if sum := entries[d.DeliveryID]; sum.Turns < 1 || sum.Cost <= 0 {
				without = append(without, fmt.Sprintf("%.30q: %+v", d.ID, sum))
			}
		}
		if len(f.outbox()) != n+1 || without != nil {
			t.Errorf("%d entries done; without a cost: %s", len(f.outbox()), strings.Join(without, "\n"))
		}
	})
}

// allowAgents lets the agent start subagents.
func (f *fleet) allowAgents() {
	f.t.Helper()
	text, err := os.ReadFile(f.file)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(f.file, strings.Replace(string(text), "allow: [Bash]", "allow: [Bash, Agent]", 1))
}

// TestBillsSurviveKills: whoever is killed, the client, its shim, the scheduler, or
// all of them, the records say what the transcripts do, and nothing twice.
func TestBillsSurviveKills(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"on-orphan: retry", "max-attempts: 50", "restart-window: 1s", "mode: persist"})
		f.turns(manyTurns()[:2]...)
		f.allowAgents()
		many := 4 // HEARTBEAT_ENTRIES is how many for each kill
		if n, err := strconv.Atoi(os.Getenv("HEARTBEAT_ENTRIES")); err == nil {
			many = n
		}
		victims := []string{"client", "shim", "scheduler", "shim and scheduler"}
		if testing.Short() {
			victims = victims[:1]
		}
		s := f.start()
		for i, victim := range victims {
			before := len(f.outbox())
			for j := range many {
				f.send(fmt.Sprintf("entry %d.%d, %s", i, j, []string{"with tools", "with a subagent"}[j/4%2]))
			}
			f.Until("some are done", func() bool { return len(f.outbox()) > before })
			r := f.session()
			for one := range strings.SplitSeq(victim, " and ") {
				pid := map[string]int{"client": r.Client.PID, "shim": r.Shim.PID, "scheduler": s.cmd.Process.Pid}[one]
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
					t.Fatal(err)
				}
			}
			if strings.Contains(victim, "scheduler") {
				<-s.done
				s = f.start()
			}
			for done := before; done < before+many; done = len(f.outbox()) {
				f.Until("more are done after "+victim, func() bool { return len(f.outbox()) > done || len(f.outbox()) == before+many })
			}
		}
		s.stop()
		f.checkKilledBill()
	})
}

// checkKilledBill is checkBill where clients were killed: the real one's API has
// counted what they had no time to write down.
func (f *fleet) checkKilledBill() {
	f.t.Helper()
	wasReal := f.client.real
	f.client.real = false
	defer func() { f.client.real = wasReal }()
	all, _ := f.checkBill()
	if f.client.real = wasReal; wasReal {
		if calls, _ := f.billed(); all.Calls > calls {
			f.t.Errorf("%d calls recorded, %d made: %s", all.Calls, calls, cmp.Diff(all.Calls, calls))
		}
	}
}

// TestWhoNeverStopsSpendingIsStopped: within one hand-over of a day's budget, and in
// the turn where an entry has one. That entry is a dead letter, and not given again.
func TestWhoNeverStopsSpendingIsStopped(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		t.Run("of a day", func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, c, []string{"budget: {day: {turns: 3}}", "timezone: " + awayFromMidnight()})
			f.turns()
			for i := range 10 {
				f.send(fmt.Sprint("entry ", i))
			}
			out, _, code := f.heartbeat("", "run", "--once")
			if n := len(f.outbox()); code != 75 || n < 3 || n > 4 {
				t.Errorf("exit %d, %d done\n%s", code, n, out)
			}
			if !strings.Contains(out, "its budget for the day is spent") {
				t.Errorf("run --once:\n%s", out)
			}
			before := f.requests()
			if _, _, code := f.heartbeat("", "run", "--once"); code != 75 || f.requests() != before {
				t.Errorf("after a restart: exit %d, %d requests more", code, f.requests()-before)
			}
		})
		t.Run("of an entry", func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, c, []string{"budget: {entry: {tokens: 400}}", "on-orphan: retry"})
			endless := make([]script.Step, 200)
			for i := range endless {
				endless[i] = bash("sleep 0.1; echo again")
			}
			f.turns(turn{match: "never ends", steps: append(endless, say("done"))})
			f.send("this one never ends")
			f.send("another one")
			if out, errs, code := f.heartbeat("", "run", "--once"); code != 1 {
				t.Fatalf("exit %d\n%s%s", code, out, errs)
			}
			dead := f.dead()
			if len(dead) != 1 || dead[0].Reason != "over-budget" || len(f.outbox()) != 1 {
				t.Fatalf("dead letters %+v, %d done", dead, len(f.outbox()))
			}
			_, entries := f.spent()
			cost := entries[dead[0].DeliveryID]
			if n := cost.Input + cost.Output + cost.CacheWrite; n <= 400 || n > 4000 || cost.Calls > 150 {
				t.Errorf("it has cost %+v", cost)
			}
		})
	})
}

// awayFromMidnight is a zone in which no day ends while a test runs.
func awayFromMidnight() string {
	if h := time.Now().UTC().Hour(); h >= 6 && h < 18 {
		return "UTC"
	}
	return "Pacific/Auckland"
}
