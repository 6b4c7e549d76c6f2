package hook

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/handover"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// keptFiles is how many files of long prompts are kept beside the newest.
const keptFiles = 4

// fileOf returns the content of the file that a hand-over names, or fails.
func (l *lab) fileOf(text string) string {
	l.t.Helper()
	f := l.flight()
	if f == nil || f.Handover.File == "" || !strings.Contains(text, `"`+f.Handover.File+`"`) || len(text) > client.MostWhole {
		l.t.Fatalf("%.300q names no file; in flight %+v", text, f)
	}
	info, err := os.Lstat(f.Handover.File)
	if err != nil || info.Mode() != 0o600 || filepath.Dir(f.Handover.File) != l.home {
		l.t.Fatalf("the file: %v, %v", info, err)
	}
	data, err := os.ReadFile(f.Handover.File)
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
	clienttest.Append(t, l.transcript, `{"type":"user","version":"2.1.332"}`+"\n")
	first := l.event(client.Stop, nil)
	l.fileOf(first.stderr)
	again := l.event(client.Stop, fields{"prompt_id": "P2"})
	if got, mark := l.fileOf(again.stderr), long+"\n\n[heartbeat: attempt 2 of this entry;"; !strings.HasPrefix(got, mark) || again.stderr == first.stderr {
		t.Errorf("the second file ends with %q", got[len(got)-200:])
	}
	clienttest.Append(t, l.transcript, clienttest.UserLine(clienttest.Feedback+"[x hook]: "+again.stderr))
	if f := l.flight(); handover.Arrived(&f.Given) != queue.Unseen {
		t.Errorf("nothing has read it, and it has arrived: %v", handover.Arrived(&f.Given))
	}
	clienttest.Append(t, l.transcript, tried("Read", again.stderr, false))
	if f := l.flight(); handover.Arrived(&f.Given) != queue.Seen {
		t.Errorf("it has not arrived: %v", handover.Arrived(&f.Given))
	}
}

// tried is a tool that was called with a text, and its result.
func tried(tool, with string, fails bool) string {
	line := func(role, block string) string {
		return `{"type":"` + role + `","message":{"role":"` + role + `","content":[` + block + "]}}\n"
	}
	quoted, _ := json.Marshal(with)
	return line("assistant", `{"type":"tool_use","id":"T-`+tool+`","name":"`+tool+`","input":{"what":`+string(quoted)+`}}`) +
		line("user", fmt.Sprintf(`{"type":"tool_result","tool_use_id":"T-%s","content":"…","is_error":%t}`, tool, fails))
}

// TestALongPromptThatNobodyReadIsNotDone: a session that may not read the file ended its turn
// as any other, and the prompt counted as done. Now its session ends, and another one begins
// with it; whatever else the session has called was not for it.
func TestALongPromptThatNobodyReadIsNotDone(t *testing.T) {
	t.Parallel()
	const other = "ls -l"
	for name, tt := range map[string]struct {
		lines func(file string) string // of the transcript, after the hand-over
		done  bool
	}{
		"read":                    {func(f string) string { return tried("Read", f, false) }, true},
		"read by a shell":         {func(f string) string { return tried("Bash", "cat .heartbeat/"+filepath.Base(f), false) }, true},
		"read by a subagent":      {func(f string) string { return tried("Agent", "read "+f, false) }, true},
		"refused, then otherwise": {func(f string) string { return tried("Read", f, true) + tried("Bash", f, false) }, true},
		"refused":                 {func(f string) string { return tried("Read", f, true) }, false},
		"refused, and worked":     {func(f string) string { return tried("Read", f, true) + tried("Bash", other, false) }, false},
		"something else":          {func(string) string { return tried("Bash", other, false) }, false},
		"nothing":                 {func(string) string { return "" }, false},
		"named in its words":      {func(f string) string { return clienttest.UserLine("I see " + f) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", strings.Repeat("x", client.MostWhole+1), "three"})
			clienttest.Append(t, l.transcript, `{"type":"user","version":"2.1.332"}`+"\n")
			handed := l.event(client.Stop, nil).stderr
			l.fileOf(handed)
			file := l.flight().Handover.File
			clienttest.Append(t, l.transcript, clienttest.UserLine(clienttest.Feedback+"[x hook]: "+handed)+tt.lines(file))
			l.quietly(client.PreToolUse, fields{"tool_name": "Bash"})
			if tt.done {
				l.handsOver("three", fields{"stop_hook_active": true})
				return
			}
			l.quietly(client.Stop, fields{"stop_hook_active": true})
			r, f := l.record(), l.flight()
			if f == nil || !f.Unread || r.Ruling == nil || r.Ruling.Why != EndReleased || !strings.Contains(r.Ruling.Detail, "has not read the file") {
				t.Fatalf("in flight %.500q, ruling %+v", fmt.Sprint(f), r.Ruling)
			}
			begins := handover.FitsArgument(&f.Given)
			done, again := l.recovers(queue.Interruption{Policy: queue.DeadLetterOrphan, MaxAttempts: 1, Counts: true, Begins: begins})
			if done != queue.Requeued || again.Repeats != 0 || !again.Unread {
				t.Errorf("%s, after %d interruptions: %.300q", done, again.Repeats, fmt.Sprint(again))
			}
		})
	}
}

