package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/internal/testbed"
)

// fireLog is where the triggers of a test emit to.
type fireLog struct {
	mu       sync.Mutex
	fires    []string
	late     []time.Duration
	recorded []time.Time
	failed   []string
	err      error // what Emit returns
}

func (l *fireLog) emit(_ context.Context, p Prompt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.fires = append(l.fires, p.Label)
	l.late = append(l.late, time.Since(p.At))
	return nil
}

func (l *fireLog) record(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded = append(l.recorded, at)
}

func (l *fireLog) fail(_ time.Time, err error, retry time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, fmt.Sprintf("%v %v", err, retry > 0))
}

// recordedTimes and failures return what came so far.
func (l *fireLog) recordedTimes() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.recorded)
}

func (l *fireLog) failures() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.failed)
}

func (l *fireLog) setErr(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// take returns what was emitted since the last call.
func (l *fireLog) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := strings.Join(l.fires, " ")
	l.fires = nil
	return s
}

func (l *fireLog) cron(t *testing.T, spec string) Cron {
	t.Helper()
	tmpl, err := ParseCronTemplate("do it")
	if err != nil {
		t.Fatal(err)
	}
	return Cron{Schedule: mustParse(t, spec, time.UTC), Template: tmpl, Emit: l.emit, Record: l.record, Failed: l.fail}
}

// bubbleTable is a timetable whose clock a test can set.
type bubbleTable struct {
	*Timetable
	shift atomic.Int64
}

func (b *bubbleTable) setClock(by time.Duration) { b.shift.Add(int64(by)) }

// inBubble runs a timetable within a synctest bubble, whose clock starts on
// 2000-01-01 00:00 UTC.
func inBubble(t *testing.T, f func(t *testing.T, tt *bubbleTable, l *fireLog)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		tt := &bubbleTable{Timetable: NewTimetable()}
		tt.now = func() time.Time { return wallNow().Add(time.Duration(tt.shift.Load())) }
		var done sync.WaitGroup
		done.Go(func() { tt.Run(ctx) })
		f(t, tt, &fireLog{})
		cancel()
		done.Wait()
	})
}

func wantFires(t *testing.T, l *fireLog, want string) {
	t.Helper()
	synctest.Wait()
	if got := l.take(); got != want {
		t.Errorf("fired %q, want %q", got, want)
	}
}

func TestAYearOfTenSchedules(t *testing.T) {
	start := time.Now()
	inBubble(t, func(t *testing.T, tt *bubbleTable, l *fireLog) {
		specs := map[string]int{
			"0 * * * *": 366 * 24, "*/30 9-17 * * 1-5": 9 * 2 * 260, "0 0 * * *": 366, "30 2 * * *": 366,
			"0 9 1 * *": 12, "0 0 29 2 *": 1, "@weekly": 53, "0 12 * * 7": 53, "@every 90m": 366 * 16, "0 0 1 1 *": 1,
		}
		want := 0
		for spec, n := range specs {
			tt.Set(spec, l.cron(t, spec))
			want += n
		}
		time.Sleep(366 * 24 * time.Hour)
		synctest.Wait()
		if len(l.fires) != want {
			t.Errorf("%d fires in a year, want %d", len(l.fires), want)
		}
		if worst := slices.Max(l.late); worst != 0 {
			t.Errorf("a fire was %v late", worst)
		}
	})
	t.Logf("a year took %v", time.Since(start))
}

func TestMissedAtStart(t *testing.T) {
	for missed, want := range map[Missed]string{
		"":         "1999-12-31T23:00+00:00",
		MissedOnce: "1999-12-31T23:00+00:00",
		MissedSkip: "",
		MissedAll:  "1999-12-31T21:00+00:00 1999-12-31T22:00+00:00 1999-12-31T23:00+00:00",
	} {
		t.Run(string(missed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, tt *bubbleTable, l *fireLog) {
				c := l.cron(t, "0 * * * *")
				c.Missed, c.Last = missed, time.Date(1999, 12, 31, 20, 0, 0, 0, time.UTC)
				tt.setClock(-30 * time.Minute)
				tt.Set("a", c)
				wantFires(t, l, want)
			})
		})
	}
}

func TestNewTriggerMissesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, tt *bubbleTable, l *fireLog) {
		tt.Set("a", l.cron(t, "0 0 * * *"))
		wantFires(t, l, "")
		if got := l.recordedTimes(); len(got) != 1 || !got[0].Equal(time.Now()) {
			t.Errorf("a new trigger was recorded as %v", got)
		}
		time.Sleep(24 * time.Hour)
		wantFires(t, l, "2000-01-02T00:00")
	})
}

func TestFailedEmitIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, tt *bubbleTable, l *fireLog) {
		c := l.cron(t, "0 6 * * *")
		c.Missed = MissedSkip // also after more than OnTime
		tt.Set("a", c)
		l.setErr(errors.New("disk full"))
		time.Sleep(6*time.Hour + 10*time.Minute)
		wantFires(t, l, "")
		if got := l.failures(); len(got) < 5 || len(got) > 20 || got[0] != "disk full true" {
			t.Errorf("after ten minutes the failures are %q", got)
		}
		if got := l.recordedTimes(); len(got) != 1 {
			t.Errorf("recorded %v though nothing was emitted", got)
		}
		l.setErr(nil)
		time.Sleep(6 * time.Minute)
		wantFires(t, l, "2000-01-01T06:00")
		if got := l.recordedTimes(); len(got) != 2 {
			t.Errorf("recorded %v", got)
		}
		time.Sleep(24 * time.Hour)
		wantFires(t, l, "2000-01-02T06:00")
	})
}

// TestFailingForLong leaves one fire under "once" and ten under "all".
func TestFailingForLong(t *testing.T) {
	inBubble(t, func(t *testing.T, tt *bubbleTable, l *fireLog) {
		all := l.cron(t, "0 * * * *")
		all.Missed = MissedAll
		tt.Set("all", all)
		tt.Set("once", l.cron(t, "30 * * * *"))
		l.setErr(errors.New("disk full"))
		time.Sleep(48*time.Hour + 40*time.Minute)
		l.setErr(nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		got := strings.Fields(l.take())
		slices.Sort(got)
		if len(got) != 11 || got[0] != "2000-01-02T15:00+00:00" || got[10] != "2000-01-03T00:30+00:00" {
			t.Errorf("fired %q", got)
		}
	})
}

func TestClockIsSet(t *testing.T) {
	inBubble(t, func(t *testing.T, tt *bubbleTable, l *fireLog) {
		tt.Set("a", l.cron(t, "0 * * * *"))
		time.Sleep(time.Hour + time.Minute)
		wantFires(t, l, "2000-01-01T01:00+00:00")
		tt.setClock(-30 * time.Minute) // back to 00:31
		time.Sleep(time.Hour)          // 01:31
		wantFires(t, l, "")
		time.Sleep(30 * time.Minute) // 02:01
		wantFires(t, l, "2000-01-01T02:00+00:00")
		tt.setClock(5*time.Hour - 30*time.Second) // 07:00:30
		time.Sleep(checkEvery)
		wantFires(t, l, "2000-01-01T07:00+00:00")
		tt.setClock(58 * time.Minute) // 07:59
		time.Sleep(checkEvery + time.Second)
		tt.setClock(30 * time.Second) // noticed with the next check
		time.Sleep(checkEvery)
		wantFires(t, l, "2000-01-01T08:00+00:00")
	})
}

// A clock that was years ahead for a while must not stop the schedule for years.
func TestClockWasFarAhead(t *testing.T) {
	inBubble(t, func(t *testing.T, tt *bubbleTable, l *fireLog) {
		tt.Set("a", l.cron(t, "0 * * * *"))
		const years = 10 * 365 * 24 * time.Hour
		tt.setClock(years)
		time.Sleep(checkEvery)
		wantFires(t, l, "2009-12-29T00:00+00:00")
		tt.setClock(-years)
		time.Sleep(time.Hour)
		wantFires(t, l, "2000-01-01T01:00+00:00")

		restarted := l.cron(t, "30 * * * *")
		restarted.Last = tt.now().Add(years)
		tt.Set("b", restarted)
		time.Sleep(30 * time.Minute)
		wantFires(t, l, "2000-01-01T01:30+00:00")
	})
}

func TestReplaceAndRemove(t *testing.T) {
	inBubble(t, func(t *testing.T, tt *bubbleTable, l *fireLog) {
		if !tt.Next("a").IsZero() {
			t.Error("an unknown trigger has a next fire")
		}
		c := l.cron(t, "0 * * * *")
		tt.Set("a", c)
		time.Sleep(time.Hour)
		wantFires(t, l, "2000-01-01T01:00+00:00")
		c.Last = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // stale: the timetable knows better
		tt.Set("a", c)
		wantFires(t, l, "")
		c.Schedule = mustParse(t, "30 * * * *", time.UTC)
		tt.Set("a", c)
		if got := tt.Next("a").Format("15:04"); got != "01:30" {
			t.Errorf("the replaced trigger fires at %s", got)
		}
		time.Sleep(time.Hour)
		wantFires(t, l, "2000-01-01T01:30+00:00")
		tt.Remove("a")
		tt.Remove("a")
		time.Sleep(3 * time.Hour)
		wantFires(t, l, "")
	})
}

// TestDelay moves each fire, keeps its name, and judges lateness by the moved time.
func TestDelay(t *testing.T) {
	inBubble(t, func(t *testing.T, tt *bubbleTable, l *fireLog) {
		c := l.cron(t, "0 * * * *")
		c.Delay, c.Missed, c.Grace = 7*time.Minute, MissedAll, 2*time.Hour
		c.Last = time.Date(1999, 12, 31, 20, 0, 0, 0, time.UTC)
		tt.Set("a", c) // at 00:00 the fire of 00:00 is not due yet; 22:00 is within the grace
		wantFires(t, l, "1999-12-31T22:00+00:00 1999-12-31T23:00+00:00")
		if got := tt.Next("a").Format("15:04"); got != "00:07" {
			t.Errorf("the next fire is at %s", got)
		}
		time.Sleep(7*time.Minute - time.Second)
		wantFires(t, l, "")
		time.Sleep(time.Second)
		wantFires(t, l, "2000-01-01T00:00+00:00")
		time.Sleep(2 * time.Hour)
		wantFires(t, l, "2000-01-01T01:00+00:00 2000-01-01T02:00+00:00")
	})
}

// TestDelayThatChanges: a fire whose time by the new delay has passed keeps the
// one that it had; it neither comes at once nor is lost.
func TestDelayThatChanges(t *testing.T) {
	for _, tt := range []struct {
		missed   Missed
		was, now time.Duration
		want     [2]time.Duration // after the hours 1 and 2
	}{
		{MissedSkip, 30 * time.Minute, 5 * time.Minute, [2]time.Duration{30 * time.Minute, 5 * time.Minute}},
		{MissedOnce, 30 * time.Minute, 5 * time.Minute, [2]time.Duration{30 * time.Minute, 5 * time.Minute}},
		{MissedSkip, 30 * time.Minute, 20 * time.Minute, [2]time.Duration{20 * time.Minute, 20 * time.Minute}},
		{MissedOnce, 15 * time.Minute, 40 * time.Minute, [2]time.Duration{40 * time.Minute, 40 * time.Minute}},
		{MissedAll, 30 * time.Minute, 0, [2]time.Duration{30 * time.Minute, 0}},
	} {
		t.Run(fmt.Sprintf("%s, %v to %v", tt.missed, tt.was, tt.now), func(t *testing.T) {
			inBubble(t, func(t *testing.T, table *bubbleTable, l *fireLog) {
				begin := time.Now()
				c := l.cron(t, "0 * * * *")
				c.Missed, c.Delay = tt.missed, tt.was
				table.Set("k", c)
				time.Sleep(time.Hour + 10*time.Minute)
				table.Remove("k")
				c.Delay, c.Was, c.Changed, c.Last = tt.now, tt.was, time.Now(), begin
				table.Set("k", c)
				time.Sleep(time.Hour + 49*time.Minute)
				l.mu.Lock()
				defer l.mu.Unlock()
				if got := fmt.Sprint(l.late); got != fmt.Sprint(tt.want[:]) {
					t.Errorf("late by %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestOffsetIsStableAndSpread(t *testing.T) {
	t.Parallel()
	const jitter = 10 * time.Minute
	parts := map[time.Duration]int{}
	for i := range 1000 {
		key := fmt.Sprintf("agent-%d/cron-1", i)
		d := Offset(jitter, key)
		if d < 0 || d >= jitter || d != Offset(jitter, key) {
			t.Fatalf("%s: %v", key, d)
		}
		parts[d/time.Minute]++
	}
	for minute := range time.Duration(10) {
		if n := parts[minute]; n < 50 || n > 150 {
			t.Errorf("%d of 1000 in minute %d", n, minute)
		}
	}
	if Offset(0, "x") != 0 || Offset(-1, "x") != 0 {
		t.Error("an offset without jitter")
	}
}

func TestBlankPromptIsNotEmitted(t *testing.T) {
	inBubble(t, func(t *testing.T, tt *bubbleTable, l *fireLog) {
		c := l.cron(t, "0 * * * *")
		var err error
		if c.Template, err = ParseCronTemplate(`{{if eq .At.Hour 2}}two{{end}} `); err != nil {
			t.Fatal(err)
		}
		tt.Set("a", c)
		time.Sleep(3 * time.Hour)
		wantFires(t, l, "2000-01-01T02:00+00:00")
		if got := l.recordedTimes(); len(got) != 4 {
			t.Errorf("recorded %v", got)
		}
	})
}

// TestOneSlowEmitHoldsUpNobody has a trigger whose emit hangs.
func TestOneSlowEmitHoldsUpNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, tt *bubbleTable, l *fireLog) {
		slow := l.cron(t, "0 * * * *")
		slow.Emit = func(ctx context.Context, _ Prompt) error { <-ctx.Done(); return ctx.Err() }
		tt.Set("slow", slow)
		tt.Set("other", l.cron(t, "0 * * * *"))
		time.Sleep(2 * time.Hour)
		wantFires(t, l, "2000-01-01T01:00+00:00 2000-01-01T02:00+00:00")
	})
}

// TestTenThousandAtOnce measures, on the real clock, how late 10,000 fires
// of one minute are. On disk each is synced, and the disk is the limit.
func TestTenThousandAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, emit := range map[string]func(i int, p Prompt) error{
		"in memory": func(int, Prompt) error { return nil },
		"on disk":   func(i int, p Prompt) error { return appendSynced(fmt.Sprintf("%s/%d", dir, i%256), p.Label) },
	} {
		late := atOnce(t, 10_000, emit)
		p50, p99 := late[len(late)/2], late[len(late)*99/100]
		t.Logf("%s: p50 %v, p99 %v late", name, p50, p99)
		if name == "in memory" && p99 > testbed.Patience/2 { // the target is 250ms; a busy machine is not a failure
			t.Errorf("%s: p99 is %v late", name, p99)
		}
	}
}

// atOnce runs n triggers that fire within the next second and returns how
// late each was queued, sorted.
func atOnce(t *testing.T, n int, emit func(i int, p Prompt) error) []time.Duration {
	t.Helper()
	minute := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	shift := minute.Add(-time.Second).Sub(wallNow())
	tt := NewTimetable()
	tt.now = func() time.Time { return wallNow().Add(shift) }
	ctx, cancel := context.WithTimeout(t.Context(), testbed.Patience)
	defer cancel()
	var mu sync.Mutex
	var late []time.Duration
	l := &fireLog{}
	for i := range n {
		c := l.cron(t, "*/5 * * * *")
		c.Record = nil
		c.Last = minute.Add(-time.Minute)
		c.Emit = func(_ context.Context, p Prompt) error {
			if err := emit(i, p); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if late = append(late, tt.now().Sub(p.At)); len(late) == n {
				cancel()
			}
			return nil
		}
		tt.Set(fmt.Sprint(i), c)
	}
	tt.Run(ctx)
	if len(late) != n {
		t.Fatalf("%d of %d fires after 30 s", len(late), n)
	}
	slices.Sort(late)
	return late
}

func appendSynced(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, werr := f.WriteString(line + "\n")
	return errors.Join(werr, f.Sync(), f.Close())
}

// BenchmarkTimetableWake is what each of the two wake-ups a minute costs with
// 10,000 triggers waiting.
func BenchmarkTimetableWake(b *testing.B) {
	tt := NewTimetable()
	tmpl, err := ParseCronTemplate("x")
	if err != nil {
		b.Fatal(err)
	}
	now := wallNow()
	for i := range 10_000 {
		tt.Set(fmt.Sprint(i), Cron{Schedule: mustParse(b, "0 0 1 1 *", time.UTC), Template: tmpl, Last: now})
	}
	for b.Loop() {
		tt.step(b.Context())
	}
}

// TestTriggersThatHangHoldUpNobody: 64 gates that hung took all workers, and
// no schedule of the fleet fired meanwhile.
func TestTriggersThatHangHoldUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, tt := &fireLog{}, NewTimetable()
		for i := range 3 * timetableWorkers {
			c := log.cron(t, "* * * * *")
			c.Slow = true
			c.Emit = func(ctx context.Context, _ Prompt) error {
				<-ctx.Done()
				return ctx.Err()
			}
			tt.Set(fmt.Sprint("hangs ", i), c)
		}
		tt.Set("plain", log.cron(t, "* * * * *"))
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { tt.Run(ctx) })
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if fires := strings.Fields(log.take()); len(fires) != 3 {
			t.Errorf("fired %q in three minutes", fires)
		}
		if failed := log.failures(); len(failed) > 0 {
			t.Errorf("failed %q", failed)
		}
		cancel()
		done.Wait()
	})
}
