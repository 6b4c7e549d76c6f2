package sources

import (
	"cmp"
	"container/heap"
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// Cron is one cron trigger in a timetable.
type Cron struct {
	Schedule Schedule
	Missed   Missed        // "" is MissedOnce
	Grace    time.Duration // fires later than this are dropped; 0: none is
	// Delay is added to each fire's time, see Offset. The prompt's time and label
	// stay those of the schedule.
	Delay time.Duration
	// Was is what Delay was before it changed at Changed, or zero. A fire that was
	// already past its time with Was keeps that time.
	Was     time.Duration
	Changed time.Time
	// Last is the last value given to Record: fires until then are done. The zero
	// time means that the trigger is new: it is recorded as seen now, and earlier
	// fires do not count as missed.
	Last     time.Time
	Template *Template // of the prompt, see ParseCronTemplate; a blank prompt is not emitted
	Emit     Emit
	// Record stores a new Last for the next start. It is called after the fire is
	// queued; a crash between the two emits the same label again. May be nil.
	Record func(last time.Time)
	// Failed reports a fire that could not be emitted and will be tried again after
	// retry. May be nil.
	Failed func(at time.Time, err error, retry time.Duration)
	// PassedOver reports fires that are not made up for, because of Missed or Grace. May be
	// nil.
	PassedOver func(Passed)
	// Slow means that Emit may take long, as a command does: it then occupies no
	// worker that other triggers need.
	Slow bool
}

const (
	// checkEvery bounds each wait: timers do not notice that the clock was set, and
	// stop during suspend. It is less than OnTime, so that a fire found in this way
	// still counts as on time.
	checkEvery = 45 * time.Second
	// timetableWorkers bounds how many fires are emitted at the same time. A fire
	// mostly waits for a disk.
	timetableWorkers = 64

	retryBase, retryLimit = time.Second, 5 * time.Minute

	// farAhead is how far in the future a last fire must be to show that the clock
	// was wrong then: waiting until that time could take years.
	farAhead = 24 * time.Hour
)

// Timetable fires many cron triggers from one loop. It follows the wall clock, even
// when that is set. After a step forward, Missed decides. After a step back by up
// to a day, no fire is repeated. After a larger step back, it continues from the
// new time, and Emit must refuse labels that it has seen. Its methods may be called
// from any goroutine.
type Timetable struct {
	changed chan struct{}
	now     func() time.Time // the wall clock; tests set it

	mu      sync.Mutex
	entries map[string]*cronEntry
	queue   cronHeap // those that wait for their time
	crew    Crew[*cronEntry]
	turned  []chan struct{} // closed when the loop has turned
	last    time.Time       // when the loop turned
}

// cronEntry is either in the queue or with the crew (busy); the queue then leaves
// seen, pending and failures alone.
type cronEntry struct {
	Cron
	wake     time.Time
	index    int // in queue, or -1
	seen     time.Time
	pending  []time.Time // due, not emitted yet
	gap      gap         // fires that are passed over, not told yet
	failures int
	busy     bool
	removed  bool
}

// NewTimetable returns an empty timetable.
func NewTimetable() *Timetable {
	tt := &Timetable{changed: make(chan struct{}, 1), now: wallNow, entries: map[string]*cronEntry{}}
	tt.crew = Crew[*cronEntry]{Most: timetableWorkers, Lock: &tt.mu, Do: tt.emit}
	return tt
}

// Set adds the trigger named key, or replaces it; a replaced trigger keeps the
// memory of what it fired.
func (tt *Timetable) Set(key string, c Cron) {
	now := tt.now()
	if c.Last.IsZero() {
		c.Last = now
		if c.Record != nil {
			c.Record(now)
		}
	}
	if c.Last.After(now.Add(farAhead)) {
		c.Last = now
	}
	c.Missed = cmp.Or(c.Missed, MissedOnce)
	tt.mu.Lock()
	defer tt.mu.Unlock()
	e := tt.entries[key]
	if e == nil {
		e = &cronEntry{index: -1, seen: c.Last}
		tt.entries[key] = e
	} else if e.Schedule != c.Schedule && !e.busy {
		e.pending = nil
	}
	e.Cron = c
	e.seen = later(e.seen, c.Last)
	if !e.busy {
		tt.schedule(e)
	}
	tt.notify()
}

// Remove removes a trigger. A fire that is being emitted continues.
func (tt *Timetable) Remove(key string) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	e := tt.entries[key]
	if e == nil {
		return
	}
	delete(tt.entries, key)
	e.removed = true
	if e.index >= 0 {
		heap.Remove(&tt.queue, e.index)
	}
}

// Next returns when the trigger named key fires or is tried next. It returns the
// zero time when there is no such trigger or it never fires again.
func (tt *Timetable) Next(key string) time.Time {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	if e := tt.entries[key]; e != nil {
		return e.wake
	}
	return time.Time{}
}

// Run fires triggers until ctx ends, then waits for the fires that are being
// emitted. Only one Run may be active at a time.
func (tt *Timetable) Run(ctx context.Context) {
	tt.crew.Serve(ctx, tt.changed, tt.step)
}

