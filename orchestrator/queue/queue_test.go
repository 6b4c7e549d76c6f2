package queue

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
)

// newAgent is an agent whose queue holds the given prompts; their ids are the
// prompts.
func newAgent(t *testing.T, prompts ...string) *config.Agent {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &config.Agent{
		Name: "triage", Dir: dir, Home: dir, Inbox: filepath.Join(dir, "inbox.jsonl"),
		OnOrphan: inbox.DeadLetter, MaxAttempts: 5,
	}
	q := open(t, a)
	for _, p := range prompts {
		if _, err := q.Append(t.Context(), inbox.Letter{ID: p, Source: "send", Prompt: p}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func open(t *testing.T, a *config.Agent) *inbox.Queue {
	t.Helper()
	q, err := Open(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

// start takes the first entry to a state in flight, in a session of ours.
func start(t *testing.T, a *config.Agent, s inbox.State) {
	t.Helper()
	startBy(t, a, s, inbox.Offering{Via: inbox.ViaStop, Session: "s"})
}

func startBy(t *testing.T, a *config.Agent, s inbox.State, o inbox.Offering) {
	t.Helper()
	q, err := open(t, a).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Unlock()
	e, err := q.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Offer(e, o); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Advance(s, "p"); err != nil {
		t.Fatal(err)
	}
}

func expectQueue(t *testing.T, a *config.Agent, queued, dead []string) {
	t.Helper()
	q := open(t, a)
	entries, err := q.List(100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Prompt)
	}
	expect(t, "queued", got, queued)
	got = nil
	for d, err := range q.DeadLetters() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d.ID+" "+string(d.Reason))
	}
	expect(t, "dead", got, dead)
}

func expect(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %q, want %q", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: %q, want %q", what, got, want)
		}
	}
}

func TestDropRetryPurge(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "a", "b", "c")
	if n, err := Drop(t.Context(), a, []string{"a", "c"}); n != 2 || err != nil {
		t.Fatalf("Drop = %d, %v", n, err)
	}
	expectQueue(t, a, []string{"b"}, []string{"a dropped", "c dropped"})
	if n, again, err := Retry(t.Context(), a, []string{"c"}, false); n != 1 || len(again) != 1 || again[0].ID != "c" || err != nil {
		t.Fatalf("Retry = %d, %+v, %v", n, again, err)
	}
	expectQueue(t, a, []string{"b", "c"}, []string{"a dropped"})
	if n, err := Purge(t.Context(), a, nil, true); n != 1 || err != nil {
		t.Fatalf("Purge = %d, %v", n, err)
	}
	expectQueue(t, a, []string{"b", "c"}, nil)
}

// One unknown id of several leaves everything as it is.
func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "a", "b")
	if _, err := Drop(t.Context(), a, []string{"a", "x"}); !errors.Is(err, inbox.ErrNotFound) {
		t.Errorf("Drop: %v, want ErrNotFound", err)
	}
	if _, err := Drop(t.Context(), a, []string{"b"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Retry(t.Context(), a, []string{"b", "x"}, false); !errors.Is(err, inbox.ErrNotFound) {
		t.Errorf("Retry: %v, want ErrNotFound", err)
	}
	if _, err := Purge(t.Context(), a, []string{"b", "x"}, false); !errors.Is(err, inbox.ErrNotFound) {
		t.Errorf("Purge: %v, want ErrNotFound", err)
	}
	expectQueue(t, a, []string{"a"}, []string{"b dropped"})
}

func TestWhatIsInFlightIsNotDropped(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "a", "b")
	start(t, a, inbox.Started)
	drop := func(ids ...string) string {
		_, err := Drop(t.Context(), a, ids)
		busy, ok := errors.AsType[*BusyError](err)
		if !ok {
			t.Fatalf("Drop: %v, want a *BusyError", err)
		}
		return busy.Error() + "; " + busy.Hint()
	}
	if got := drop("b", "a"); !strings.HasPrefix(got, `cannot drop "a": it is in flight (started); its session is gone: `) {
		t.Errorf("without a session: %s", got)
	}
	unlock, err := flock.TryLock(filepath.Join(filepath.Dir(a.Inbox), inbox.SessionLock))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if got := drop("a"); !strings.Contains(got, "heartbeat attach triage") {
		t.Errorf("with a session: %s", got)
	}
	err = locked(t.Context(), place(a), func(q *inbox.Held) error { _, err := q.Check(inbox.Acknowledgement{}); return err })
	if err != nil {
		t.Fatal(err)
	}
	if got := drop("a"); !strings.HasSuffix(got, "(checking); its check goes on without its session; heartbeat cancel triage gives it up") {
		t.Errorf("while it is checked: %s", got)
	}
	expectQueue(t, a, []string{"b"}, nil)
}

