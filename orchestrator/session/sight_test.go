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
		"starting":   func() *hook.Record { return &hook.Record{Phase: hook.Starting} },
		"bound":      func() *hook.Record { return &hook.Record{Phase: hook.Starting, BoundAt: begin} },
		"unattended": func() *hook.Record { return &hook.Record{Phase: hook.Unattended, BoundAt: begin, TypedAt: begin} },
		"an entry": func() *hook.Record {
			return &hook.Record{Phase: hook.Turn, BoundAt: begin, Work: &hook.Work{DeliveryID: "x"}}
		},
		"a turn": func() *hook.Record { return &hook.Record{Phase: hook.Turn, BoundAt: begin} },
		"tasks": func() *hook.Record {
			return &hook.Record{Phase: hook.Background, BoundAt: begin, BackgroundTasks: []string{"shell: x"}, BackgroundSince: begin}
		},
		"told to finish": func() *hook.Record {
			return &hook.Record{Phase: hook.Turn, BoundAt: begin, Work: &hook.Work{DeliveryID: "x"}, Ruling: &hook.Ruling{Why: hook.EndFinished}}
		},
	}
	for name, record := range records {
		for _, off := range []time.Duration{0, -50 * 365 * 24 * time.Hour, 50 * 365 * 24 * time.Hour} {
			var seen sight
			judged := func(after time.Duration) verdict {
				r := record()
				setTimes(reflect.ValueOf(r), begin.Add(off))
				seen.see(r, begin.Add(after))
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

// TestASessionIsTimedByWhatItDoes: each change begins anew, and nothing else.
func TestASessionIsTimedByWhatItDoes(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	var seen sight
	r := &hook.Record{Phase: hook.Starting}
	steps := []struct {
		change func()
		want   sight
	}{
		{func() {}, sight{started: at(0), phase: hook.Starting, since: at(0)}},
		{func() { r.Phase, r.BoundAt, r.Events = hook.Turn, begin, 1 }, sight{started: at(0), bound: at(1), phase: hook.Turn, since: at(1), events: 1, event: at(1)}},
		{func() { r.Work = &hook.Work{DeliveryID: "x", Attempt: 1} }, sight{
			started: at(0), bound: at(1), phase: hook.Turn, since: at(1), events: 1, event: at(1), work: "x 1", handedOver: at(2),
		}},
		{func() { r.Work.Attempt, r.BackgroundTasks = 2, []string{"t"} }, sight{
			started: at(0), bound: at(1), phase: hook.Turn, since: at(1), events: 1, event: at(1), work: "x 2", handedOver: at(3), background: at(3),
		}},
		{func() { r.Phase, r.Events = hook.Background, 2 }, sight{
			started: at(0), bound: at(1), phase: hook.Background, since: at(4), events: 2, event: at(4), work: "x 2", handedOver: at(3), background: at(3),
		}},
		{func() { r.Work, r.BackgroundTasks = nil, nil }, sight{
			started: at(0), bound: at(1), phase: hook.Background, since: at(4), events: 2, event: at(4), handedOver: at(5),
		}},
	}
	for i, step := range steps {
		step.change()
		if seen.see(r, at(i)); seen != step.want {
			t.Errorf("step %d: %+v, want %+v", i, seen, step.want)
		}
	}
}