// TestALongPromptThatNobodyCanReadIsGivenUpAtOnce: what no command line carries went five
// times by a file that no session read.
func TestALongPromptThatNobodyCanReadIsGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prompt string
		begins func(*queue.Given) bool
	}{
		"longer than an argument": {strings.Repeat("x", 120_000), handover.FitsArgument},
		"changed by the client":   {strings.Repeat("x", client.MostWhole) + "\u200b", handover.FitsArgument},
		"a kickoff of one's own":  {strings.Repeat("x", client.MostWhole+1), func(*queue.Given) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", tt.prompt, "three"})
			l.fileOf(l.unread())
			i := queue.Interruption{Policy: queue.RetryOrphan, Counts: true, Begins: tt.begins(&l.flight().Given), Cause: "released"}
			done, dead := l.recovers(i)
			if done != queue.DeadLettered || dead.Reason != queue.Unread || dead.Cause != "released" {
				t.Errorf("%s: %.300q", done, fmt.Sprint(dead))
			}
		})
	}
}

// unread hands over the next entry by a file, and lets the session end its turn without
// reading that. It returns the words of the hand-over.
func (l *lab) unread() string {
	l.t.Helper()
	clienttest.Append(l.t, l.transcript, `{"type":"user","version":"2.1.332"}`+"\n")
	handed := l.event(client.Stop, nil).stderr
	clienttest.Append(l.t, l.transcript, clienttest.UserLine(clienttest.Feedback+"[x hook]: "+handed))
	l.quietly(client.Stop, fields{"stop_hook_active": true})
	return handed
}

// TestWhatNobodyHasReadBeginsASession: not the one that has done something else first, an
// urgent prompt for example, nor is it handed over there by a file again.
func TestWhatNobodyHasReadBeginsASession(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", client.MostWhole+1)
	l := begin(t, []string{"one", long})
	l.unread()
	if _, first := l.recovers(queue.Interruption{Counts: true, Begins: true}); first.State != queue.Queued || !first.Unread {
		t.Fatalf("%.300q", fmt.Sprint(first))
	}
	// A launch that fails does not forget it, nor a session that is interrupted.
	offer := wire.Request{Steps: []wire.Step{{Do: wire.Offer, To: queue.Handover{Via: queue.ViaKickoff, Session: "S2"}}}}
	if a := l.queue.Carry("S2", offer); a.Entry == nil || !a.Entry.Unread || a.Entry.IsRepeat() {
		t.Errorf("offered: %.300q", fmt.Sprint(a.Entry))
	}
	if err := l.queue.Change(l.flight().Delivery, queue.Entry.Withdraw); err != nil {
		t.Fatal(err)
	}
	l.queue.Carry("S2", offer)
	if _, first := l.recovers(queue.Interruption{Policy: queue.RetryOrphan, Counts: true, Begins: true}); first.State != queue.Queued || !first.Unread {
		t.Errorf("after another session: %.300q", fmt.Sprint(first))
	}
	l.change(func(r *Record) { r.Phase, r.Ruling, r.Work, r.Acknowledged = Turn, nil, nil, 1 })
	l.quietly(client.Stop, nil)
	if r, f := l.record(), l.flight(); f != nil || r.Phase != Ending || r.Ruling == nil || r.Ruling.Why != EndReleased {
		t.Errorf("in flight %.300q, phase %s, ruling %+v", fmt.Sprint(f), r.Phase, r.Ruling)
	}
}

// TestOldFilesOfLongPromptsGo, whatever became of those.
func TestOldFilesOfLongPromptsGo(t *testing.T) {
	t.Parallel()
	var lines []string
	for range keptFiles + 3 {
		lines = append(lines, strings.Repeat("x", client.MostWhole+1))
	}
	l := begin(t, append([]string{"one"}, lines...))
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
	if all, err := filepath.Glob(filepath.Join(l.home, "prompt-"+"2*.txt")); err != nil || len(all) != keptFiles+1 {
		t.Errorf("%d files are kept, %v", len(all), err)
	}
}

// TestAnOldFileThatStaysKeepsNothingBack: a folder of somebody's with a name like ours.
func TestAnOldFileThatStaysKeepsNothingBack(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", client.MostWhole+1)
	l := begin(t, []string{"one", long})
	for i := range keptFiles + 1 {
		if err := os.MkdirAll(filepath.Join(l.home, fmt.Sprintf("prompt-2026010%dT000000.000000000Z.txt", i+1), "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if r := l.event(client.Stop, nil); r.status != 2 || l.fileOf(r.stderr) != long {
		t.Errorf("it is not handed over: status %d; %s", r.status, l.log())
	}
}
