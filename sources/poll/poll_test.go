package poll

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/sources"
)

// rig is a trigger in a synctest bubble, with a command that is a function.
type rig struct {
	mu     sync.Mutex
	runs   []time.Duration // when the command was run, since the start
	fires  []string
	labels []string
	fails  []string
	err    error // what Emit returns
}

func (r *rig) trigger(run func(n int) (string, error)) Trigger {
	start := time.Now()
	return Trigger{
		Every: time.Minute,
		Run: func(context.Context, Command) (Output, error) {
			r.mu.Lock()
			n := len(r.runs)
			r.runs = append(r.runs, time.Since(start))
			r.mu.Unlock()
			out, err := run(n)
			return Output{Stdout: []byte(out)}, err
		},
		Emit: func(_ context.Context, p sources.Prompt) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.err != nil {
				return r.err
			}
			r.fires, r.labels = append(r.fires, p.Text), append(r.labels, p.Label)
			return nil
		},
		Failed: func(_ time.Time, err error, retry time.Duration) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.fails = append(r.fails, fmt.Sprintf("%v, again in %v", err, retry.Round(time.Minute)))
		},
	}
}

// runFor runs a trigger for some time, calling middle half way.
func runFor(t *testing.T, tr Trigger, d time.Duration, middle func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { Run(ctx, tr) })
	time.Sleep(d / 2)
	synctest.Wait()
	if middle != nil {
		middle()
	}
	time.Sleep(d / 2)
	cancel()
	done.Wait()
}

func bubble(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, &rig{}) })
}

func TestRunsEvery(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		tr := r.trigger(func(n int) (string, error) {
			if n == 1 {
				return " \n", nil
			}
			return " the same\n", nil
		})
		runFor(t, tr, 3*time.Minute+time.Second, nil)
		if want := []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute}; !slices.Equal(r.runs, want) {
			t.Errorf("ran at %v, want %v", r.runs, want)
		}
		if want := []string{"the same", "the same", "the same"}; !slices.Equal(r.fires, want) {
			t.Errorf("fired %q, want %q", r.fires, want)
		}
		slices.Sort(r.labels)
		if n := len(slices.Compact(r.labels)); n != 3 {
			t.Errorf("%d labels for three fires: %q", n, r.labels)
		}
	})
}

func TestSlowRunsDoNotOverlap(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		tr := r.trigger(func(int) (string, error) { time.Sleep(90 * time.Second); return "", nil })
		runFor(t, tr, 5*time.Minute, nil)
		if want := []time.Duration{0, 90 * time.Second, 180 * time.Second, 270 * time.Second}; !slices.Equal(r.runs, want) {
			t.Errorf("ran at %v, want %v", r.runs, want)
		}
	})
}

func TestFailuresBackOff(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var healed atomic.Bool
		tr := r.trigger(func(int) (string, error) {
			if healed.Load() {
				return "", nil
			}
			return "lost", errors.New("exit status 1")
		})
		runFor(t, tr, 4*time.Hour, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if n := len(r.runs); n < 9 || n > 20 {
				t.Errorf("a failing command ran %d times in two hours", n)
			}
			if len(r.fails) != len(r.runs) || !strings.HasPrefix(r.fails[0], "exit status 1, again in ") {
				t.Errorf("failures: %q", r.fails)
			}
			healed.Store(true)
			r.runs = nil
		})
		if n := len(r.runs); n < 104 || n > 120 {
			t.Errorf("a command that works again ran %d times in two hours", n)
		}
		if len(r.fires) != 0 {
			t.Errorf("fired %q", r.fires)
		}
	})
}

func TestDelay(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Second, time.Minute, time.Hour} {
		last := time.Duration(0)
		for n := 1; n < 40; n++ {
			low, high := delay(n, every, 0), delay(n, every, 0.999)
			if low < every || low < last || high < low || high > max(every, backoffLimit) {
				t.Errorf("after %d failures of one every %v: %v to %v", n, every, low, high)
			}
			last = low
		}
	}
}