// Turn makes the loop of Run check what is due, and returns when it has done so:
// this shows that the loop is alive. The error is ctx's.
func (tt *Timetable) Turn(ctx context.Context) error {
	done := make(chan struct{})
	tt.mu.Lock()
	tt.turned = append(tt.turned, done)
	tt.mu.Unlock()
	tt.notify()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// step hands what is due to the crew and returns how long to wait.
func (tt *Timetable) step(ctx context.Context) time.Duration {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	for _, done := range tt.turned {
		close(done)
	}
	tt.turned = nil
	now := tt.now()
	if tt.last.After(now.Add(farAhead)) {
		tt.goOnFrom(now)
	}
	tt.last = now
	for len(tt.queue) > 0 && !tt.queue[0].wake.After(now) {
		e := heap.Pop(&tt.queue).(*cronEntry)
		e.collect(now)
		if len(e.pending) == 0 && e.gap == (gap{}) {
			tt.schedule(e)
			continue
		}
		e.busy = true
		tt.crew.Give(ctx, e, e.Slow)
	}
	tt.crew.Start(ctx)
	if len(tt.queue) == 0 {
		return checkEvery
	}
	return min(checkEvery, max(0, tt.queue[0].wake.Sub(now)))
}

// goOnFrom forgets fires that were seen at a time that is still in the future. The
// caller holds tt.mu.
func (tt *Timetable) goOnFrom(now time.Time) {
	for _, e := range tt.entries {
		if !e.seen.After(now) {
			continue
		}
		e.seen = now
		if !e.busy && e.index >= 0 {
			tt.schedule(e)
		}
	}
}

// emit emits an entry's pending fires and releases tt.mu meanwhile. The caller
// holds it.
func (tt *Timetable) emit(ctx context.Context, e *cronEntry) {
	if e.removed {
		return
	}
	c, pending, between := e.Cron, e.pending, e.gap
	e.gap = gap{}
	tt.mu.Unlock()
	c.passOver(between)
	done, err := c.fire(ctx, pending)
	tt.mu.Lock()
	e.finish(done, err)
	if !e.removed {
		tt.schedule(e)
		tt.notify()
	}
	if err != nil && ctx.Err() == nil && c.Failed != nil {
		at, retry := pending[done], e.wake.Sub(tt.now())
		tt.mu.Unlock()
		c.Failed(at, err, retry)
		tt.mu.Lock()
	}
}

// notify makes Run check again.
func (tt *Timetable) notify() {
	select {
	case tt.changed <- struct{}{}:
	default:
	}
}

// schedule puts e into the queue at its next time. The caller holds tt.mu.
func (tt *Timetable) schedule(e *cronEntry) {
	switch {
	case len(e.pending) > 0 && e.failures > 0:
		e.wake = tt.now().Add(Backoff(e.failures, retryBase, retryLimit, rand.Float64()))
	case len(e.pending) > 0:
		e.wake = e.pending[0]
	default:
		if e.wake = e.Schedule.Next(e.seen); !e.wake.IsZero() {
			e.wake = e.wake.Add(e.delay(e.wake))
		}
	}
	switch {
	case e.index >= 0 && e.wake.IsZero():
		heap.Remove(&tt.queue, e.index)
	case e.index >= 0:
		heap.Fix(&tt.queue, e.index)
	case !e.wake.IsZero():
		heap.Push(&tt.queue, e)
	}
}

// collect adds what has become due to pending. Fires that already wait there
// because they could not be emitted were collected on time, so for them Missed only
// decides how many are kept.
func (e *cronEntry) collect(now time.Time) {
	delay := e.Delay
	if e.Was > delay {
		delay = e.delay(e.Schedule.Next(e.seen))
	}
	now = now.Add(-delay) // as the schedule counts
	due := Due(e.Schedule, e.seen, now, e.Missed, e.Grace)
	e.gap = gapBefore(e.Schedule, e.seen, now, due, e.Missed)
	e.pending = append(e.pending, due...)
	e.seen = later(e.seen, now)
	keep := 1
	if e.Missed == MissedAll {
		keep = maxAll
	}
	e.pending = e.pending[max(0, len(e.pending)-keep):]
}

// finish records that the first done of pending were emitted.
func (e *cronEntry) finish(done int, err error) {
	e.busy = false
	e.pending = e.pending[done:]
	if err != nil {
		e.failures++
		return
	}
	e.failures = 0
	e.pending = nil
}

// fire emits fires in order and returns how many it emitted.
func (c *Cron) fire(ctx context.Context, fires []time.Time) (done int, err error) {
	for i, at := range fires {
		p := Prompt{Label: c.Schedule.Label(at), At: at, Due: at.Add(c.delay(at))}
		p.Text, err = c.Template.Render(CronDataAt(c.Schedule, at))
		if err == nil && strings.TrimSpace(p.Text) != "" {
			err = c.Emit(ctx, p)
		}
		if err != nil {
			return i, err
		}
		if c.Record != nil {
			c.Record(at)
		}
	}
	return len(fires), nil
}

// passOver tells of the fires in a gap, once.
func (c *Cron) passOver(g gap) {
	p := g.fires(c.Schedule)
	if p.Times == 0 {
		return
	}
	if c.PassedOver != nil {
		c.PassedOver(p)
	}
	if c.Record != nil {
		c.Record(g.until)
	}
}

// delay is how much later than its time a fire happens.
func (c *Cron) delay(at time.Time) time.Duration {
	if c.Was > c.Delay && !at.Add(c.Delay).After(c.Changed) && at.Add(c.Was).After(c.Changed) {
		return c.Was
	}
	return c.Delay
}

// wallNow returns the wall clock without a monotonic reading: comparisons must
// notice that it was set.
func wallNow() time.Time { return time.Now().Round(0) }

// cronHeap is a container/heap of entries, the next one first.
type cronHeap []*cronEntry

func (h cronHeap) Len() int           { return len(h) }
func (h cronHeap) Less(i, j int) bool { return h[i].wake.Before(h[j].wake) }
func (h cronHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *cronHeap) Push(x any) {
	e := x.(*cronEntry)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *cronHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.index = -1
	return e
}
