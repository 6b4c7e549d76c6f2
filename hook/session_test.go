package hook

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/handover"
	"heartbeat/hook/hooklog"
	"heartbeat/internal/testbed"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// begin is a session whose first entry went with the kick-off, in its turn.
func begin(t *testing.T, lines []string, change ...func(*Record)) *lab {
	t.Helper()
	l := newLab(t, change...)
	l.append(lines...)
	flight := l.offerFirst()
	l.quietly(client.SessionStart, fields{"source": "startup", "prompt_id": ""})
	if r := l.record(); r.Client != self() || r.ClientSession != "C" || r.Phase != Starting {
		t.Fatalf("not bound: %+v", r)
	}
	l.quietly(client.UserPromptSubmit, fields{"prompt": handover.KickoffPrompt(flight.Prompt)})
	if s := l.state(); s != queue.Taken {
		t.Fatalf("state %q after the kick-off, want taken\n%s", s, l.log())
	}
	return l
}

// TestDrain is a session of three entries: N prompts cost N turns.
func TestDrain(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{`one`, `"two\n<&>  lines "`, `{"heartbeat":1,"id":"i3","source":"send","prompt":"/three @x"}`})
	l.quietly(client.PreToolUse, fields{"tool_name": "Bash"})
	if s := l.state(); s != queue.Started {
		t.Fatalf("state %q after a tool, want started", s)
	}
	l.handsOver("two\n<&>  lines ", fields{"last_assistant_message": "did one"})
	f := l.flight()
	if f.State != queue.Offered || f.Handover.PromptID != "P1" || f.Handover.Session != "S" || f.Handover.Via != queue.ViaStop {
		t.Fatalf("in flight: %+v", f)
	}
	if r := l.record(); r.Phase != Turn || r.Work == nil || r.Work.DeliveryID != f.Delivery || r.Continuations != 1 {
		t.Fatalf("record: %+v", r)
	}
	l.handsOver("/three @x", fields{"stop_hook_active": true, "last_assistant_message": "did two"})
	l.quietly(client.Stop, fields{"stop_hook_active": true, "last_assistant_message": "did three"})
	if got, want := l.replies(), []string{"did one", "did two", "did three"}; !slices.Equal(got, want) {
		t.Errorf("outbox %q, want %q", got, want)
	}
	r := l.record()
	if r.Phase != Ending || r.Ruling == nil || r.Ruling.Why != EndDrained || r.Acknowledged != 3 || r.Work != nil {
		t.Errorf("record: %+v", r)
	}
	// A background task that has just finished takes the ruling back.
	l.append("four")
	l.quietly(client.UserPromptSubmit, fields{"prompt": "<task-notification>", "prompt_id": "P2"})
	l.handsOver("four", fields{"prompt_id": "P2"})
}

func TestUnprovenEntryIsOfferedAgain(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	l.handsOver("two", nil)
	if err := os.WriteFile(l.transcript, []byte(clienttest.UserLine("something else")), 0o600); err != nil {
		t.Fatal(err)
	}
	again := "two\n\n[heartbeat: attempt 2 of this entry; an earlier one was interrupted. Check what is already done before acting.]"
	l.handsOver(again, fields{"prompt_id": "P2"})
	if got := l.replies(); len(got) != 1 {
		t.Errorf("acknowledged without proof: %q", got)
	}
	if f := l.flight(); f.Attempt != 2 || f.Handover.PromptID != "P2" || f.Handover.Offset == 0 {
		t.Errorf("in flight: %+v", f)
	}
	// Now the transcript proves it, although the prompt_id does not.
	clienttest.Append(t, l.transcript, clienttest.UserLine(clienttest.Feedback+"["+"heartbeat-stop hook]: "+again))
	l.quietly(client.Stop, fields{"prompt_id": "P3"})
	if got := l.replies(); len(got) != 2 {
		t.Errorf("outbox: %q\n%s", got, l.log())
	}
}

