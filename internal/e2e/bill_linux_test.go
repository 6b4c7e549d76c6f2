package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hookclient "heartbeat/hook/client"
	"heartbeat/internal/fakeapi"
	"heartbeat/internal/simulate/script"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/usage"
)

// spent is what `usage` says of agent "a", in all and by entry.
func (f *fleet) spent() (all usage.Sum, entries map[string]usage.Sum) {
	f.t.Helper()
	return f.spentOf("a")
}

func (f *fleet) spentOf(agent string) (all usage.Sum, entries map[string]usage.Sum) {
	f.t.Helper()
	var envelope struct {
		Data struct {
			Rows []struct {
				Delivery string
				usage.Sum
			}
		}
	}
	out := f.must("", "usage", agent, "--by", "entry", "-o", "json", "--heartbeat-ms", "0")
	if err := json.Unmarshal([]byte(out), &envelope); err != nil {
		f.t.Fatalf("usage: %v: %s", err, out)
	}
	entries = map[string]usage.Sum{}
	for _, row := range envelope.Data.Rows {
		all = all.Plus(row.Sum)
		entries[row.Delivery] = entries[row.Delivery].Plus(row.Sum)
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
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"background: wait"})
		// A plain one takes longer than the shim of a busy machine, which would not see it.
		plain := turn{match: "plain", steps: []script.Step{think(300 * time.Millisecond), say("done")}}
		f.turns(append(manyTurns(), plain)...)
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
func (f *fleet) allowAgents() { f.t.Helper(); f.edit("allow: [Bash]", "allow: [Bash, Agent]") }

// edit changes the fleet's file as a person does.
func (f *fleet) edit(before, after string) {
	f.t.Helper()
	text, err := os.ReadFile(f.file)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(f.file, strings.Replace(string(text), before, after, 1))
}

// TestBillsSurviveKills: whoever is killed, the client, its shim, the scheduler, or
// all of them, the records say what the transcripts do, and nothing twice.
func TestBillsSurviveKills(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
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
				pid := map[string]int{"client": r.Client, "shim": r.Shim, "scheduler": s.cmd.Process.Pid}[one]
				if err := kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
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

// bills are those of a crew, each of whose agents works on an account of its own.
type bills struct {
	*fleet
	members []member
}

// newBills prepares agents whose entries use tools and subagents, fill a conversation
// until it is summed up, and are refused now and then.
func newBills(t *testing.T, c client, agents int, fields ...string) *bills {
	b := &bills{}
	for i := range agents {
		b.members = append(b.members, member{fmt.Sprintf("b%d", i), fmt.Sprintf("sk-ant-oat01-made-up-%d", i), append(fields, "background: wait", "max-restarts: 100")})
	}
	cost := func(n int) fakeapi.Usage {
		return fakeapi.Usage{Input: 3 + n, Output: 10 + n, CacheRead: 100 * n, CacheWrite: 7 * n}
	}
	full := fakeapi.Usage{Input: 50, Output: 9, CacheRead: 195_000}
	if c.real {
		full.CacheRead = 985_000
	}
	b.fleet = newCrew(t, c, b.members,
		fakeapi.Rule{Match: "detailed summary", Answer: fakeapi.Answer{Text: "<summary>all of it</summary>", Usage: fakeapi.Usage{Input: 40, Output: 222, CacheRead: 4444}}},
		fakeapi.Rule{Match: subagentTask, Answer: fakeapi.Answer{Text: "sub answer", Usage: cost(5)}},
		fakeapi.Rule{Match: "is refused", Times: 2, Answer: fakeapi.Answer{Status: 529, ErrorType: "overloaded_error", Message: "Overloaded"}},
		fakeapi.Rule{
			Match: "with tools", Answer: fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.Bash("echo a")}, Usage: cost(1)},
			Then: []fakeapi.Answer{{Tools: []fakeapi.ToolUse{fakeapi.Bash("echo b"), fakeapi.Bash("echo c")}, Usage: cost(2)}, {Text: "done", Usage: cost(3)}},
		},
		fakeapi.Rule{
			Match: "with a subagent", Answer: fakeapi.Answer{Tools: []fakeapi.ToolUse{apiAnswer(subagent("", 0)).Tools[0]}, Usage: cost(4)},
			Then: []fakeapi.Answer{{Text: "started", Usage: cost(6)}},
		},
		fakeapi.Rule{Match: "fills it", Answer: fakeapi.Answer{Text: "it is full", Usage: full}},
		fakeapi.Rule{Answer: fakeapi.Answer{Text: "ok", Usage: cost(7)}},
	)
	return b
}

// kinds are what an entry can be like.
var kinds = []string{"plain", "with tools", "plain", "with a subagent", "with tools", "fills it", "is refused", "plain", "plain", "with tools"}

