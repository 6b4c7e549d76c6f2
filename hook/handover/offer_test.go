package handover

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook/client"
	"heartbeat/hook/inbox"
	"heartbeat/internal/testbed"
)

// queue is an agent's, in a folder of its own.
type queue struct {
	t           *testing.T
	home, inbox string
}

func newQueue(t *testing.T) queue {
	t.Helper()
	home := filepath.Join(t.TempDir(), ".heartbeat")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return queue{t, home, filepath.Join(home, "inbox.jsonl")}
}

func (l queue) append(lines ...string) {
	l.t.Helper()
	if len(lines) == 0 {
		return
	}
	if err := os.WriteFile(l.inbox, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l queue) locked(f func(q *inbox.Held)) {
	l.t.Helper()
	q, err := inbox.Open(inbox.Place{Inbox: l.inbox, Home: l.home})
	if err != nil {
		l.t.Fatal(err)
	}
	defer q.Close()
	ctx, cancel := context.WithTimeout(context.Background(), testbed.Patience)
	defer cancel()
	held, err := q.Lock(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	defer held.Unlock()
	f(held)
}

// TestALongPromptWithoutItsFileIsNotHandedOver: it stays queued, as it was.
func TestALongPromptWithoutItsFileIsNotHandedOver(t *testing.T) {
	t.Parallel()
	l := newQueue(t)
	l.append(strings.Repeat("x", client.MostWhole+1))
	l.locked(func(h *inbox.Held) {
		e, err := h.Next()
		if err != nil {
			t.Fatal(err)
		}
		f, err := h.Offer(e, inbox.Offering{Via: inbox.ViaStop, File: filepath.Join(l.home, "..", "gone", "prompt-1.txt")})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := wording(h, f, e.Prompt); err == nil || text != "" {
			t.Errorf("it is handed over as %.100q, %v", text, err)
		}
		if f, err := h.InFlight(); f != nil || err != nil {
			t.Errorf("in flight %+v, %v", f, err)
		}
	})
}

// TestWhetherALongPromptCanBeHandedOverIsKnownBefore a session is paid for: of what it would
// begin with, in flight or queued, and where the client would cut that.
func TestWhetherALongPromptCanBeHandedOverIsKnownBefore(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	for name, c := range map[string]struct {
		lines []string
		taken int
		does  bool
	}{
		"the next one":            {[]string{long, "one"}, 0, true},
		"one behind it":           {[]string{"one", long}, 0, false},
		"in flight":               {[]string{"one", long}, 2, true},
		"short":                   {[]string{"one", "two"}, 1, false},
		"none":                    {nil, 0, false},
		"the argument carries it": {[]string{strings.Repeat("x", client.MostWhole+1)}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newQueue(t)
			l.append(c.lines...)
			l.locked(func(h *inbox.Held) {
				for i := range c.taken {
					e, err := h.Next()
					if err == nil {
						_, err = h.Offer(e, inbox.Offering{Via: inbox.ViaStop})
					}
					if err == nil && i < c.taken-1 {
						_, err = h.Acknowledge(inbox.Acknowledgement{})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			})
			place := inbox.Place{Inbox: l.inbox, Home: l.home}
			if err := Unhandable(place); err != nil {
				t.Errorf("with room: %v", err)
			}
			if err := os.MkdirAll(filepath.Join(l.home, longTry, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := Unhandable(place); (err != nil) != c.does {
				t.Errorf("without: %v", err)
			}
			if err := os.RemoveAll(filepath.Join(l.home, longTry)); err != nil {
				t.Fatal(err)
			}
			if err := Unhandable(place); err != nil {
				t.Errorf("with room again: %v", err)
			}
		})
	}
}

// TestATrialNeedsTheRoomOfAHandOver: on a disk with room for the text alone, six sessions
// were paid for that could record what they took, and not write the file.
func TestATrialNeedsTheRoomOfAHandOver(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\u2028\"<x>", 20<<10)
	l := newQueue(t)
	l.append(long)
	l.locked(func(h *inbox.Held) {
		e, err := h.Next()
		if err == nil {
			_, err = h.Offer(e, inbox.Offering{Via: inbox.ViaStop})
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	record, err := os.Stat(filepath.Join(l.home, ".in-flight"))
	if err != nil {
		t.Fatal(err)
	}
	if what, err := trial(long); err != nil || int64(len(what)) < int64(len(long))+2*record.Size() {
		t.Errorf("the trial has %d bytes, the text %d, its record %d; %v", len(what), len(long), record.Size(), err)
	}
}