func TestRecover(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		state        inbox.State
		policy       inbox.OrphanPolicy
		want         inbox.Outcome
		queued, dead []string
	}{
		{"offered", inbox.Offered, "", inbox.Requeued, []string{"a", "b"}, nil},
		{"taken", inbox.Taken, "", inbox.Requeued, []string{"a", "b"}, nil},
		{"started, as declared", inbox.Started, "", inbox.DeadLettered, []string{"b"}, []string{"a interrupted"}},
		{"started, retry", inbox.Started, inbox.Retry, inbox.Requeued, []string{"a", "b"}, nil},
		{"started, drop", inbox.Started, inbox.Drop, inbox.DroppedOrphan, []string{"b"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, "a", "b")
			start(t, a, tt.state)
			got, flight, err := Recover(t.Context(), OfAgent(a, tt.policy))
			if err != nil || got != tt.want || flight == nil || flight.ID != "a" {
				t.Fatalf("Recover = %s, %+v, %v; want %s", got, flight, err, tt.want)
			}
			expectQueue(t, a, tt.queued, tt.dead)
			if got, _, err := Recover(t.Context(), OfAgent(a, tt.policy)); got != inbox.NothingToRecover || err != nil {
				t.Errorf("the second time: %s, %v", got, err)
			}
		})
	}
}

// In a directory that somebody wired by hand no hook reports tools: an entry
// that was taken may have done anything.
func TestRecoverByHandWiredInbox(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "a")
	startBy(t, a, inbox.Taken, inbox.Offering{Via: inbox.ViaStop, Unwatched: true})
	r, err := OfInbox(a.Inbox, "")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := Recover(t.Context(), r); got != inbox.DeadLettered || err != nil {
		t.Fatalf("Recover = %s, %v", got, err)
	}
}

func TestRecoverRefusesWhereSomebodyLives(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"scheduler", "session"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, "a")
			start(t, a, inbox.Started)
			path := a.Dir
			if who == "session" {
				path = filepath.Join(filepath.Dir(a.Inbox), inbox.SessionLock)
			}
			unlock, err := flock.TryLock(path)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = Recover(t.Context(), OfAgent(a, ""))
			var busy *BusyError
			if !errors.As(err, &busy) || busy.Hint() == "" {
				t.Errorf("Recover: %v, want a *BusyError with a hint", err)
			}
			if err := unlock(); err != nil {
				t.Fatal(err)
			}
			if got, _, err := Recover(t.Context(), OfAgent(a, "")); got != inbox.DeadLettered || err != nil {
				t.Errorf("after it had ended: %s, %v; the refusal must not have changed anything", got, err)
			}
		})
	}
}

// A lock on a directory that is missing would make a file of its name.
func TestRecoverMakesNothingOfAWrongPath(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "nowhere")
	for _, path := range []string{filepath.Join(missing, "inbox.jsonl"), filepath.Join(missing, ".heartbeat", "inbox.jsonl")} {
		r, err := OfInbox(path, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Recover(t.Context(), r); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := os.Lstat(missing); err == nil {
			t.Errorf("%s: something was made", path)
		}
	}
}

// Who waited for the reply of an entry that on-orphan: drop has dropped, or
// whose record was rotated away, waited for ever.
func TestAwaitOfWhatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, "a", "b")
		a.OnOrphan = inbox.Drop
		start(t, a, inbox.Started)
		done := make(chan error, 1)
		go func() { _, err := Await(t.Context(), a, "a", nil); done <- err }()
		select {
		case err := <-done:
			t.Fatalf("while it is in flight: %v", err)
		case <-time.After(3 * goneLook * deadLook):
		}
		if got, _, err := Recover(t.Context(), OfAgent(a, "")); got != inbox.DroppedOrphan || err != nil {
			t.Fatalf("Recover: %s, %v", got, err)
		}
		select {
		case err := <-done:
			var gone *GoneError
			if !errors.As(err, &gone) || gone.ID != "a" || gone.Hint() == "" {
				t.Errorf("after it was dropped: %v", err)
			}
		case <-time.After(3 * goneLook * deadLook):
			t.Error("it waits for ever")
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*goneLook*deadLook, errors.New("enough"))
		defer cancel()
		if _, err := Await(ctx, a, "b", nil); err == nil || err.Error() != "enough" {
			t.Errorf("of one that is queued: %v", err)
		}
	})
}

// TestAnInboxThatChangedTwiceInOneTick: what was queued in place of something as
// long, while the file system's clock stood still, was taken for what was there.
func TestAnInboxThatChangedTwiceInOneTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testAnInboxThatChanged) // where time stands still
}

func testAnInboxThatChanged(t *testing.T) {
	a := newAgent(t)
	put := func(text string, at time.Time) {
		if err := errors.Join(os.WriteFile(a.Inbox, []byte(text), 0o600), os.Chtimes(a.Inbox, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	now, long := time.Now(), time.Now().Add(-time.Hour)
	put("one\n", now)
	look := LookInto(a)
	if put("two\n", now); look.Stamp.Still(a.Inbox) {
		t.Error("an inbox that has changed is taken for the same")
	}
	put("one\n", long)
	if look = LookInto(a); look.Err != nil || !look.Stamp.Still(a.Inbox) {
		t.Errorf("an inbox that nobody has touched is looked into again: %+v", look)
	}
	for _, file := range inbox.FlightFiles(a.Inbox) {
		if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if look.Stamp.Still(a.Inbox) {
			t.Errorf("%s is new, and not looked at", file)
		}
		if err := os.Remove(file); err != nil || !look.Stamp.Still(a.Inbox) {
			t.Errorf("%s is gone again, and looked at: %v", file, err)
		}
	}
}