func (b *bills) sends(from, to int) {
	b.t.Helper()
	for _, m := range b.members {
		var lines strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&lines, "entry %d, %s\n", i, kinds[i%len(kinds)])
		}
		if err := appendText(filepath.Join(b.Dir, "agents", m.name, ".heartbeat", "inbox.jsonl"), lines.String()); err != nil {
			b.t.Fatal(err)
		}
	}
}

// appendText is what a script's echo >> does.
func appendText(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// recorded is what `usage` says of an agent.
func (b *bills) recorded(agent string) usage.Sum {
	b.t.Helper()
	all, _ := b.spentOf(agent)
	return all
}

// counted is what the API has answered an account to the end.
func (b *bills) counted(token string) (calls int64, sum hookclient.Tokens) {
	for _, r := range b.API.Requests() {
		if u := r.Usage; r.Answered && r.Credential() == token {
			calls++
			sum = sum.Plus(hookclient.Tokens{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)})
		}
	}
	return calls, sum
}

// TestBillsOfAThousandEntries, with tools, subagents, conversations that are summed up
// and requests that the client repeats: the records are to the token, the call and the
// cent what the API has counted.
func TestBillsOfAThousandEntries(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		agents, each := 4, 10
		switch {
		case c.real:
			agents, each = 1, 10
		case *testbed.Full:
			each = 250
		}
		b := newBills(t, c, agents)
		b.sends(0, each)
		b.must("", "run", "--once")
		for _, m := range b.members {
			got := b.recorded(m.name)
			calls, tokens := b.counted(m.token)
			if got.Calls != calls || got.Tokens != tokens || got.Unseen+got.Unpriced+got.Guessed != 0 {
				t.Errorf("%s: recorded %+v; the API has counted %d calls, %+v", m.name, got, calls, tokens)
			}
			if want := standInCost(tokens); !c.real && math.Abs(got.Cost-want) > 1e-6 || got.Cost <= 0 {
				t.Errorf("%s: it cost $%v, and should $%v", m.name, got.Cost, want)
			}
			if n := len(b.doneBy(m.name)); n != each {
				t.Errorf("%s has done %d entries", m.name, n)
			}
			if got.Turns < int64(each) {
				t.Errorf("%s: %d turns for %d entries", m.name, got.Turns, each)
			}
		}
	})
}

// TestBillsOfAThousandEntriesAndKills: clients, shims and the scheduler are killed at
// random. What the API has answered is recorded, but for what a killed client had no
// time to write down, which is said to be unseen: nothing is counted twice.
func TestBillsOfAThousandEntriesAndKills(t *testing.T) {
	t.Parallel()
	agents, rounds, each := 4, 4, 4
	if *testbed.Full {
		rounds, each = 25, 10
	}
	b := newBills(t, client{name: "simulate"}, agents, "on-orphan: retry", "max-attempts: 50", "restart-window: 1s", "mode: persist")
	s := b.start()
	for round := range rounds {
		b.sends(round*each, (round+1)*each)
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond) // anywhere in the work
		victim := []string{"client", "shim", "client", "scheduler"}[round%4]
		if victim == "scheduler" {
			_ = s.cmd.Process.Kill()
			<-s.done
			s = b.start()
		} else {
			r := b.sessionOf(b.members[round%agents].name)
			pid := map[string]int{"client": r.Client, "shim": r.Shim}[victim]
			if pid > 0 {
				_ = kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
		for _, m := range b.members {
			b.UntilWithin(m.name+" has done the round's", 2*patience, func() bool { return len(b.doneBy(m.name)) == (round+1)*each })
		}
	}
	s.stop()
	var lost, unseen int64
	for _, m := range b.members {
		got := b.recorded(m.name)
		calls, tokens := b.counted(m.token)
		missing := tokens.Minus(got.Tokens)
		if min(missing.Input, missing.Output, missing.CacheRead, missing.CacheWrite) < 0 || got.Calls > calls {
			t.Errorf("%s: more is recorded than the API has counted: %+v; %d calls, %+v", m.name, got, calls, tokens)
		}
		lost, unseen = lost+calls-got.Calls, unseen+got.Unseen
		if got.Calls < calls && got.Unseen == 0 {
			t.Errorf("%s: %d calls are missing, and nothing says so: %+v", m.name, calls-got.Calls, got)
		}
	}
	t.Logf("%d entries, %d kills: of the API's answers %d were lost with killed clients, %d turns are said to be unseen", agents*rounds*each, rounds, lost, unseen)
	if lost > int64(2*agents*rounds) {
		t.Errorf("%d calls were lost in %d kills", lost, rounds)
	}
}

// TestTurnsThatAKilledClientHadNotWrittenDownAreUnseen: a client writes its transcript
// behind. Of entries that were done, and of a subagent's task, nothing said that their
// calls are not counted.
func TestTurnsThatAKilledClientHadNotWrittenDownAreUnseen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entries []string
		shimToo bool
	}{
		"one entry":                   {[]string{"plain"}, false},
		"several":                     {[]string{"plain", "with tools", "plain"}, false},
		"a subagent's too":            {[]string{"plain", "with a subagent"}, false},
		"the shim was killed as well": {[]string{"plain", "with tools", "plain"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBills(t, client{name: "simulate"}, 1, "mode: persist")
			b.writesNothing()
			m, n := b.members[0], len(tt.entries)
			queue := filepath.Join(b.Dir, "agents", m.name, ".heartbeat", "inbox.jsonl")
			if err := appendText(queue, strings.Join(tt.entries, "\n")+"\n"); err != nil {
				t.Fatal(err)
			}
			s := b.start()
			b.Until("all are done", func() bool { return len(b.doneBy(m.name)) == n })
			r := b.sessionOf(m.name)
			var kills []error
			if tt.shimToo {
				b.Until("its records are begun", func() bool { // no command says so of nothing
					notes, _ := filepath.Glob(filepath.Join(b.Dir, "state", "*", "live", "*.json"))
					return slices.ContainsFunc(notes, func(path string) bool {
						note, err := os.ReadFile(path)
						return err == nil && strings.Contains(string(note), `"transcript":`)
					})
				})
				// It must not see its client's end, and not go first: then the terminal would hang
				// up, on which a client ends in order, a stopped one too.
				kills = append(kills, kill(r.Shim, syscall.SIGSTOP))
			}
			kills = append(kills, kill(r.Client, syscall.SIGKILL))
			if tt.shimToo {
				kills = append(kills, kill(r.Shim, syscall.SIGKILL))
			}
			if err := errors.Join(kills...); err != nil {
				t.Fatal(err)
			}
			b.Until("its end is noticed", func() bool { return strings.Contains(b.must("", "events", m.name), "crashed") })
			s.stop()
			got := b.recorded(m.name)
			if calls, _ := b.counted(m.token); got.Unseen < int64(n) || got.Turns+got.Unseen > calls {
				t.Errorf("%+v of %d entries; the API has counted %d calls", got, n, calls)
			}
		})
	}
}

