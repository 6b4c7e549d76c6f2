package later

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/internal/testbed"
)

func agent(t *testing.T) *config.Agent {
	t.Helper()
	dir := t.TempDir()
	return &config.Agent{Name: "a", Dir: dir, Home: filepath.Join(dir, ".heartbeat"), MaxEntry: 1 << 20}
}

func put(t *testing.T, a *config.Agent, id string, at time.Time) {
	t.Helper()
	if _, err := Put(t.Context(), a, Prompt{ID: id, At: at, Text: "text of " + id}); err != nil {
		t.Fatal(err)
	}
}

func TestPromptsAreSentInTheirOrder(t *testing.T) {
	t.Parallel()
	a, now := agent(t), time.Now().Round(0)
	if all, err := List(a); err != nil || len(all) > 0 {
		t.Errorf("nothing waits: %+v, %v", all, err)
	}
	isDue := func(p Prompt) bool { return !p.At.After(now) }
	put(t, a, "third/../ü\n", now.Add(time.Hour))
	put(t, a, "second", now.Add(-time.Minute))
	put(t, a, "first", now.Add(-time.Hour))
	if p, err := Put(t.Context(), a, Prompt{ID: "second"}); !errors.Is(err, ErrExists) || p.Text != "text of second" {
		t.Errorf("an id twice: %+v, %v", p, err)
	}
	if p, err := Find(a, "third/../ü\n"); err != nil || p == nil || p.Text != "text of third/../ü\n" {
		t.Errorf("found %+v, %v", p, err)
	}
	if p, err := Find(a, "nobody"); err != nil || p != nil {
		t.Errorf("found %+v, %v", p, err)
	}
	var sent []string
	broken := errors.New("a full disk")
	send := func(p Prompt) error {
		if p.ID == "first" && broken != nil {
			return broken
		}
		sent = append(sent, p.ID)
		return nil
	}
	err := sendDue(t.Context(), a, isDue, send)
	if !errors.Is(err, broken) || !slices.Equal(sent, []string{"second"}) {
		t.Errorf("one that cannot be sent: %v, sent %q", err, sent)
	}
	broken = nil
	if err := sendDue(t.Context(), a, isDue, send); err != nil || !slices.Equal(sent, []string{"second", "first"}) {
		t.Errorf("sent %q, %v", sent, err)
	}
	if all, err := List(a); err != nil || len(all) != 1 || !all[0].At.Equal(now.Add(time.Hour)) {
		t.Errorf("left are %+v, %v", all, err)
	}
	for _, id := range []string{"first", "nobody"} {
		if err := Cancel(t.Context(), a, id); !errors.Is(err, ErrNone) {
			t.Errorf("%s is taken back: %v", id, err)
		}
	}
	if err := Cancel(t.Context(), a, "third/../ü\n"); err != nil {
		t.Error(err)
	}
	if all, err := List(a); len(all) != 0 || err != nil {
		t.Errorf("left are %+v, %v", all, err)
	}
}

