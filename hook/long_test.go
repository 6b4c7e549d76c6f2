package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
)

// fileOf returns the content of the file that a hand-over names, or fails.
func (l *lab) fileOf(text string) string {
	l.t.Helper()
	f := l.flight()
	if f == nil || f.File == "" || !strings.Contains(text, `"`+f.File+`"`) || len(text) > client.MostWhole {
		l.t.Fatalf("%.300q names no file; in flight %+v", text, f)
	}
	info, err := os.Lstat(f.File)
	if err != nil || info.Mode() != 0o600 || filepath.Dir(f.File) != l.home {
		l.t.Fatalf("the file: %v, %v", info, err)
	}
	data, err := os.ReadFile(f.File)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(data)
}

// TestWhatTheClientWouldCutIsHandedOverByAFile: since 2.1.332 the model did not get the
// middle of a long prompt.
func TestWhatTheClientWouldCutIsHandedOverByAFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", client.MostWhole/10)
	for name, tt := range map[string]struct {
		version, prompt string
		byFile          bool
	}{
		"just fits":              {"2.1.332", long, false},
		"one character more":     {"2.1.332", long + "x", true},
		"a later version":        {"2.2.0", long + "x", true},
		"an earlier version":     {"2.1.331", long + "x", false},
		"a version that is none": {"next", long + "x", true},
		"no version":             {"", long + "x", true},
		"many bytes":             {"2.1.332", strings.Repeat("ü", client.MostWhole), false},
		"two units each":         {"2.1.332", strings.Repeat("🙂", client.MostWhole/2+1), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", tt.prompt, "three"})
			clienttest.Append(t, l.transcript, `{"type":"user","version":"2.1.100"}`+"\n"+`{"type":"user","version":"`+tt.version+`"}`+"\n")
			if tt.version == "" {
				if err := os.Remove(l.transcript); err != nil {
					t.Fatal(err)
				}
			}
			if !tt.byFile {
				l.handsOver(tt.prompt, nil)
				return
			}
			r := l.event(client.Stop, nil)
			if got := l.fileOf(r.stderr); r.status != 2 || got != tt.prompt {
				t.Fatalf("status %d, the file has %d bytes, want %d", r.status, len(got), len(tt.prompt))
			}
			l.handsOver("three", fields{"stop_hook_active": true})
			if n := len(l.replies()); n != 2 {
				t.Errorf("%d are done, want 2", n)
			}
		})
	}
}

// TestALongPromptIsProvenByWhatNamesIt, and a repeat of it says in the file that it is
// one.
func TestALongPromptIsProvenByWhatNamesIt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", client.MostWhole+1)
	l := begin(t, []string{"one", long})
	l.soon()
	clienttest.Append(t, l.transcript, `{"type":"user","version":"2.1.332"}`+"\n")
	first := l.event(client.Stop, nil)
	l.fileOf(first.stderr)
	again := l.event(client.Stop, fields{"prompt_id": "P2"})
	if got, mark := l.fileOf(again.stderr), long+"\n\n[heartbeat: attempt 2 of this entry;"; !strings.HasPrefix(got, mark) || again.stderr == first.stderr {
		t.Errorf("the second file ends with %q", got[len(got)-200:])
	}
	clienttest.Append(t, l.transcript, clienttest.UserLine(clienttest.Feedback+"[x hook]: "+again.stderr))
	if f := l.flight(); handover.Arrived(*f) != inbox.Seen {
		t.Errorf("it has not arrived: %v", handover.Arrived(*f))
	}
}

// TestALongPromptWithoutItsFileIsNotHandedOver: it stays queued, as it was.
func TestALongPromptWithoutItsFileIsNotHandedOver(t *testing.T) {
	t.Parallel()
	l := newLab(t)
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

// TestOldFilesOfLongPromptsGo, whatever became of those.
func TestOldFilesOfLongPromptsGo(t *testing.T) {
	t.Parallel()
	var lines []string
	for range keptLong + 3 {
		lines = append(lines, strings.Repeat("x", client.MostWhole+1))
	}
	l := begin(t, append([]string{"one"}, lines...))
	l.soon()
	theirs := []string{"prompt-1.md", "prompt-a.txt", "prompt-x.txt", "prompt-20260101T000000.5Z.txt", "20260101T000000.000000000Z.txt"}
	for _, name := range theirs {
		if err := os.WriteFile(filepath.Join(l.home, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ahead := filepath.Join(l.home, "prompt-29990101T000000.000000000Z.txt") // of a clock that was wrong
	if err := os.WriteFile(ahead, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		l.fileOf(l.event(client.Stop, fields{"stop_hook_active": i > 0}).stderr)
	}
	for _, name := range theirs {
		if _, err := os.Stat(filepath.Join(l.home, name)); err != nil {
			t.Errorf("a file of somebody's is gone: %v", err)
		}
	}
	if all, err := filepath.Glob(filepath.Join(l.home, longPrefix+"2*.txt")); err != nil || len(all) != keptLong+1 {
		t.Errorf("%d files are kept, %v", len(all), err)
	}
}

// TestTheHandWiredFormNamesAFile, too: with a payload, and without one, where nobody
// knows the client.
func TestTheHandWiredFormNamesAFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", client.MostWhole+1)
	o := newOld(t, long+"\n")
	r := o.stop("--deliver", "stderr")
	if got := o.fileOf(r.stderr); r.status != 2 || got != long {
		t.Errorf("status %d, the file has %d bytes", r.status, len(got))
	}
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
			l := newLab(t)
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

// TestAnOldFileThatStaysKeepsNothingBack: a folder of somebody's with a name like ours.
func TestAnOldFileThatStaysKeepsNothingBack(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", client.MostWhole+1)
	l := begin(t, []string{"one", long})
	for i := range keptLong + 1 {
		if err := os.MkdirAll(filepath.Join(l.home, fmt.Sprintf("prompt-2026010%dT000000.000000000Z.txt", i+1), "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if r := l.event(client.Stop, nil); r.status != 2 || l.fileOf(r.stderr) != long {
		t.Errorf("it is not handed over: status %d; %s", r.status, l.log())
	}
}

// TestATrialNeedsTheRoomOfAHandOver: on a disk with room for the text alone, six sessions
// were paid for that could record what they took, and not write the file.
func TestATrialNeedsTheRoomOfAHandOver(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\u2028\"<x>", 20<<10)
	l := newLab(t)
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
