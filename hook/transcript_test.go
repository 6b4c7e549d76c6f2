package hook

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/inbox"
)

// recorded is a transcript as 2.1.329 wrote it: a kick-off with a tag, two
// Stop hooks that both handed over by exit 2, a tool, and in another
// conversation a kick-off, three hand-overs by exit 2 and one by JSON.
const recorded = "testdata/transcript-2.1.329.jsonl"

func TestLookFindsWhatTheClientWrote(t *testing.T) {
	t.Parallel()
	handed := func(n int) string { return fmt.Sprintf("entry number %d <&> \"q\" \\ é\nline two @x /clear", n) }
	size := TranscriptSize(recorded)
	for _, c := range []struct {
		name string
		h    handover
		want bool
	}{
		{"kick-off", handover{via: inbox.ViaKickoff, text: "first entry"}, true},
		{"kick-off with a tag", handover{via: inbox.ViaKickoff, text: "first entry <system-reminder>"}, true},
		{"another kick-off", handover{via: inbox.ViaKickoff, text: "first"}, false},
		{"exit 2", handover{via: inbox.ViaStop, text: handed(3)}, true},
		{"exit 2, tags escaped, blank lines kept", handover{via: inbox.ViaStop, text: "FOREIGN <system-reminder>x</system-reminder>\n\n"}, true},
		{"JSON", handover{via: inbox.ViaStop, text: "json entry <b> \n two"}, true},
		{"the end of another entry", handover{via: inbox.ViaStop, text: "line two @x /clear"}, false},
		{"the begin of another entry", handover{via: inbox.ViaStop, text: "entry number 3"}, false},
		{"a tool's result", handover{via: inbox.ViaStop, text: "1\nreply 5"}, false},
		{"the assistant's words", handover{via: inbox.ViaStop, text: "reply 6"}, false},
		{"a kick-off is no hand-over", handover{via: inbox.ViaStop, text: "first entry"}, false},
		{"before the offset", handover{via: inbox.ViaStop, text: handed(3), offset: size}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.h.path = recorded
			if got, _ := c.h.look(); (got == inbox.Seen) != c.want || got == inbox.Unknown {
				t.Errorf("found: %v, want %v", got, c.want)
			}
		})
	}
}

// feedbackLine begins the user message in which 2.1.329 tells the model what a
// Stop hook has said.
const feedbackLine = "Stop hook feedback:\n"

func userLine(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return `{"type":"user","message":{"role":"user","content":[{"type":"text","text":` + string(b) + `}]}}` + "\n"
}

func TestLookSurvivesAnyTranscript(t *testing.T) {
	t.Parallel()
	wanted := userLine(feedbackLine + "[x hook]: go")
	for name, c := range map[string]struct {
		content string
		want    bool
	}{
		"empty":               {"", false},
		"no newline yet":      {strings.TrimSpace(wanted), false},
		"after garbage":       {"{\"user\"\nnull\n[\"user\"]\n\x00\xff\n" + wanted, true},
		"after a huge line":   {strings.Repeat("x", maxTranscriptLine+100) + "\n" + wanted, true},
		"in a huge line":      {userLine(feedbackLine + "[x]: go" + strings.Repeat(" ", maxTranscriptLine)), false},
		"of a subagent":       {strings.Replace(wanted, "{", `{"isSidechain":true,`, 1), false},
		"command with a line": {userLine(feedbackLine + "[x\ny]: go"), false},
		"no feedback":         {userLine("[x]: go"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "t.jsonl")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, next := handover{path: path, via: inbox.ViaStop, text: "go"}.look()
			if (got == inbox.Seen) != c.want || got == inbox.Unknown || next > int64(len(c.content)) {
				t.Errorf("found: %v, next look at %d; want %v", got, next, c.want)
			}
		})
	}
}

func TestLookOpensNothingButAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.Abs(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", fifo, link, dir, filepath.Join(dir, "none")} {
		if got, _ := (handover{path: path, via: inbox.ViaKickoff, text: "first entry"}).look(); got != inbox.Unknown {
			t.Errorf("%q was read", path)
		}
	}
}

// In 2 of 4 looks at a Stop the client 2.1.329 had not yet written what was handed
// over before; it was there within 2 s.
func TestWaitForWhatIsWrittenBehind(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	line := userLine(feedbackLine + "[x]: go")
	if err := os.WriteFile(path, []byte(line[:20]), 0o600); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(100*time.Millisecond, func() {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.WriteString(line[20:])
			f.Close()
		}
		if err != nil {
			t.Error(err)
		}
	})
	defer timer.Stop()
	h := handover{path: path, via: inbox.ViaStop, text: "go"}
	if h.wait(10*time.Second) != inbox.Seen {
		t.Error("not found")
	}
	h.text = "other"
	begin := time.Now()
	if h.wait(60*time.Millisecond) == inbox.Seen || time.Since(begin) > 5*time.Second {
		t.Errorf("found, or gave up late: %s", time.Since(begin))
	}
}

// Of two equal entries in a row, the record of the first can be written after
// the second was offered. It proved the second, which had not arrived.
func TestTheRecordOfAnEqualEntryBeforeProvesNothing(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]func(l *lab, first string){
		"written while it is waited for": func(l *lab, first string) {
			timer := time.AfterFunc(200*time.Millisecond, func() { appendFile(l.t, l.transcript, first) })
			l.t.Cleanup(func() { timer.Stop() })
			l.handsOver("same", fields{"stop_hook_active": true})
		},
		"written much later": func(l *lab, first string) {
			l.handsOver("same", fields{"stop_hook_active": true})
			appendFile(l.t, l.transcript, first)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", "same", "same"})
			appendFile(t, l.transcript, userLine("something else"))
			l.handsOver("same", nil)
			written(l, userLine(feedbackLine+"[x hook]: same"))
			if f := l.flight(); f == nil || f.Attempt != 1 || Arrived(*f) == inbox.Seen {
				t.Fatalf("in flight %+v, %v", f, Arrived(*f))
			}
			l.handsOver("same\n\n[heartbeat: attempt 2 of this entry; an earlier one was interrupted. Check what is already done before acting.]",
				fields{"prompt_id": "P2"})
			if n := len(l.replies()); n != 2 {
				t.Errorf("%d replies", n)
			}
		})
	}
}
