package series

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

const (
	// sampleEvery is how often the depth of the queues is measured.
	sampleEvery = time.Minute
	// settled is how long after its end a slot is written: by then sessions have recorded
	// what they spent in it.
	settled = 2 * time.Minute
	// mostSlots limits how many slots are kept in memory while the disk takes none.
	mostSlots = 144
)

// untilName is the file with the number of the last slot that is written for all agents.
const untilName = ".until"

// Depth is how many entries an agent's queue holds.
type Depth struct {
	Agent  string
	Queued int
}

// Recorder writes the series of a run. A state directory has one at a time.
type Recorder struct {
	stateDir string
	log      *slog.Logger
	began    time.Time

	// done is the last slot that is written for all agents, last the last one of each, and of
	// measuredName: a run that was killed while it wrote has written some. Only Run uses them.
	done int64
	last map[string]int64
	// setBack is true once the clock was set back during this run: then the last slot in
	// a file does not say which slots are still to be written.
	setBack bool
	// marked is the last slot that was recorded as watched.
	marked int64

	mu    sync.Mutex
	tally tally
	// next is the first slot that is not written, the one after done: Look reads it.
	next int64
	// sampled are the unwritten slots in which the depths were measured.
	sampled map[int64]bool
	ready   bool            // the slots before this run are compiled
	early   []journal.Event // events that came before ready
	failed  bool            // the last write did
}

// NewRecorder returns a Recorder for a run that begins now.
func NewRecorder(stateDir string, log *slog.Logger) *Recorder {
	return &Recorder{stateDir: stateDir, log: log, began: time.Now(), last: map[string]int64{}, tally: newTally(), sampled: map[int64]bool{}}
}

// Note counts an event of this run. It does not block.
func (r *Recorder) Note(e journal.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ready {
		r.early = append(r.early, e)
		return
	}
	r.tally.take(e)
}

// Run first writes the slots that earlier runs could not write, then each slot when it is
// over, until ctx ends. The next run writes the slots that are not over by then.
func (r *Recorder) Run(ctx context.Context, depths func() []Depth) {
	if r.compile(ctx); ctx.Err() != nil {
		return // the journal may be half read
	}
	r.takeOver()
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		r.mark(time.Now())
		r.write(time.Now())
		select {
		case <-ctx.Done():
			r.leave()
			return
		case <-ticker.C:
		}
		r.sample(depths(), time.Now())
	}
}