// TestWhatIsTakenBackIsNotSent: who takes a prompt back while it is being sent is told
// the truth.
func TestWhatIsTakenBackIsNotSent(t *testing.T) {
	t.Parallel()
	for range 20 {
		a, now := agent(t), time.Now()
		put(t, a, "x", now.Add(-time.Second))
		sent, taken := false, error(nil)
		var both sync.WaitGroup
		both.Go(func() {
			if err := sendDue(t.Context(), a, func(Prompt) bool { return true }, func(Prompt) error { sent = true; return nil }); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() { taken = Cancel(t.Context(), a, "x") })
		both.Wait()
		if sent == (taken == nil) {
			t.Fatalf("sent %t, taken back: %v", sent, taken)
		}
	}
}

// TestFilesOfOthersAreNoPrompts: an agent can write there.
func TestFilesOfOthersAreNoPrompts(t *testing.T) {
	t.Parallel()
	a := agent(t)
	put(t, a, "x", time.Now())
	for name, text := range map[string]string{"renamed.json": `{"id": "x"}`, "broken.json": "{"} {
		path := filepath.Join(Path(a), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := List(a); err == nil || len(all) != 1 {
			t.Errorf("%s is taken for a prompt, or hides one: %+v, %v", name, all, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(Path(a)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), Path(a)); err != nil {
		t.Fatal(err)
	}
	if _, err := List(a); err == nil {
		t.Error("a link in place of the folder is followed")
	}
}

// clockwork is a fleet of one agent that takes down when its prompts are sent.
type clockwork struct {
	a    []*config.Agent
	mu   sync.Mutex
	sent []string
}

func (c *clockwork) LaterAgents() ([]*config.Agent, bool) { return c.a, true }
func (c *clockwork) CannotSend(_ *config.Agent, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.sent = append(c.sent, "sends again")
		return
	}
	c.sent = append(c.sent, err.Error())
}

func (c *clockwork) SendLater(_ context.Context, _ *config.Agent, p Prompt) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, fmt.Sprintf("%s %s late", p.ID, time.Since(p.At)))
	return nil
}

// TestPromptsAreSentAtTheirTime, to the instant where it was said that they wait, and
// soon where nobody said so; what fell due while nothing ran, at once.
func TestPromptsAreSentAtTheirTime(t *testing.T) {
	t.Parallel()
	a := agent(t)
	synctest.Test(t, func(t *testing.T) {
		c := &clockwork{a: []*config.Agent{a}}
		look := make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now().Round(0)
		put(t, a, "missed", begin.Add(-24*time.Hour))
		put(t, a, "tomorrow", begin.Add(24*time.Hour))
		go Run(ctx, c, look)
		time.Sleep(time.Second)
		put(t, a, "told", begin.Add(3*time.Second))
		look <- struct{}{}
		time.Sleep(30 * time.Second)
		put(t, a, "untold", begin.Add(32*time.Second))
		time.Sleep(48 * time.Hour)
		cancel()
		synctest.Wait()
		want := []string{"missed 24h0m0s late", "told 0s late", "untold 13s late", "tomorrow 0s late"}
		if len(c.sent) != len(want) || c.sent[0] != want[0] || c.sent[1] != want[1] || c.sent[3] != want[3] {
			t.Errorf("sent %q, want %q", c.sent, want)
		}
	})
}

// TestALengthOfTimeIsThatLong: a prompt that is to wait an hour waits an hour, also if the
// clock is set back meanwhile; one for a time follows the clock.
func TestALengthOfTimeIsThatLong(t *testing.T) {
	t.Parallel()
	for by, want := range map[time.Duration][]string{
		-3 * time.Hour:   {"in 1h0m0s", "at 4h0m0s"},
		0:                {"at 1h0m0s", "in 1h0m0s"},
		30 * time.Minute: {"at 30m0s", "in 30m0s"},
	} {
		a := agent(t)
		synctest.Test(t, func(t *testing.T) {
			clock := testbed.NewClock()
			begin := time.Now()
			at := clock.Now().Round(0).Add(time.Hour)
			for _, p := range []Prompt{{ID: "in", At: at, In: time.Hour}, {ID: "at", At: at}} {
				if _, err := Put(t.Context(), a, p); err != nil {
					t.Fatal(err)
				}
			}
			c := &after{clockwork{a: []*config.Agent{a}}, begin}
			ctx, cancel := context.WithCancel(t.Context())
			go runBy(ctx, c, nil, clock.Now)
			time.Sleep(time.Minute)
			clock.Set(by)
			time.Sleep(5 * time.Hour)
			cancel()
			synctest.Wait()
			slices.Sort(c.sent)
			slices.Sort(want)
			if !slices.Equal(c.sent, want) {
				t.Errorf("the clock is set by %s: sent %q, want %q", by, c.sent, want)
			}
		})
	}
}

// after takes down how long after its begin prompts are sent, rounded to the time between two
// looks.
type after struct {
	clockwork
	begin time.Time
}

func (c *after) SendLater(_ context.Context, _ *config.Agent, p Prompt) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, fmt.Sprintf("%s %s", p.ID, time.Since(c.begin).Round(2*lookEvery)))
	return nil
}

// TestALockedFolderDelaysNoOther: one agent can hold the lock of its own folder for as
// long as it likes.
func TestALockedFolderDelaysNoOther(t *testing.T) {
	t.Parallel()
	locked, free := agent(t), agent(t)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now().Round(0)
		put(t, locked, "locked", begin.Add(time.Second))
		put(t, free, "free", begin.Add(2*time.Second))
		unlock, err := flock.TryLock(filepath.Join(Path(locked), lockFile))
		if err != nil {
			t.Fatal(err)
		}
		c := &clockwork{a: []*config.Agent{locked, free}}
		ctx, cancel := context.WithCancel(t.Context())
		go Run(ctx, c, nil)
		time.Sleep(time.Minute)
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		cancel()
		synctest.Wait()
		if len(c.sent) < 4 || c.sent[0] != "free 0s late" {
			t.Errorf("%q", c.sent)
		}
		tries := c.sent[1 : len(c.sent)-2] // each waits five seconds, and is made again after fifteen
		for _, said := range tries {
			if !strings.Contains(said, "cannot use the prompts that wait for their time") {
				t.Errorf("%q", said)
			}
		}
		if last := c.sent[len(c.sent)-2:]; !strings.HasPrefix(last[0], "locked ") || last[1] != "sends again" || len(tries) > 4 {
			t.Errorf("%q", c.sent)
		}
	})
}

// TestAFloodedFolderCostsABoundedAmount: an agent fills its folder with names or with long texts. What
// is read of it is bounded, and so is what is said of it.
func TestAFloodedFolderCostsABoundedAmount(t *testing.T) {
	t.Parallel()
	for kind, flood := range map[string]struct {
		files int
		text  string
	}{"names": {9000, ""}, "texts": {8, strings.Repeat("x", 5<<20)}, "prompts": {most + 5, "x"}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a := agent(t)
			put(t, a, "a person's", time.Now())
			for n := range flood.files {
				id, data := fmt.Sprint("n", n), []byte{}
				if flood.text != "" {
					data = fmt.Appendf(nil, `{"id":%q,"at":"2100-01-01T00:00:00Z","prompt":%q}`, id, flood.text)
				}
				if err := os.WriteFile(filepath.Join(Path(a), fileOf(id)), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			all, err := List(a)
			var bytes int
			for _, p := range all {
				bytes += len(p.Text)
			}
			if len(all) > most || bytes > 16<<20+6<<20 {
				t.Errorf("%d prompts of %d bytes were read", len(all), bytes)
			}
			if err == nil || len(err.Error()) > 500 || !strings.Contains(err.Error(), "more files there be read") {
				t.Errorf("said %.600v", err)
			}
			if _, err := Put(t.Context(), a, Prompt{ID: "one more", Text: strings.Repeat("y", 1<<20)}); kind != "names" && err == nil {
				t.Error("one more is kept, and would not be read")
			}
		})
	}
}
