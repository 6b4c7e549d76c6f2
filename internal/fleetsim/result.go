package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/orchestrator"
)

// Result is what one scenario measured.
type Result struct {
	Scenario string `json:"scenario"`
	What     string `json:"what"`
	Agents   int    `json:"agents"`
	Slots    int    `json:"max_sessions"`

	Load  time.Duration `json:"load_ns"`  // of the configuration
	Ready time.Duration `json:"ready_ns"` // from Run to ready

	// Owed fires were due, Missing of them were never queued, Untaken were
	// queued and no session had them in time. Skipped were due while the
	// agent's last one was not done.
	Owed    int `json:"owed"`
	Skipped int `json:"skipped"`
	Missing int `json:"missing"`
	Untaken int `json:"untaken"`
	Twice   int `json:"twice"`

	Queued Spread `json:"queued"` // due → entry durable in the inbox
	Taken  Spread `json:"taken"`  // due → a session has it
	Waited Spread `json:"waited"` // agents with work, for a slot
	// Most sessions lived at once. PerMode are the waits by mode.
	Most    int    `json:"most_sessions"`
	Drain   Spread `json:"waited_drain"`
	Persist Spread `json:"waited_persist"`
	Group   Spread `json:"waited_group"`
	// Jain is Jain's index of the sessions that agents got in relation to the
	// fires that they owed: 1 when all are treated alike.
	Jain float64 `json:"jain"`

	CPU         time.Duration `json:"cpu_ns"` // while watched
	CPUPercent  float64       `json:"cpu_percent"`
	RSSReady    int64         `json:"rss_ready"`
	RSSPeak     int64         `json:"rss_peak"`
	Goroutines  int           `json:"goroutines"`
	Descriptors int           `json:"descriptors"`
}

// Spread describes samples.
type Spread struct {
	N   int           `json:"n"`
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

func spreadOf(all []time.Duration) Spread {
	if len(all) == 0 {
		return Spread{}
	}
	slices.Sort(all)
	at := func(percent int) time.Duration { return all[min(len(all)-1, len(all)*percent/100)] }
	return Spread{N: len(all), P50: at(50), P99: at(99), Max: all[len(all)-1]}
}

// judge takes from the journal and from the sessions' own notes how late
// things were.
func (s settings) judge(sc scenario, r *Result, c *crew, due map[fire]time.Time) error {
	fired, skipped := map[fire]time.Time{}, map[fire]bool{}
	waits := map[string]time.Time{}
	var waited, drain, persist, group []time.Duration
	for e, err := range orchestrator.ReadJournal(s.stateDir(sc)) {
		switch {
		case err != nil:
			return err
		case e.Kind == "fired":
			f := fireOf(e)
			if _, again := fired[f]; again {
				r.Twice++
			}
			fired[f] = e.At
		case e.Kind == "skipped":
			skipped[fireOf(e)] = true
		case e.Kind == "state" && e.State == orchestrator.Waiting:
			waits[e.Agent] = e.At
		case e.Kind == "state" && e.State == orchestrator.Starting:
			var d time.Duration
			if since, ok := waits[e.Agent]; ok && e.From == orchestrator.Waiting {
				d = e.At.Sub(since)
			}
			waited = append(waited, d)
			switch i := agentNumber(e.Agent); {
			case i%10 == 9:
				group = append(group, d)
			case i%4 == 3:
				persist = append(persist, d)
			default:
				drain = append(drain, d)
			}
		}
	}
	r.Waited, r.Drain, r.Persist, r.Group = spreadOf(waited), spreadOf(drain), spreadOf(persist), spreadOf(group)
	r.lateness(c, due, fired, skipped)
	r.Jain = jain(c, due)
	r.Most = c.most
	return nil
}

func (r *Result) lateness(c *crew, due, fired map[fire]time.Time, skipped map[fire]bool) {
	var queued, taken []time.Duration
	for f, at := range due {
		r.Owed++
		got, ok := fired[f]
		switch {
		case ok:
			queued = append(queued, got.Sub(at))
		case skipped[f]:
			r.Skipped++
			continue
		default:
			r.Missing++
			continue
		}
		if got, ok := c.taken[f]; ok {
			taken = append(taken, got.Sub(at))
		} else {
			r.Untaken++
		}
	}
	r.Queued, r.Taken = spreadOf(queued), spreadOf(taken)
}

func fireOf(e orchestrator.Event) fire {
	_, label, _ := strings.Cut(e.Trigger, "@")
	return fire{e.Agent, label}
}

func agentNumber(name string) (i int) {
	_, _ = fmt.Sscanf(name, "a%d", &i)
	return i
}

// jain is (Σx)²/(n·Σx²) over the agents that owed fires.
func jain(c *crew, due map[fire]time.Time) float64 {
	owes := map[string]int{}
	for f := range due {
		owes[f.agent]++
	}
	taken := map[string]int{}
	for f := range c.taken {
		taken[f.agent]++
	}
	var sum, squares float64
	for agent, n := range owes {
		x := min(1, float64(taken[agent])/float64(n))
		sum, squares = sum+x, squares+x*x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / float64(len(owes)) / squares
}