func TestBackgroundTasksAreWaitedFor(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	tasks := []fields{{"id": "b1", "type": "shell", "status": "running", "description": "sleep", "command": "sleep 9"}}
	l.quietly(client.Stop, fields{"background_tasks": tasks, "last_assistant_message": "started it"})
	r := l.record()
	if s := l.state(); s != queue.Background || r.Phase != Background || r.LastReply != "started it" ||
		!slices.Equal(r.BackgroundTasks, []string{"shell: sleep"}) || r.BackgroundSince.IsZero() {
		t.Fatalf("state %s, record %+v", s, r)
	}
	l.quietly(client.Notification, fields{"notification_type": "idle_prompt"})
	if p := l.record().Phase; p != Background {
		t.Fatalf("phase %s", p)
	}
	l.quietly(client.UserPromptSubmit, fields{"prompt": "<task-notification>", "prompt_id": "P2"})
	l.handsOver("two", fields{"prompt_id": "P2"})
	if got := l.replies(); !slices.Equal(got, []string{"started it"}) {
		t.Errorf("outbox: %q", got)
	}
}

func TestJSONDelivery(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", `"<b> & \n"`}, func(r *Record) { r.Policy.Deliver = DeliverJSON })
	got := l.event(client.Stop, nil)
	if want := `{"decision":"block","reason":"<b> & \n"}` + "\n"; got.status != 0 || got.stdout != want || got.stderr != "" {
		t.Errorf("%+v, want %q", got, want)
	}
}

func TestRunawayEnds(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"}, func(r *Record) { r.Policy.MaxContinuations = 2 })
	l.handsOver("two", nil)
	for i := range 2 {
		r := l.event(client.Stop, fields{"prompt_id": fmt.Sprint("other", i)})
		if i == 0 && r.status != 2 || i == 1 && r.status != 0 {
			t.Fatalf("hand-over %d: %+v", i+2, r)
		}
	}
	if r := l.record(); r.Ruling == nil || r.Ruling.Why != EndRunaway || r.Phase != Ending {
		t.Errorf("record: %+v", r)
	}
	if s := l.state(); s != queue.Offered {
		t.Errorf("state %q", s)
	}
}

func TestForeignSessionsTouchNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(l *lab){
		"no token":      func(l *lab) { l.env = append(l.env, ask.EnvSession+"=") },
		"no socket":     func(l *lab) { l.env = append(l.env, ask.EnvSocket+"=") },
		"another token": func(l *lab) { l.env = append(l.env, ask.EnvSession+"=other") },
		"nested client": func(l *lab) { l.isCalledBy(Process{PID: os.Getppid()}) },
		"session ended": func(l *lab) { l.change(func(r *Record) { r.Phase = Ended }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", "two"})
			c(l)
			before := l.files()
			for _, e := range []string{client.SessionStart, client.UserPromptSubmit, client.PreToolUse, client.Stop, client.PermissionRequest, client.SessionEnd} {
				l.quietly(e, fields{"session_id": "other", "source": "startup"})
			}
			if after := l.files(); after != before {
				t.Errorf("touched:\n%s\nwas:\n%s", after, before)
			}
		})
	}
}

