package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"heartbeat/internal/promise"
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

	ReadyCPU time.Duration `json:"ready_cpu_ns"`

	// Owed fires were due, Skipped of them while the agent's last one was not
	// done. Record is the file of what the findings were found in.
	Owed     int               `json:"owed"`
	Skipped  int               `json:"skipped"`
	Findings []promise.Finding `json:"findings"`
	Record   string            `json:"record,omitempty"`

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

	Asked []answer `json:"asked,omitempty"` // commands, while it ran

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

func (r *Result) found(w promise.Wrong) (n float64) {
	for _, f := range r.Findings {
		if f.Wrong == w {
			n++
		}
	}
	return n
}

// history is what the journal tells of a run.
type history struct {
	fired   map[string]time.Time // :: name of the fire
	skipped map[string]time.Time
	twice   promise.Record
	waited  []wait
}

// wait is how long an agent with work waited for a slot.
type wait struct {
	agent int
	long  time.Duration
}

// readHistory asks heartbeat for the events of a scenario.
func (s settings) readHistory(sc scenario) (*history, error) {
	out, err := s.ask(sc)("events", "-n", "1000000000", "-o", "json", "--heartbeat-ms", "0")
	if err != nil {
		return nil, err
	}
	events, err := promise.Lines[journal.Event](bytes.NewReader(out)) // the last one is the envelope, of no kind
	if err != nil {
		return nil, err
	}
	h := &history{fired: map[string]time.Time{}, skipped: map[string]time.Time{}}
	since := map[string]time.Time{}
	for _, e := range events {
		switch {
		case e.Kind == journal.Fired:
			if _, again := h.fired[e.Trigger]; again {
				h.twice = append(h.twice, promise.Fact{At: e.At, Kind: promise.Seen, Prompt: e.Trigger, Note: "the journal tells twice of " + e.Trigger})
			}
			h.fired[e.Trigger] = e.At
		case e.Kind == journal.Skipped:
			h.skipped[e.Trigger] = e.At
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

// done reports whether every fire was taken by a session, or skipped. It is
// asked while the fleet's memory is measured, which the judge's would add to.
func (h *history) done(c *crew, due promise.Record) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(due, func(f promise.Fact) bool { return !c.taken[f.Prompt] && h.skipped[f.Prompt].IsZero() })
}

// judge has the promise judged for the fires that were due, and takes from the
// journal and from the sessions' own notes how late things were.
func (s settings) judge(sc scenario, r *Result, c *crew, due promise.Record) error {
	h, err := s.readHistory(sc)
	if err != nil {
		return err
	}
	queued, err := s.inQueues(sc)
	if err != nil {
		return err
	}
	record, watched := slices.Clone(due), map[string]bool{}
	for _, f := range due {
		watched[f.Prompt] = true
		if at, skipped := h.skipped[f.Prompt]; skipped {
			record = append(record, promise.Fact{At: at, Kind: promise.Refused, Prompt: f.Prompt})
		}
		if h.fired[f.Prompt].IsZero() && c.taken[f.Prompt] {
			record = append(record, promise.Fact{At: f.At, Kind: promise.Seen, Note: "the journal does not tell of " + f.Prompt})
		}
	}
	for _, f := range slices.Concat(c.given, h.twice, queued) {
		// The run does not wait for the last sessions to be done.
		if watched[f.Prompt] && (f.Kind != promise.Left || !c.taken[f.Prompt]) {
			record = append(record, f)
		}
	}
	v := record.Judge()
	r.Owed, r.Skipped, r.Findings, r.Most = len(due), v.Refused, v.Findings, c.Most()
	r.waits(h)
	r.lateness(h, c, due)
	return r.keep(record)
}

// keep writes the record of a run that anything is wrong with.
func (r *Result) keep(record promise.Record) error {
	if len(r.Findings) == 0 {
		return nil
	}
	f, err := os.CreateTemp("", "fleetsim-"+r.Scenario+"-*.jsonl")
	if err != nil {
		return err
	}
	r.Record = f.Name()
	for _, fact := range record {
		err = errors.Join(err, fact.Write(f))
	}
	return errors.Join(err, f.Close())
}

func (r *Result) waits(h *history) {
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
}

func (r *Result) lateness(h *history, c *crew, due promise.Record) {
	owes, got, takenAt := map[string]int{}, map[string]int{}, map[string]time.Time{}
	for _, f := range c.given {
		takenAt[f.Prompt] = f.At
	}
	var queued, taken []time.Duration
	for _, f := range due {
		if _, skipped := h.skipped[f.Prompt]; skipped {
			continue
		}
		owes[f.Agent]++
		if at := h.fired[f.Prompt]; !at.IsZero() {
			queued = append(queued, at.Sub(f.At))
		}
		if at := takenAt[f.Prompt]; !at.IsZero() {
			taken = append(taken, at.Sub(f.At))
			got[f.Agent]++
		}
	}
	r.Queued, r.Taken, r.Jain = spreadOf(queued), spreadOf(taken), jain(owes, got)
}

func agentNumber(name string) (i int) {
	_, _ = fmt.Sscanf(name, "a%d", &i)
	return i
}

// jain is (Σx)²/(n·Σx²), x being the part of its fires that an agent got a
// session for, of the agents that owed some.
func jain(owes, got map[string]int) float64 {
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
