package handover

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/client/clienttest"
	"heartbeat/internal/testbed"
	"heartbeat/queue"
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
		h    Proof
		want bool
	}{
		{"kick-off", Proof{Asked: true, Text: KickoffPrompt("first entry")}, true},
		{"kick-off with a tag", Proof{Asked: true, Text: KickoffPrompt("first entry <system-reminder>")}, true},
		{"another kick-off", Proof{Asked: true, Text: KickoffPrompt("first")}, false},
		{"exit 2", Proof{Text: handed(3)}, true},
		{"exit 2, tags escaped, blank lines kept", Proof{Text: "FOREIGN <system-reminder>x</system-reminder>\n\n"}, true},
		{"JSON", Proof{Text: "json entry <b> \n two"}, true},
		{"the end of another entry", Proof{Text: "line two @x /clear"}, false},
		{"the begin of another entry", Proof{Text: "entry number 3"}, false},
		{"a tool's result", Proof{Text: "1\nreply 5"}, false},
		{"the assistant's words", Proof{Text: "reply 6"}, false},
		{"a kick-off is no hand-over", Proof{Text: "first entry"}, false},
		{"before the offset", Proof{Text: handed(3), Offset: size}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.h.Path = recorded
			if got, _ := c.h.look(); (got == queue.Seen) != c.want || got == queue.Unknown {
				t.Errorf("found: %v, want %v", got, c.want)
			}
		})
	}
}

// TestAnIterationSaysWhatIsMissing, and its record alone proves that it arrived.
func TestAnIterationSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	f := given("mend it", queue.ViaStop)
	f.Iteration = 1
	if got := PromptFor(f); got != "mend it" {
		t.Errorf("the first one: %q", got)
	}
	f.Iteration, f.Output = 2, "--- FAIL: TestA <b>\n\tx"
	text := "[heartbeat: iteration 2 of this entry. It is not proven to be done. What its check said last:]\n\n" +
		f.Output + "\n\n[heartbeat: the entry:]\n\nmend it"
	if got := PromptFor(f); got != text {
		t.Errorf("%q", got)
	}
	f.Handover.Transcript = clienttest.Transcript(t, clienttest.UserLine(clienttest.Feedback+"[x hook]: "+text))
	if got := Arrived(f); got != queue.Seen {
		t.Errorf("by a Stop hook: %v", got)
	}
	other := *f
	other.Iteration = 3
	if got := Arrived(&other); got != queue.Unseen {
		t.Errorf("another iteration: %v", got)
	}
	f.Handover.Via, f.Most, f.Output, f.Attempt = queue.ViaKickoff, 10, "", 2
	text = Of(f).Text
	if !strings.HasPrefix(text, KickoffPrompt("[heartbeat: iteration 2 of 10 of this entry. It is not proven to be done, and its check said nothing.]")) ||
		!strings.Contains(text, "mend it\n\n[heartbeat: attempt 2 of this entry;") {
		t.Errorf("%q", text)
	}
	f.Handover.Transcript = clienttest.Transcript(t, clienttest.UserLine(text))
	if got := Arrived(f); got != queue.Seen {
		t.Errorf("at the start: %v", got)
	}
}

func TestLookSurvivesAnyTranscript(t *testing.T) {
	t.Parallel()
	wanted := clienttest.UserLine(clienttest.Feedback + "[x hook]: go")
	for name, c := range map[string]struct {
		content string
		want    bool
	}{
		"empty":               {"", false},
		"no newline yet":      {strings.TrimSpace(wanted), false},
		"after garbage":       {"{\"user\"\nnull\n[\"user\"]\n\x00\xff\n" + wanted, true},
		"after a huge line":   {strings.Repeat("x", MaxLine+100) + "\n" + wanted, true},
		"in a huge line":      {clienttest.UserLine(clienttest.Feedback + "[x]: go" + strings.Repeat(" ", MaxLine)), false},
		"of a subagent":       {strings.Replace(wanted, "{", `{"isSidechain":true,`, 1), false},
		"command with a line": {clienttest.UserLine(clienttest.Feedback + "[x\ny]: go"), false},
		"no feedback":         {clienttest.UserLine("[x]: go"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "t.jsonl")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, next := Proof{Path: path, Text: "go"}.look()
			if (got == queue.Seen) != c.want || got == queue.Unknown || next > int64(len(c.content)) {
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
		if got, _ := (Proof{Path: path, Asked: true, Text: KickoffPrompt("first entry")}).look(); got != queue.Unknown {
			t.Errorf("%q was read", path)
		}
	}
}

// In 2 of 4 looks at a Stop the client 2.1.329 had not yet written what was handed
// over before; it was there within 2 s.
func TestWaitForWhatIsWrittenBehind(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	line := clienttest.UserLine(clienttest.Feedback + "[x]: go")
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
	h := Proof{Path: path, Text: "go"}
	if h.Wait(testbed.Patience) != queue.Seen {
		t.Error("not found")
	}
	h.Text = "other"
	begin := time.Now()
	if h.Wait(60*time.Millisecond) == queue.Seen || time.Since(begin) > testbed.Patience {
		t.Errorf("found, or gave up late: %s", time.Since(begin))
	}
}

// given is a prompt's first attempt.
func given(prompt string, via queue.Via) *queue.Given {
	return &queue.Given{
		Entry: queue.Entry{Delivery: "d", Tries: queue.Tries{Attempt: 1}, Handover: queue.Handover{Via: via}},
		Text:  queue.Text{Prompt: prompt},
	}
}