func TestLaterIsNoFailure(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		tr := r.trigger(func(int) (string, error) { return "ignored", nil })
		run := tr.Run
		tr.Run = func(ctx context.Context, c Command) (Output, error) {
			out, err := run(ctx, c)
			out.Later = true
			return out, err
		}
		runFor(t, tr, 10*time.Minute-time.Second, nil)
		if len(r.runs) != 10 || len(r.fires) != 0 || len(r.fails) != 0 {
			t.Errorf("%d runs, fired %q, failed %q", len(r.runs), r.fires, r.fails)
		}
	})
}

// TestOutputIsKeptUntilQueued has a command that hands its work over once.
func TestOutputIsKeptUntilQueued(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		tr := r.trigger(func(n int) (string, error) {
			if n == 0 {
				return "one\ntwo\n", nil
			}
			return "", nil
		})
		tr.Split = sources.SplitLines
		r.err = errors.New("disk full")
		runFor(t, tr, time.Hour, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.runs) != 1 || len(r.fires) != 0 || len(r.fails) < 5 {
				t.Errorf("%d runs, fired %q, failed %q", len(r.runs), r.fires, r.fails)
			}
			r.err = nil
		})
		if want := []string{"one", "two"}; !slices.Equal(r.fires, want) {
			t.Errorf("fired %q, want %q", r.fires, want)
		}
		if len(r.runs) < 20 {
			t.Errorf("after that it ran %d times", len(r.runs))
		}
	})
}

// TestEndDuringEmit gives what could not be queued a last chance.
func TestEndDuringEmit(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		tr := r.trigger(func(int) (string, error) { return "one\ntwo\n", nil })
		tr.Split = sources.SplitLines
		emit := tr.Emit
		tr.Emit = func(ctx context.Context, p sources.Prompt) error {
			if ctx.Done() != nil {
				if _, ok := ctx.Deadline(); !ok { // the ordinary chances
					return errors.New("disk full")
				}
			}
			return emit(ctx, p)
		}
		runFor(t, tr, 10*time.Second, nil)
		if want := []string{"one", "two"}; !slices.Equal(r.fires, want) {
			t.Errorf("fired %q, want %q", r.fires, want)
		}
	})
}

// TestWhatAGateDeclinedIsAskedAboutAgain: with dedupe it counted as fired and
// was lost for good.
func TestWhatAGateDeclinedIsAskedAboutAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		tr := r.trigger(func(int) (string, error) { return "a\nb", nil })
		tr.Split, tr.Dedupe = sources.SplitLines, true
		tr.Failed = func(_ time.Time, err error, _ time.Duration) { t.Errorf("reported: %v", err) }
		successes := 0
		tr.Succeeded = func(time.Time) { successes++ }
		emit, open, asked := tr.Emit, false, 0
		tr.Emit = func(ctx context.Context, p sources.Prompt) error {
			if asked++; !open && p.Text == "b" {
				return sources.ErrDeclined
			}
			return emit(ctx, p)
		}
		var kept []string
		tr.Record = func(k []string) { kept = k }
		runFor(t, tr, 2*time.Minute+time.Second, nil)
		if want := []string{"a"}; !slices.Equal(r.fires, want) || len(kept) != 1 || asked != 4 || successes != 0 {
			t.Fatalf("fired %q, kept %q, asked %d times, %d runs of which nothing is left", r.fires, kept, asked, successes)
		}
		tr.Kept, open = kept, true
		runFor(t, tr, time.Minute+time.Second, nil)
		if want := []string{"a", "b"}; !slices.Equal(r.fires, want) || len(kept) != 2 || successes != 2 {
			t.Errorf("fired %q, kept %q, %d successes", r.fires, kept, successes)
		}
	})
}