// writesNothing has clients write their transcripts when they end in order.
func (b *bills) writesNothing() {
	b.t.Helper()
	slow := filepath.Join(b.Dir, "slow.json")
	b.write(slow, `{"transcript-delay": "1h"}`)
	b.edit("simulate, --api", "simulate, --api, --script, "+strconv.Quote(slow))
}

// TestWhoNeverStopsSpendingIsStopped: within one hand-over of a day's budget, and in
// the turn where an entry has one. That entry is a dead letter, and not given again.
func TestWhoNeverStopsSpendingIsStopped(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
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
			if events := f.must("", "events", "a"); !strings.Contains(events, "over-budget: its budget for the day is spent: ") {
				t.Errorf("events:\n%s", events)
			}
			f.edit("turns: 3", "turns: 300") // what explain says to do
			f.must("", "run", "--once")
			if n := len(f.outbox()); n != 10 {
				t.Errorf("with a larger budget %d are done", n)
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
			if events := f.must("", "events", "a"); !strings.Contains(events, "ended, 0 done: over-budget (the entry has cost ") || !strings.Contains(events, " of 400 tokens)") {
				t.Errorf("events:\n%s", events)
			}
			if letters := f.must("", "dead-letter", "a"); !strings.Contains(letters, "over-budget") {
				t.Errorf("dead letters:\n%s", letters)
			}
			if n := cost.Input + cost.Output + cost.CacheWrite; n <= 400 || n > 4000 || cost.Calls > 150 {
				t.Errorf("it has cost %+v", cost)
			}
		})
	})
}

// TestAnAgentThatRemovesItsTranscriptIsStopped by its budget of turns all the same, and
// `usage` says that something was not seen.
func TestAnAgentThatRemovesItsTranscriptIsStopped(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newCrew(t, c, []member{{"a", "sk-ant-oat01-made-up", []string{"budget: {day: {turns: 3}}", "timezone: " + awayFromMidnight()}}},
			fakeapi.Rule{
				Match: "entry", Answer: fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.Bash("for i in 1 2 3 4 5 6 7 8 9; do rm -f $HOME/.claude/projects/*/*.jsonl; sleep 0.2; done &")}},
				Then: []fakeapi.Answer{{Text: "nobody knows", Delay: time.Second}},
			})
		for i := range 9 {
			f.send(fmt.Sprint("entry ", i))
		}
		out, _, code := f.heartbeat("", "run", "--once")
		if n := len(f.doneBy("a")); code != 75 || n < 1 || n > 4 || !strings.Contains(out, "its budget for the day is spent") {
			t.Errorf("exit %d, %d done\n%s", code, n, out)
		}
		if out := f.must("", "usage"); !strings.Contains(out, "without figures") {
			t.Errorf("usage:\n%s", out)
		}
	})
}

// awayFromMidnight is a zone in which no day ends while a test runs.
func awayFromMidnight() string {
	if h := time.Now().UTC().Hour(); h >= 6 && h < 18 {
		return "UTC"
	}
	return "Pacific/Auckland"
}
