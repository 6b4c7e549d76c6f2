package once

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// TestAnOrderIsCarriedOutOnce: tapped twice at once, again later, after a restart; by
// others and for other things it is another order.
func TestAnOrderIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	kept := storetest.New(t, t.TempDir())
	b, key := Open(kept, nil), Key(time.Now())
	var did atomic.Int32
	do := func() (string, error) { did.Add(1); return "done", nil }
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if r, _, err := b.Do(t.Context(), "t", key, "pause a", do); err != nil || r.Answer != "done" || !r.Done {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	all.Wait()
	b = Open(kept, nil)
	if r, again, err := b.Do(t.Context(), "t", key, "pause a", do); err != nil || !again || r.Answer != "done" || did.Load() != 1 {
		t.Errorf("%+v, %v, %v; done %d times", r, again, err, did.Load())
	}
	for _, other := range [][3]string{{"u", key, "pause a"}, {"t", key, "pause b"}, {"t", Key(time.Now()), "pause a"}} {
		if _, again, err := b.Do(t.Context(), other[0], other[1], other[2], do); again || err != nil {
			t.Errorf("%s: %v, %v", other, again, err)
		}
	}
	if did.Load() != 4 {
		t.Errorf("done %d times", did.Load())
	}
}

func TestWhatFailedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	b, key := Open(storetest.New(t, t.TempDir()), nil), Key(time.Now())
	for i := range 2 {
		r, again, err := b.Do(t.Context(), "t", key, "x", func() (string, error) { return "", errors.New("no such agent") })
		if err != nil || again != (i == 1) || !r.Failed || r.Answer != "no such agent" {
			t.Errorf("%+v, %v, %v", r, again, err)
		}
	}
}

// TestAnOrderThatPanics leaves the book as one that the run did not survive.
func TestAnOrderThatPanics(t *testing.T) {
	t.Parallel()
	b, key := Open(storetest.New(t, t.TempDir()), nil), Key(time.Now())
	func() {
		defer func() { _ = recover() }()
		_, _, _ = b.Do(t.Context(), "t", key, "x", func() (string, error) { panic("a mistake of ours") })
	}()
	if _, again, err := b.Do(t.Context(), "t", key, "x", nil); !again || !errors.Is(err, ErrUnsure) {
		t.Errorf("%v, %v", again, err)
	}
	if r, _, err := b.Do(t.Context(), "t", key, "y", func() (string, error) { return "done", nil }); err != nil || r.Answer != "done" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestAnOrderThatTheRunDidNotSurvive is not carried out again: nobody knows how far it
// came.
func TestAnOrderThatTheRunDidNotSurvive(t *testing.T) {
	t.Parallel()
	kept := storetest.New(t, t.TempDir())
	key := Key(time.Now())
	b := Open(kept, nil)
	_, _, _ = b.Do(t.Context(), "t", key, "x", func() (string, error) {
		_, _, err := Open(kept, nil).Do(t.Context(), "t", key, "x", func() (string, error) { t.Error("done twice"); return "", nil })
		if !errors.Is(err, ErrUnsure) {
			t.Error(err)
		}
		return "", nil
	})
}

func TestOrdersThatAreNotCarriedOut(t *testing.T) {
	t.Parallel()
	now := time.Now()
	kept := storetest.New(t, t.TempDir())
	b := Open(kept, func() time.Time { return now })
	never := func() (string, error) { t.Error("done"); return "", nil }
	for _, key := range []string{"", "x", "-", Key(now.Add(-25 * time.Hour)), Key(now.Add(25 * time.Hour)), Key(now)[:10]} {
		if _, _, err := b.Do(t.Context(), "t", key, "x", never); !errors.Is(err, ErrOld) {
			t.Errorf("%q: %v", key, err)
		}
	}
	if err := os.Remove(filepath.Join(kept.Dir(), store.Name)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Do(t.Context(), "t", Key(now), "x", never); err == nil {
		t.Error("done, though it cannot be written down")
	}
}

// TestTheBookStaysSmall: what is forgotten cannot be ordered by its old form any more.
func TestTheBookStaysSmall(t *testing.T) {
	t.Parallel()
	now := time.Now()
	kept := storetest.New(t, t.TempDir())
	b := Open(kept, func() time.Time { return now })
	err := kept.Write(t.Context(), func(c *store.Change) error {
		for range most {
			if _, err := c.Do(`INSERT INTO orders (token, form, what, at, done, failed, answer) VALUES ('t', $1, 'y', $2, 1, 0, '')`, Key(now), now.UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	do := func() (string, error) { return "", nil }
	if _, _, err := b.Do(t.Context(), "t", Key(now), "x", do); !errors.Is(err, ErrMany) {
		t.Error(err)
	}
	now = now.Add(remembered + time.Second)
	if _, _, err := b.Do(t.Context(), "t", Key(now), "x", do); err != nil {
		t.Error(err)
	}
	known := 0
	if err := kept.Read(t.Context(), func(v *store.View) error { _, err := v.One(`SELECT COUNT(*) FROM orders`, nil, &known); return err }); err != nil || known != 1 {
		t.Errorf("%v, %d are known", err, known)
	}
}