func TestDedupe(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		tr := r.trigger(func(n int) (string, error) { return fmt.Sprintf("a\nb\na\nrun %d", n/2), nil })
		tr.Split, tr.Dedupe = sources.SplitLines, true
		var kept []string
		tr.Record = func(k []string) { kept = k }
		runFor(t, tr, 3*time.Minute+time.Second, nil)
		if want := []string{"a", "b", "run 0", "run 1"}; !slices.Equal(r.fires, want) {
			t.Errorf("fired %q, want %q", r.fires, want)
		}
		tr.Kept, r.fires, r.runs = kept, nil, nil // as after a restart
		runFor(t, tr, 2*time.Minute+time.Second, nil)
		if len(r.fires) != 0 {
			t.Errorf("after a restart it fired %q", r.fires)
		}
		if len(kept) != 4 {
			t.Errorf("kept %q", kept)
		}
	})
}

func TestDedupeForgets(t *testing.T) {
	t.Parallel()
	tr := Trigger{Dedupe: true, Emit: func(context.Context, sources.Prompt) error { return nil }}
	for i := range 2 * maxKept {
		if err := tr.emit(t.Context(), fire{sum: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(tr.Kept) != maxKept || tr.Kept[0] != fmt.Sprint(maxKept) {
		t.Errorf("%d are kept, from %s", len(tr.Kept), tr.Kept[0])
	}
}

func TestSlots(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		slots := make(chan struct{}, 2)
		running, most := 0, 0
		var mu sync.Mutex
		tr := r.trigger(func(int) (string, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(10 * time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return "", nil
		})
		tr.Slots = slots
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		for range 5 {
			done.Go(func() { Run(ctx, tr) })
		}
		time.Sleep(10 * time.Minute)
		cancel()
		done.Wait()
		if most != 2 || len(r.runs) < 40 {
			t.Errorf("at most %d ran at once, %d in all", most, len(r.runs))
		}
	})
}

func TestOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		tr := r.trigger(func(int) (string, error) { return "a\nb\n", nil })
		tr.Split = sources.SplitLines
		var err error
		if tr.Template, err = sources.ParsePollTemplate("do {{.Output}}", sources.SplitWhole); err != nil {
			t.Fatal(err)
		}
		if n, err := Once(t.Context(), tr); n != 2 || err != nil {
			t.Errorf("once: %d, %v", n, err)
		}
		if want := []string{"do a", "do b"}; !slices.Equal(r.fires, want) {
			t.Errorf("fired %q, want %q", r.fires, want)
		}
		r.err = errors.New("disk full")
		if n, err := Once(t.Context(), tr); n != 0 || !errors.Is(err, r.err) {
			t.Errorf("once: %d, %v", n, err)
		}
	})
}

// A ticket that was edited is the same ticket.
func TestDedupeByKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{}
		outputs := []string{
			`[{"id": 12345678901234567, "title": "one"}, {"id": 2, "title": "two"}]`,
			`[{"id": 12345678901234567, "title": "one, edited"}, {"id": 3, "title": "three"}]`,
			`[{"title": "without"}]`, `[{"id": "", "title": "blank"}]`,
		}
		tr := r.trigger(func(n int) (string, error) { return outputs[min(n, 3)], nil })
		tr.Split, tr.Dedupe = sources.SplitJSON, true
		var err error
		if tr.Key, err = sources.ParsePollTemplate("{{.JSON.id}}", sources.SplitJSON); err != nil {
			t.Fatal(err)
		}
		if tr.Template, err = sources.ParsePollTemplate("Do {{.JSON.title}}", sources.SplitJSON); err != nil {
			t.Fatal(err)
		}
		runFor(t, tr, 9*time.Minute, nil)
		if want := []string{"Do one", "Do two", "Do three"}; !slices.Equal(r.fires, want) {
			t.Errorf("fired %q, want %q", r.fires, want)
		}
		if len(r.fails) < 2 || !strings.Contains(r.fails[0], `there is no .JSON.id`) || !strings.Contains(r.fails[1], "it is blank") {
			t.Errorf("failures: %q", r.fails)
		}
	})
}

