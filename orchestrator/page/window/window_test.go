package window

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/session"
	"heartbeat/ptyrun/attach"
)

// speaker is an agent whose session has said something.
func speaker(t *testing.T, state, name string, texts ...string) *config.Agent {
	t.Helper()
	dir := t.TempDir()
	a := &config.Agent{Name: name, Dir: dir, Home: filepath.Join(dir, ".heartbeat"), Env: map[string]string{"CLAUDE_CONFIG_DIR": filepath.Join(dir, "client")}}
	err := errors.Join(os.MkdirAll(a.Home, 0o700), os.MkdirAll(filepath.Join(dir, "client/projects/x"), 0o700),
		session.Talk{Session: "s"}.Note(state, a.Home))
	if err != nil {
		t.Fatal(err)
	}
	says(t, a, texts...)
	return a
}

func says(t *testing.T, a *config.Agent, texts ...string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(a.Dir, "client/projects/x/s.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if _, err := fmt.Fprintf(f, `{"type":"assistant","message":{"content":[{"type":"text","text":%q}]}}`+"\n", text); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSaid: the newest lines, each with the same id for as long as it is shown, and of a
// large conversation the end alone.
func TestSaid(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	a := speaker(t, state, "a", "first", strings.Repeat("x", mostText+1))
	w := New(state, nil)
	read := func() []Line {
		t.Helper()
		lines, err := w.Said(a)
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	lines := read()
	if len(lines) != 2 || lines[0].Text != "first" || !lines[1].Cut || len(lines[1].Text) != mostText {
		t.Fatalf("%d lines: %.200v", len(lines), lines)
	}
	says(t, a, "third")
	if next := read(); len(next) != 3 || next[0].ID != lines[0].ID || next[2].Text != "third" || next[2].ID == next[1].ID {
		t.Errorf("%.300v", next)
	}
	for i := range 5 * mostLines {
		says(t, a, fmt.Sprint("more ", i))
	}
	if next := read(); len(next) != mostLines || next[mostLines-1].Text != "more 299" {
		t.Errorf("%d lines, %.300v", len(next), next[len(next)-1])
	}
	b := speaker(t, state, "b", strings.Repeat("old ", mostTail/4), "new")
	if lines, err := w.Said(b); err != nil || len(lines) != 1 || lines[0].Text != "new" {
		t.Errorf("of a large one: %.200v, %v", lines, err)
	}
	none := &config.Agent{Name: "none", Dir: t.TempDir(), Home: filepath.Join(t.TempDir(), ".heartbeat")}
	if lines, err := w.Said(none); err != nil || len(lines) != 0 {
		t.Errorf("without a session: %v, %v", lines, err)
	}
}

// TestConversationsAreClosed: those that nobody has asked for, and the oldest of too many.
func TestConversationsAreClosed(t *testing.T) {
	t.Parallel()
	state, all := t.TempDir(), make([]*config.Agent, mostTalks+10)
	for i := range all {
		all[i] = speaker(t, state, fmt.Sprint("a", i), "word")
	}
	synctest.Test(t, func(t *testing.T) {
		w := New(state, nil)
		for _, a := range all {
			time.Sleep(time.Millisecond)
			if lines, err := w.Said(a); err != nil || len(lines) != 1 {
				t.Fatal(lines, err)
			}
		}
		if len(w.talks) != mostTalks {
			t.Errorf("%d conversations are open", len(w.talks))
		}
		time.Sleep(unasked)
		_, _ = w.Said(all[0])
		if len(w.talks) != 1 {
			t.Errorf("%d conversations are open", len(w.talks))
		}
	})
}

// TestScreensAreLeft when nobody has asked for a while; there are so many at most, and one
// visit for all who look at the same.
func TestScreensAreLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var joined, here atomic.Int64
		w := New("", func(ctx context.Context, agent string) (*attach.Viewer, error) {
			if agent == "none" {
				return nil, attach.ErrNobody
			}
			joined.Add(1)
			here.Add(1)
			<-ctx.Done()
			here.Add(-1)
			return nil, ctx.Err()
		})
		if _, err := w.Screen(t.Context(), "none"); !errors.Is(err, attach.ErrNobody) {
			t.Errorf("without a session: %v", err)
		}
		look := func(agent string) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond) // there is no picture
			defer cancel()
			_, err := w.Screen(ctx, agent)
			return err
		}
		for range 30 {
			for i := range mostPanes {
				if err := look(fmt.Sprint("a", i)); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
			time.Sleep(time.Second)
		}
		if joined.Load() != mostPanes || here.Load() != mostPanes {
			t.Errorf("%d visits, %d now", joined.Load(), here.Load())
		}
		if err := look("one more"); !errors.Is(err, errMany) {
			t.Errorf("one more: %v", err)
		}
		time.Sleep(2 * unasked)
		synctest.Wait()
		if here.Load() != 0 || len(w.panes) != 0 {
			t.Errorf("%d visits go on, %d are kept", here.Load(), len(w.panes))
		}
	})
}
