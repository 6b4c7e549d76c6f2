package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/session/sessiontest"
)

func TestMain(m *testing.M) { os.Exit(testbed.Run(m)) }

// small is a fleet whose fires are a second apart, so that a test has some: two of each
// agent.
func small(t *testing.T) (settings, scenario) {
	t.Helper()
	s := settings{agents: 12, slots: 6, minutes: 1, session: 5 * time.Millisecond, settle: 30 * time.Second, look: 200 * time.Millisecond, dir: t.TempDir(), programs: testbed.Programs(t)}
	sc := scenario{
		name: "small", late: lateP99, window: 1100 * time.Millisecond,
		cron: func(int, time.Time) string { return "@every 1s" },
	}
	return s, sc
}

// TestASmallFleet is the whole simulation for a moment: every fire comes once,
// and a session takes it.
func TestASmallFleet(t *testing.T) {
	t.Parallel()
	s, sc := small(t)
	s.ready = 1200 * time.Millisecond // of which the full second may take one
	r, err := s.run(t.Context(), sc)
	for errors.Is(err, errLate) && s.ready < testbed.Patience { // the machine may be slower
		s.ready, s.dir = 2*s.ready, t.TempDir()
		r, err = s.run(t.Context(), sc)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Owed != s.agents*2 || len(r.Findings) > 0 {
		t.Errorf("%d fires were due, %v", r.Owed, r.Findings)
	}
	if r.Most < 1 || r.Most > s.slots {
		t.Errorf("%d sessions at once, with max-sessions %d", r.Most, s.slots)
	}
	if r.Queued.N+r.Skipped != r.Owed || r.Taken.N != r.Queued.N || r.Queued.Max <= 0 {
		t.Errorf("queued %+v, taken %+v", r.Queued, r.Taken)
	}
	if runtime.GOOS == "linux" && (r.RSSPeak == 0 || r.CPU == 0 || r.Goroutines == 0 || r.Descriptors < s.agents) {
		t.Errorf("costs: %+v", r)
	}
}

// TestAMissedTargetIsSaid checks that the report fails for what it has to.
func TestAMissedTargetIsSaid(t *testing.T) {
	t.Parallel()
	good := Result{Scenario: "spread", Owed: 10, Jain: 1, Queued: Spread{P99: lateP99}, RSSPeak: peakMemory}
	for name, spoil := range map[string]func(*Result){
		"":                           func(*Result) {},
		"lateness p99":               func(r *Result) { r.Queued.P99++ },
		"memory, most":               func(r *Result) { r.RSSPeak += 1 << 10 },
		"fires that never came":      found(promise.Lost),
		"fires that came twice":      found(promise.Doubled),
		"fires that no session took": found(promise.Waiting),
		"other findings":             found(promise.Garbled),
		"sessions at once":           func(r *Result) { r.Most, r.Slots = 5, 4 },
		"idle processor time":        func(r *Result) { r.Owed, r.CPUPercent = 0, 1.01 },
	} {
		r := good
		spoil(&r)
		var table, js bytes.Buffer
		missed, err := settings{}.report(&table, []Result{r})
		if err != nil || missed != min(1, len(name)) || strings.Contains(table.String(), "MISSED") != (name != "") {
			t.Errorf("%q: %d missed, %v\n%s", name, missed, err, &table)
		}
		var got struct{ Targets []target }
		if _, err := (settings{asJSON: true}).report(&js, []Result{r}); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(js.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		for _, g := range got.Targets {
			if g.Missed != (g.Name == name) {
				t.Errorf("%q: %+v", name, g)
			}
		}
	}
}

func found(w promise.Wrong) func(r *Result) {
	return func(r *Result) { r.Findings = []promise.Finding{{Wrong: w}} }
}

// TestTheSimulationFindsWhatIsPlanted in what its sessions were given: what is in no queue
// is lost, what is still there waits. The record stays, to be judged again.
func TestTheSimulationFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		want promise.Wrong
		// given is what a session is given of a fire.
		given func(fire sessiontest.Entry) []sessiontest.Entry
		left  bool
	}{
		"a loss":           {promise.Lost, func(sessiontest.Entry) []sessiontest.Entry { return nil }, false},
		"silence":          {promise.Waiting, func(sessiontest.Entry) []sessiontest.Entry { return nil }, true},
		"a double":         {promise.Doubled, func(e sessiontest.Entry) []sessiontest.Entry { return []sessiontest.Entry{e, again(e, 2)} }, false},
		"an unmarked one":  {promise.Unmarked, func(e sessiontest.Entry) []sessiontest.Entry { return []sessiontest.Entry{e, again(e, 1)} }, false},
		"another's prompt": {promise.Garbled, func(e sessiontest.Entry) []sessiontest.Entry { e.Prompt += "?"; return []sessiontest.Entry{e} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testbed.Played(t, testbed.Plants, 1)
			s, sc := small(t)
			s.agents = 2
			first := time.Now().UTC().Truncate(time.Second)
			path, err := s.declare(sc, first)
			if err != nil {
				t.Fatal(err)
			}
			f, err := config.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			due := owed(f, first, first.Add(time.Second))
			if len(due) != 2 {
				t.Fatalf("%d fires are due, want 2", len(due))
			}
			c := newCrew(nil)
			right := sessiontest.Entry{At: due[0].At.Add(time.Second), Agent: due[0].Agent, Session: "s", Source: due[0].Prompt, Attempt: 1}
			right.Prompt = promptText + due[0].Prompt[strings.IndexByte(due[0].Prompt, '@')+1:]
			for _, e := range tt.given(right) {
				c.took(e)
			}
			if tt.left {
				if err := os.WriteFile(f.Agents[0].Inbox, []byte("it is "+due[0].Prompt+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := &Result{Scenario: sc.name}
			if err := s.judge(sc, r, c, due); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Remove(r.Record) })
			// Of the other one nothing has come at all.
			found := func(of []promise.Finding, w promise.Wrong, prompt string) bool {
				return slices.ContainsFunc(of, func(f promise.Finding) bool { return f.Wrong == w && f.Prompt == prompt })
			}
			if !found(r.Findings, tt.want, due[0].Prompt) || !found(r.Findings, promise.Lost, due[1].Prompt) {
				t.Errorf("found %v, want that the first is %q, and the second lost", r.Findings, tt.want)
			}
			kept, err := os.Open(r.Record)
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close()
			if record, err := promise.Read(kept); err != nil || len(record.Judge().Findings) != len(r.Findings) {
				t.Errorf("judged again: %v, %v", record, err)
			}
		})
	}
}

func again(e sessiontest.Entry, attempt int) sessiontest.Entry {
	e.At, e.Attempt = e.At.Add(time.Second), attempt
	return e
}

// TestScenariosDeclareAFleet checks that every scenario's file is valid, and
// that the idle one owes nothing while it is watched.
func TestScenariosDeclareAFleet(t *testing.T) {
	t.Parallel()
	first := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
	for _, name := range names() {
		s := settings{agents: 120, slots: 10, dir: t.TempDir()}
		path, err := s.declare(scenarios[name], first)
		if err != nil {
			t.Fatal(err)
		}
		f, err := config.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		n := len(owed(f, first, first.Add(5*time.Minute)))
		if len(f.Agents) != s.agents || (n == 0) != (name == "idle" || name == "year") || name == "burst" && n != s.agents {
			t.Errorf("%s: %d agents owe %d fires in five minutes", name, len(f.Agents), n)
		}
	}
}

// TestAYearIsThere: the store of the scenario is as its tables are now, and heartbeat answers.
func TestAYearIsThere(t *testing.T) {
	t.Parallel()
	s, _ := small(t)
	sc, r := scenarios["year"], Result{}
	s.agents = 2
	if err := s.liveYear(t.Context(), sc); err != nil {
		t.Fatal(err)
	}
	if _, err := s.declare(sc, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.askAll(sc, &r); err != nil || len(r.Asked) != len(asked) {
		t.Errorf("%v, %v", r.Asked, err)
	}
	out, err := s.ask(sc)("usage", "--since", "400d", "-o", "json")
	if err != nil || !strings.Contains(string(out), `"total":{"turns":20`) {
		t.Errorf("%.500s, %v", out, err)
	}
}
