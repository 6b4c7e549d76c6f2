package session

import (
	"reflect"
	"testing"
	"time"

	"heartbeat/hook"
)

// TestNoTimeOfTheRecordMovesATimeOut sets each time that stands in a session
// record to long ago and far ahead, as a clock that was set does, and whoever
// can write the file: each session ends when its own time is over, not before
// and not later.
func TestNoTimeOfTheRecordMovesATimeOut(t *testing.T) {
	t.Parallel()
	const limit = time.Hour
	l := limits{entry: limit, session: 4 * limit, start: limit, idle: limit, background: limit, stall: 2 * limit}
	begin := time.Now()
	records := map[string]func() *hook.Record{
		"starting": func() *hook.Record { return &hook.Record{Phase: hook.Starting} },
		"bound":    func() *hook.Record { return &hook.Record{Phase: hook.Starting, Bound: hook.Bound{BoundAt: begin}} },
		"unattended": func() *hook.Record {
			return &hook.Record{Phase: hook.Unattended, Bound: hook.Bound{BoundAt: begin}, People: hook.People{TypedAt: begin}}
		},
		"an entry": func() *hook.Record {
			return &hook.Record{Phase: hook.Turn, Bound: hook.Bound{BoundAt: begin}, Progress: hook.Progress{Work: &hook.Work{DeliveryID: "x"}}}
		},
		"a turn": func() *hook.Record { return &hook.Record{Phase: hook.Turn, Bound: hook.Bound{BoundAt: begin}} },
		"tasks": func() *hook.Record {
			return &hook.Record{Phase: hook.Background, Bound: hook.Bound{BoundAt: begin}, InBackground: hook.InBackground{BackgroundTasks: []string{"shell: x"}, BackgroundSince: begin}}
		},
		"told to finish": func() *hook.Record {
			return &hook.Record{Phase: hook.Turn, Bound: hook.Bound{BoundAt: begin}, Progress: hook.Progress{Work: &hook.Work{DeliveryID: "x"}}, Ruling: &hook.Ruling{Why: hook.EndFinished}}
		},
	}
	for name, record := range records {
		for _, off := range []time.Duration{0, -50 * 365 * 24 * time.Hour, 50 * 365 * 24 * time.Hour} {
			var seen sight
			judged := func(after time.Duration) verdict {
				r := record()
				setTimes(reflect.ValueOf(r), begin.Add(off))
				seen.see(r, acts, begin.Add(after))
				return judge(facts{now: begin.Add(after), seen: seen, ruling: r.Ruling}, l)
			}
			judged(0)
			if v := judged(limit - time.Second); v.end != "" {
				t.Errorf("%s, off by %v: ended by %q before its time", name, off, v.end)
			}
			if v := judged(limit); v.end == "" {
				t.Errorf("%s, off by %v: not ended when its time was over", name, off)
			}
		}
	}
}

// setTimes sets every time that is not zero.
func setTimes(v reflect.Value, to time.Time) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			setTimes(v.Elem(), to)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			if !v.Interface().(time.Time).IsZero() {
				v.Set(reflect.ValueOf(to))
			}
			return
		}
		for _, field := range v.Fields() {
			setTimes(field, to)
		}
	}
}

// TestASessionIsTimedByWhatItDoes: an entry has its time once the queue has gone
// on; coming and going begins nothing anew.
func TestASessionIsTimedByWhatItDoes(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	r, does := &hook.Record{Phase: hook.Starting}, acts
	work := func(id string) func() { return func() { r.Work = &hook.Work{DeliveryID: id, Attempt: 1} } }
	none := func() { r.Work = nil }
	ticks := 0
	tick := func() {
		ticks++
		r.Phase, does = hook.Turn, acts
		r.Answers = append(r.Answers, hook.Answered{At: at(1000 + ticks), Answer: hook.IdleTurn})
	}
	var seen sight
	for i, step := range []struct {
		change     func()
		handedOver int           // 0: the session has no entry
		free       time.Duration // seconds
	}{
		{func() {}, 0, 0},
		{func() { r.Phase, r.BoundAt, r.Events = hook.Turn, begin, 1 }, 0, 1},
		{work("x"), 2, 2},
		{none, 0, 2}, // it was taken back, or said to be
		{work("x"), 3, 3},
		{work("y"), 3, 3},
		{func() { work("z")(); r.Acknowledged++ }, 6, 0},
		{func() { none(); r.Acknowledged++ }, 0, 0},
		{func() {}, 0, 1},
		{func() { r.Phase, does = hook.Waiting, rests }, 0, 0},
		{func() {}, 0, 0},
		{func() { r.Phase, does = hook.Turn, acts }, 0, 1},
		{work("a"), 12, 2},
		{func() { r.Attached = 1 }, 12, 2},
		{none, 0, 2},
		{func() {}, 0, 2},
		{func() { r.Attached = 0 }, 0, 3},
		{func() { r.Phase, does = hook.Waiting, waits }, 0, 3},
		{func() {}, 0, 3},
		{tick, 0, 0},
		{func() {}, 0, 1},
		{func() { r.Phase, does = hook.Waiting, waits }, 0, 1},
		{tick, 0, 0},
		{func() { does = acts }, 0, 1},
	} {
		step.change()
		seen.see(r, does, at(i))
		if seen.works() != (step.handedOver > 0) || seen.works() && !seen.entry.handedOver.Equal(at(step.handedOver)) {
			t.Errorf("step %d: %q handed over at %v, want %d", i, seen.entry.work, seen.entry.handedOver.Sub(begin), step.handedOver)
		}
		if seen.free != step.free*time.Second {
			t.Errorf("step %d: free for %v, want %v", i, seen.free, step.free*time.Second)
		}
	}
	if !seen.bound.Equal(at(1)) || !seen.event.Equal(at(1)) || !seen.since.Equal(at(22)) {
		t.Errorf("%+v", seen)
	}
}
