package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/status"
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

// history is what the journal tells of a run.
type history struct {
	fired   map[fire]time.Time
	skipped map[fire]bool
	twice   int
	waited  []wait
}

// wait is how long an agent with work waited for a slot.
type wait struct {
	agent int
	long  time.Duration
}

func readHistory(stateDir string) (*history, error) {
	h := &history{fired: map[fire]time.Time{}, skipped: map[fire]bool{}}
	since := map[string]time.Time{}
	for e, err := range journal.Read(stateDir) {
		switch {
		case err != nil:
			return nil, err
		case e.Kind == journal.Fired:
			if _, again := h.fired[fireOf(e)]; again {
				h.twice++
			}
			h.fired[fireOf(e)] = e.At
		case e.Kind == journal.Skipped:
			h.skipped[fireOf(e)] = true
		case e.Kind == journal.StateChanged && e.State == string(status.Waiting):
			since[e.Agent] = e.At
		case e.Kind == journal.StateChanged && e.State == string(status.Starting):
			w := wait{agent: agentNumber(e.Agent)}
			if e.From == string(status.Waiting) {
				w.long = e.At.Sub(since[e.Agent])
			}
			h.waited = append(h.waited, w)
		}
	}
	return h, nil
}

// done reports whether every fire was taken by a session, or skipped.
func (h *history) done(c *crew, due map[fire]time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range due {
		if _, taken := c.taken[f]; !taken && !h.skipped[f] {
			return false
		}
	}
	return true
}

// judge takes from the journal and from the sessions' own notes how late
// things were.
func (s settings) judge(sc scenario, r *Result, c *crew, due map[fire]time.Time) error {
	h, err := readHistory(s.stateDir(sc))
	if err != nil {
		return err
	}
	var all, drain, persist, group []time.Duration
	for _, w := range h.waited {
		all = append(all, w.long)
		switch {
		case w.agent%10 == 9:
			group = append(group, w.long)
		case w.agent%4 == 3:
			persist = append(persist, w.long)
		default:
			drain = append(drain, w.long)
		}
	}
	r.Waited, r.Drain, r.Persist, r.Group = spreadOf(all), spreadOf(drain), spreadOf(persist), spreadOf(group)
	r.lateness(h, c, due)
	r.Jain = jain(h, c, due)
	r.Most, r.Twice = c.most, h.twice
	return nil
}

func (r *Result) lateness(h *history, c *crew, due map[fire]time.Time) {
	var queued, taken []time.Duration
	for f, at := range due {
		r.Owed++
		got, ok := h.fired[f]
		switch {
		case ok:
			queued = append(queued, got.Sub(at))
		case h.skipped[f]:
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

func fireOf(e journal.Event) fire {
	_, label, _ := strings.Cut(e.Trigger, "@")
	return fire{e.Agent, label}
}

func agentNumber(name string) (i int) {
	_, _ = fmt.Sscanf(name, "a%d", &i)
	return i
}

// jain is (Σx)²/(n·Σx²), x being the part of its fires that an agent got a
// session for, of the agents that owed some.
func jain(h *history, c *crew, due map[fire]time.Time) float64 {
	owes, got := map[string]int{}, map[string]int{}
	for f := range due {
		if h.skipped[f] {
			continue
		}
		owes[f.agent]++
		if _, ok := c.taken[f]; ok {
			got[f.agent]++
		}
	}
	var sum, squares float64
	for agent, n := range owes {
		x := float64(got[agent]) / float64(n)
		sum, squares = sum+x, squares+x*x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / float64(len(owes)) / squares
}