// The command learns when its last good run began; runs that failed, asked for
// another time or whose prompts wait do not count.
func TestLastSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{}
		began := time.Now()
		var told []string
		tr := r.trigger(nil)
		tr.Run = func(_ context.Context, c Command) (Output, error) {
			last := "none"
			for _, kv := range c.Extra {
				if text, ok := strings.CutPrefix(kv, EnvLastSuccess+"="); ok {
					at, err := time.Parse(time.RFC3339Nano, text)
					if err != nil {
						t.Error(err)
					}
					last = at.Sub(began).String()
				}
			}
			told = append(told, last)
			switch len(told) {
			case 1:
				return Output{Later: true}, nil
			case 3:
				return Output{}, errors.New("broken")
			}
			return Output{Stdout: []byte("work")}, nil
		}
		var recorded []time.Duration
		tr.Succeeded = func(at time.Time) { recorded = append(recorded, at.Sub(began)) }
		runFor(t, tr, 5*time.Minute+time.Second, nil)
		if want := []string{"none", "none", "1m0s", "1m0s"}; len(told) < 4 || !slices.Equal(told[:4], want) {
			t.Errorf("the command was told %q, want first %q", told, want)
		}
		if len(recorded) == 0 || recorded[0] != time.Minute {
			t.Errorf("recorded %v", recorded)
		}
	})
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how  sources.Split
		out  string
		want string // joined by |
		err  string
	}{
		{how: "", out: " a\nb \n", want: "a\nb"},
		{how: sources.SplitWhole, out: "\n \t\n", want: ""},
		{how: sources.SplitWhole, out: "a\xffb", want: "a\ufffdb"},
		{how: sources.SplitLines, out: "a\r\n\n  b c \nlast", want: "a|b c|last"},
		{how: sources.SplitJSON, out: "", want: ""},
		{how: sources.SplitJSON, out: `"a\nb" {"x": [1, 2]} 3 null "" [4, 5]`, want: `a` + "\n" + `b|{"x":[1,2]}|3|[4,5]`},
		{how: sources.SplitJSON, out: ` ["a", {"b": 1}, null, [2]] `, want: `a|{"b":1}|[2]`},
		{how: sources.SplitJSON, out: "[]", want: ""},
		{how: sources.SplitJSON, out: `"a" x`, err: "JSON"},
		{how: sources.SplitJSON, out: `["a"`, err: "JSON"},
		{how: "words", out: "a", err: "words"},
		{how: sources.SplitWhole, out: "\ufeff", want: ""},
		{how: sources.SplitWhole, out: "\ufeff x\r\n", want: "x"},
		{how: sources.SplitLines, out: "\ufeffx\r\ny\r\n", want: "x|y"},
		{how: sources.SplitJSON, out: "\ufeff{\"a\":1}\r\n", want: `{"a":1}`},
		{how: sources.SplitJSON, out: "\ufeff", want: ""},
		{how: sources.SplitLines, out: strings.Repeat("x\n", maxPrompts), want: strings.TrimSuffix(strings.Repeat("x|", maxPrompts), "|")},
		{how: sources.SplitLines, out: strings.Repeat("x\n", maxPrompts+1), err: "over 1000"},
	} {
		got, err := split([]byte(c.out), c.how)
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || c.err == "" && err != nil {
			t.Errorf("%s %.40q: the error is %v, want %q", c.how, c.out, err, c.err)
		}
		var texts []string
		for _, p := range got {
			texts = append(texts, p.text)
		}
		if g := strings.Join(texts, "|"); c.err == "" && g != c.want {
			t.Errorf("%s %.40q: got %.80q, want %.80q", c.how, c.out, g, c.want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte(`["a",{}]`), byte(2))
	f.Add([]byte("a\nb"), byte(1))
	f.Fuzz(func(t *testing.T, out []byte, how byte) {
		hows := []sources.Split{sources.SplitWhole, sources.SplitLines, sources.SplitJSON}
		parts, err := split(out, hows[int(how)%3])
		if err != nil {
			return
		}
		for _, p := range parts {
			if strings.TrimSpace(p.text) != p.text || p.text == "" || strings.ToValidUTF8(p.text, "") != p.text {
				t.Fatalf("a part is %q", p.text)
			}
		}
	})
}