// TestNoTokenReadsNothing: in a person's session the hook ends although
// nobody closes its stdin.
func TestNoTokenReadsNothing(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(program(t), "hook")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	begin := time.Now()
	if err := cmd.Run(); err != nil || time.Since(begin) > testbed.Patience {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
}

func TestAnotherConversationOfTheClientIsIgnored(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	l.quietly(client.Stop, fields{"session_id": "other"})
	if s := l.state(); s != queue.Taken {
		t.Errorf("state %q", s)
	}
	l.quietly(client.SessionStart, fields{"session_id": "other", "source": "clear"})
	if r := l.record(); r.ClientSession != "other" || r.Phase != Unattended {
		t.Errorf("record: %+v", r)
	}
}

func TestUnreadablePayloadFailsOpen(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, stdin := range []string{"", "garbage", "[]", "{}", `{"hook_event_name":7}`} {
		if r := l.run(l.command([]string{"hook"}, stdin)); r.status != 0 || r.stdout+r.stderr != "" {
			t.Errorf("%q: %+v", stdin, r)
		}
	}
	if n := strings.Count(l.log(), "hook ignored"); n != 5 {
		t.Errorf("%d lines in hook.log:\n%s", n, l.log())
	}
}

// TestCutOffPayloadStillMarksStarted: a tool's input can be larger than what
// is read.
func TestCutOffPayloadStillMarksStarted(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one"})
	whole := l.payload(client.PreToolUse, fields{"tool_name": "Write", "zzz": strings.Repeat("x", 1000)})
	if r := l.run(l.command([]string{"hook"}, whole[:len(whole)-100])); r.status != 0 {
		t.Fatalf("%+v", r)
	}
	if s := l.state(); s != queue.Started {
		t.Errorf("state %q\n%s", s, l.log())
	}
}

func TestStopWithoutAReadableQueueLeavesUnattended(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.broken.Store(new("the queue cannot be read"))
	l.quietly(client.Stop, nil)
	if l.log() == "" {
		t.Error("hook.log says nothing")
	}
}

func TestAnotherSessionsEntryIsLeftAlone(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	l.change(func(r *Record) { r.Session = "later" })
	l.quietly(client.Stop, nil)
	if s, p := l.state(), l.record().Phase; s != queue.Taken || p != Unattended {
		t.Errorf("state %q, phase %s", s, p)
	}
}

func TestHookLogIsCappedAndFollowsNoLink(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := filepath.Join(home, "hook.log")
	if err := os.WriteFile(path, make([]byte, hooklog.MaxLog+1), 0o600); err != nil {
		t.Fatal(err)
	}
	hooklog.Line(home, "two\nlines")
	data, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(data), "Z two lines\n") || strings.Count(string(data), "\n") != 1 {
		t.Errorf("%q, %v", data, err)
	}
	if info, err := os.Stat(path + ".1"); err != nil || info.Size() != hooklog.MaxLog+1 {
		t.Errorf("the old one: %v, %v", info, err)
	}
	os.Remove(path)
	victim := filepath.Join(home, "victim")
	if err := os.WriteFile(victim, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	hooklog.Line(home, "words")
	if data, _ := os.ReadFile(victim); len(data) > 0 {
		t.Errorf("written through a link: %q", data)
	}
}

// TestHookInstalledTwice: both calls of one Stop run at once, and the client
// delivers what both say. The second one says nothing and acknowledges nothing.
func TestHookInstalledTwice(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two", "three"})
	var twin *exec.Cmd
	first, err := l.live.Enter(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	twin = l.command([]string{"hook"}, l.payload(client.Stop, fields{"stop_hook_active": true}))
	twin.Stdout, twin.Stderr = &strings.Builder{}, &strings.Builder{}
	if err := twin.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the second hook to wait for the first", func() bool { _, asks := l.called.Load(twin.Process.Pid); return asks })
	// The first one does its work meanwhile.
	done := first.Finishes(first.Own(), queue.Reply{At: time.Now()})
	to := queue.Handover{Via: queue.ViaStop, Session: "S", PromptID: "P1", At: time.Now()}
	if _, err := first.Ask(t.Context(), testbed.Patience, done, wire.Step{Do: wire.Offer, To: to}); err != nil {
		t.Fatal(err)
	}
	first.Record.HandOvers++
	first.Works(first.Own())
	if err := first.Save(); err != nil {
		t.Fatal(err)
	}
	first.Leave()
	if r := ended(t, twin); r.status != 0 || r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	if f := l.flight(); f == nil || f.State != queue.Offered || len(l.replies()) != 1 {
		t.Errorf("in flight %+v, outbox %q\n%s", f, l.replies(), l.log())
	}
}