// compile counts what the journal says about the slots that are not written yet.
func (r *Recorder) compile(ctx context.Context) {
	r.done = until(r.stateDir)
	r.heedClock(r.began)
	t := newTally()
	for e, err := range journal.Read(r.stateDir) {
		if err != nil || ctx.Err() != nil {
			break
		}
		if e.At.Before(r.began) {
			t.take(e)
		}
	}
	sampled := map[int64]bool{}
	left(r.stateDir, &t, sampled)
	others := func(slot int64) bool { return slot <= r.done || slot > slotOf(r.began) } // written, or from a clock that was ahead
	t.drop(others)
	maps.DeleteFunc(sampled, func(slot int64, _ bool) bool { return others(slot) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally, r.sampled, r.ready, r.next = t, sampled, true, r.done+1
	for _, e := range r.early {
		r.tally.take(e)
	}
	r.early = nil
}

// heedClock makes the slots from the present one on be written again after the clock was
// set back: what was written for them before was about another time.
func (r *Recorder) heedClock(now time.Time) {
	if r.done < slotOf(now) {
		return
	}
	r.done, r.setBack = slotOf(now)-1, true
	clear(r.last)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = r.done + 1
}

// written returns the last slot that is written for an agent, or 0.
func (r *Recorder) written(folder *durable.Folder, agent string) int64 {
	last, known := r.last[agent]
	if !known && !r.setBack {
		last = lastSlot(folder, agent)
	}
	return last
}

// until returns the last slot that is written for all agents, or 0.
func until(stateDir string) int64 {
	folder, err := durable.OpenBelow(stateDir, folderOf(stateDir))
	if err != nil {
		return 0
	}
	defer folder.Close()
	data, err := folder.Read(untilName, 64)
	if err != nil {
		return 0
	}
	slot, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0
	}
	return max(0, slot)
}

// write writes the slots that are over. After an error they are tried again.
func (r *Recorder) write(now time.Time) {
	to := slotOf(now.Add(-settled)) - 1
	r.heedClock(now)
	from := r.done + 1
	if from > to {
		return
	}
	err := r.writeSlots(from, to)
	switch {
	case err == nil:
		r.done, r.failed = to, false
	case !r.failed:
		r.failed = true
		r.log.Warn("cannot keep the series of what agents do", "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = r.done + 1
	over := func(slot int64) bool { return err == nil && slot <= to || slot < to-mostSlots }
	r.tally.drop(over)
	maps.DeleteFunc(r.sampled, func(slot int64, _ bool) bool { return over(slot) })
}

func (r *Recorder) writeSlots(from, to int64) error {
	r.mu.Lock()
	all := r.tally.points(from, to) // :: agent → slot → point
	measured := r.measured(from, to)
	r.mu.Unlock()
	if err := spent(r.stateDir, nil, from, to, all); err != nil {
		return err
	}
	folder, err := durable.MakeBelow(r.stateDir, folderOf(r.stateDir))
	if err != nil {
		return fmt.Errorf("cannot make the folder of the series: %w", err)
	}
	defer folder.Close()
	var failed error
	for agent, slots := range all {
		var points []Point
		for _, p := range slots {
			if !p.empty() {
				points = append(points, p)
			}
		}
		failed = errors.Join(failed, r.add(folder, agent, points))
	}
	failed = errors.Join(failed, r.add(folder, measuredName, measured))
	if failed != nil {
		return failed
	}
	return folder.Put(untilName, fmt.Appendln(nil, to))
}

// add writes those of an agent's points that are not written yet: after an error of another
// agent all are tried again.
func (r *Recorder) add(folder *durable.Folder, agent string, points []Point) error {
	written := r.written(folder, agent)
	points = slices.DeleteFunc(points, func(p Point) bool { return slotOf(p.At) <= written })
	if len(points) == 0 {
		return nil
	}
	slices.SortFunc(points, func(a, b Point) int { return a.At.Compare(b.At) })
	err := add(folder, agent, points)
	if err == nil {
		r.last[agent] = slotOf(points[len(points)-1].At)
	}
	return err
}

// spent adds what the usage records of agents, nil: of all, say about some slots.
func spent(stateDir string, agents []string, from, to int64, all map[string]map[int64]Point) error {
	return usage.Read(stateDir, func(v *store.View) error {
		return usage.EachOf(v, startOf(from), func(rec usage.Record) {
			slot := slotOf(rec.At)
			if slot > to || agents != nil && !slices.Contains(agents, rec.Agent) {
				return
			}
			if all[rec.Agent] == nil {
				all[rec.Agent] = map[int64]Point{}
			}
			p := all[rec.Agent][slot]
			p.At, p.Sum = startOf(slot), p.Plus(rec.Sum)
			all[rec.Agent][slot] = p
		})
	})
}

// tally counts events by agent and slot. It is pure.
type tally struct {
	all map[string]map[int64]*Point
	// counted is how many entries an agent's live session has done that its Stops have
	// named, and proven when which deliveries have passed that none has named.
	counted map[string]int
	proven  map[string]map[string]time.Time
	// named are the last ones that Stops have named: the verdict may be noted after that.
	named map[string][]string
}

func newTally() tally {
	return tally{map[string]map[int64]*Point{}, map[string]int{}, map[string]map[string]time.Time{}, map[string][]string{}}
}

// at returns an agent's point for a time.
func (t *tally) at(agent string, at time.Time) *Point {
	slots, slot := t.all[agent], slotOf(at)
	if slots == nil {
		slots = map[int64]*Point{}
		t.all[agent] = slots
	}
	if slots[slot] == nil {
		slots[slot] = &Point{At: startOf(slot)}
	}
	return slots[slot]
}

func (t *tally) take(e journal.Event) {
	if e.Agent == "" {
		return
	}
	switch e.Kind {
	case journal.Fired:
		p := t.at(e.Agent, e.At)
		if p.Fires++; !e.Due.IsZero() {
			p.Late = max(p.Late, e.At.Sub(e.Due))
		}
	case journal.Stopped:
		if e.Done != "" {
			t.stopped(e)
		}
	case journal.Ended:
		p := t.at(e.Agent, e.At)
		p.Sessions++
		p.Done += int64(max(0, e.Acknowledged-t.counted[e.Agent]-t.passed(e)))
		t.counted[e.Agent] = 0
	case journal.Checked:
		switch e.Verdict {
		case journal.Passed:
			t.passes(e)
		case string(inbox.MaxIterations), string(inbox.MaxTime), string(inbox.NoProgress), string(inbox.TooFast): // given up
			t.at(e.Agent, e.At).Failed++
		}
	case journal.Forged:
		if e.Verdict == string(inbox.Forged) {
			t.at(e.Agent, e.At).Failed++
		}
	case journal.Recovered:
		if e.Reason.Raw() == string(inbox.DeadLettered) {
			t.at(e.Agent, e.At).Failed++
		}
	}
}

// mostNamed is how many of the deliveries are known that Stops have named.
const mostNamed = 16

// passes counts an entry when its check has passed, whether a session lives or not.
func (t *tally) passes(e journal.Event) {
	all := t.proven[e.Agent]
	if _, known := all[e.Entry]; known || slices.Contains(t.named[e.Agent], e.Entry) {
		return
	}
	if all == nil {
		all = map[string]time.Time{}
		t.proven[e.Agent] = all
	}
	all[e.Entry] = e.At
	t.at(e.Agent, e.At).Done++
}

// stopped counts what a Stop calls done, unless it is counted because its check has passed.
func (t *tally) stopped(e journal.Event) {
	t.counted[e.Agent]++
	named := append(t.named[e.Agent], e.Done)
	t.named[e.Agent] = named[max(0, len(named)-mostNamed):]
	if _, known := t.proven[e.Agent][e.Done]; known {
		delete(t.proven[e.Agent], e.Done)
		return
	}
	t.at(e.Agent, e.At).Done++
}

// passed is how many checks have passed in the session that has ended and were named by
// none of its Stops. It forgets those of before.
func (t *tally) passed(e journal.Event) (n int) {
	for _, at := range t.proven[e.Agent] {
		if !at.Before(e.Started) {
			n++
		}
	}
	delete(t.proven, e.Agent)
	return n
}

// points copies the points of some slots.
func (t *tally) points(from, to int64) map[string]map[int64]Point {
	all := map[string]map[int64]Point{}
	for agent, slots := range t.all {
		for slot, p := range slots {
			if slot < from || slot > to {
				continue
			}
			if all[agent] == nil {
				all[agent] = map[int64]Point{}
			}
			all[agent][slot] = *p
		}
	}
	return all
}

// drop forgets slots.
func (t *tally) drop(which func(slot int64) bool) {
	for agent, slots := range t.all {
		for slot := range slots {
			if which(slot) {
				delete(slots, slot)
			}
		}
		if len(slots) == 0 {
			delete(t.all, agent)
		}
	}
}
