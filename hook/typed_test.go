package hook

import (
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
)

// queued is a transcript's line about what was typed while the client was
// busy, as 2.1.329 writes it.
func (l *lab) queued(operation string) {
	l.t.Helper()
	clienttest.Append(l.t, l.transcript, `{"type":"queue-operation","operation":"`+operation+`","timestamp":"2026-11-21T16:38:43.552Z","sessionId":"C"}`+"\n")
}

// TestWhatWasTypedInATurnComesBeforeTheNextEntry: who typed a prompt during a
// turn and left had later entries run before it, and a session without any
// waited with it until its idle-interval was over.
func TestWhatWasTypedInATurnComesBeforeTheNextEntry(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]string{"entries are queued": {"two"}, "nothing is queued": nil} {
		for mode, policy := range map[string]func(*Record){"drain": func(*Record) {}, "persist": persistent} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				l := begin(t, append([]string{"one"}, more...), policy)
				l.quietly(client.UserPromptSubmit, fields{"prompt": "also do this"})
				l.quietly(client.Stop, nil) // the client takes what was typed
				if r := l.record(); r.Phase != Turn || r.Ruling != nil || r.Acknowledged != 1 {
					t.Fatalf("record: %+v", r)
				}
				if more == nil {
					return
				}
				l.handsOver("two", fields{"prompt_id": "P2"})
			})
		}
	}
}

// TestWhatWasTakenInTheTurnHoldsNothingBack: between two tools the client
// tells the model what was typed; no turn of its own follows then.
func TestWhatWasTakenInTheTurnHoldsNothingBack(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	l.quietly(client.UserPromptSubmit, fields{"prompt": "also do this"})
	l.queued("enqueue")
	l.queued("remove")
	l.handsOver("two", nil)
}

// TestATurnIsLetEndOnlyOnce: a client that neither takes what was typed nor
// says so does not end every turn of the session.
func TestATurnIsLetEndOnlyOnceForWhatWasTyped(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	l.quietly(client.UserPromptSubmit, fields{"prompt": "also do this"})
	l.queued("enqueue")
	l.quietly(client.Stop, nil)
	l.handsOver("two", fields{"prompt_id": "P2"})
}

// TestNothingIsHandedOverForTwoMinutesAfterTheLastKey: an entry was handed
// over 28 seconds after the last key, because the person had left.
func TestNothingIsHandedOverForTwoMinutesAfterTheLastKey(t *testing.T) {
	t.Parallel()
	for name, typed := range map[string]func(*Record){
		"who has left":  func(r *Record) { r.TypedAt = time.Now() },
		"who is there":  func(r *Record) { r.TypedAt, r.Attached = time.Now(), 1 },
		"between tasks": func(r *Record) { r.TypedAt, r.Policy.Mode = time.Now(), Persist },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", "two"}, func(r *Record) { r.Policy.IdleInterval = time.Millisecond })
			l.change(typed)
			cmd := l.wait()
			l.append("three") // it looks, and waits on
			time.Sleep(50 * time.Millisecond)
			if r := l.record(); r.Phase != Waiting || r.Acknowledged != 1 || l.flight() != nil {
				t.Fatalf("record: %+v", r)
			}
			l.change(func(r *Record) { r.TypedAt = time.Now().Add(50*time.Millisecond - TypingPause) })
			if r := ended(t, cmd); r.status != 2 || r.stderr != "two" {
				t.Fatalf("%+v\n%s", r, l.log())
			}
		})
	}
}

// TestASessionGoesOnWaitingAfterAPersonsPrompt: after a person's turn no hook
// waited any more, so once they had left the session could only be ended, and
// its conversation was lost.
func TestASessionGoesOnWaitingAfterAPersonsPrompt(t *testing.T) {
	t.Parallel()
	l, cmd := waiting(t)
	l.change(func(r *Record) { r.Attached, r.TypedAt = 1, time.Now() })
	l.quietly(client.UserPromptSubmit, fields{"prompt": "what time is it"})
	if r := ended(t, cmd); r.status != 0 || r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	cmd = l.wait() // their turn's Stop
	l.change(func(r *Record) { r.Attached = 0 })
	l.append("later")
	time.Sleep(50 * time.Millisecond)
	if r := l.record(); r.Phase != Waiting || r.Ruling != nil {
		t.Fatalf("record: %+v", r)
	}
	l.change(func(r *Record) { r.TypedAt = time.Now().Add(-TypingPause) })
	if r := ended(t, cmd); r.status != 2 || r.stderr != "later" {
		t.Errorf("%+v", r)
	}
}

// TestACommandThatWasTypedWhileAHookWaits: no hook hears of /compact; it
// stood behind the waiting hook until that ended by itself.
func TestACommandThatWasTypedWhileAHookWaits(t *testing.T) {
	t.Parallel()
	l := newLab(t, persistent)
	cmd := l.waits()
	l.change(func(r *Record) { r.Attached, r.TypedAt = 1, time.Now() })
	l.queued("enqueue")
	if r := ended(t, cmd); r.status != 0 || r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	if r := l.record(); r.Phase != Turn || r.Ruling != nil {
		t.Errorf("record: %+v", r)
	}
}

// What a former client left in its line is not this one's.
func TestALineBeginsBehindAResumedTranscript(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.queued("enqueue")
	l.quietly(client.SessionStart, fields{"source": "resume"})
	l.append("one", "two")
	l.change(func(r *Record) { r.TypedAt = time.Now().Add(-TypingPause) })
	l.handsOver("one", nil)
	if r := l.record(); r.Line.In != 0 || r.Line.Offset == 0 {
		t.Errorf("line: %+v", r.Line)
	}
}

// TestTheTurnOfWhatWasTypedEndsBeforeTheTranscriptSaysSo: its Stop was let end
// for a line that was empty by then, and nothing could be handed to the session
// any more.
func TestTheTurnOfWhatWasTypedEndsBeforeTheTranscriptSaysSo(t *testing.T) {
	t.Parallel()
	l, cmd := waiting(t)
	l.change(func(r *Record) { r.Attached, r.TypedAt = 1, time.Now() })
	l.quietly(client.UserPromptSubmit, fields{"prompt": "what time is it"})
	l.queued("enqueue")
	if r := ended(t, cmd); r.status != 0 {
		t.Fatalf("%+v", r)
	}
	late := time.AfterFunc(300*time.Millisecond, func() { l.queued("dequeue") })
	defer late.Stop()
	l.wait() // their turn's Stop
	if r := l.record(); r.Phase != Waiting || r.Line.stands() {
		t.Errorf("record: %+v", r)
	}
}

// TestWhatWasTakenIsSeenInTwoSteps: the transcript shows that something was put into
// the line, and a moment later that it was taken. A hook that had just begun to wait
// let its turn end in between, and nothing waited for work any more.
func TestWhatWasTakenIsSeenInTwoSteps(t *testing.T) {
	t.Parallel()
	began := time.Now()
	me := Process{PID: 7, Start: 1}
	put := Line{In: 1}
	for name, tt := range map[string]struct {
		line     Line
		waiter   Process
		ruling   *Ruling
		after    time.Duration
		doubtful bool
	}{
		"put in, it seems":        {put, me, nil, 0, true},
		"and a second later":      {put, me, nil, time.Second, true},
		"the transcript is whole": {put, me, nil, client.Claude.Transcript.Behind, false},
		"put in and taken":        {Line{In: 1, Out: 1}, me, nil, 0, false},
		"nothing":                 {Line{}, me, nil, 0, false},
		"another hook waits":      {put, Process{PID: 8}, nil, 0, false},
		"the session ends":        {put, me, &Ruling{Why: EndShutdown}, 0, false},
	} {
		r := &Record{Phase: Waiting, Ruling: tt.ruling}
		r.Waiter, r.Line = tt.waiter, tt.line
		v := vigil{me: me, began: began}
		if got := doubtful(r, v, began.Add(tt.after)); got != tt.doubtful {
			t.Errorf("%s: doubtful %t", name, got)
		}
		if next := nextLook(r, v, began); next.After(began.Add(client.Claude.Transcript.Behind)) {
			t.Errorf("%s: the next look is %v later", name, next.Sub(began))
		}
	}
}

// TestAPromptThatTheTranscriptToldOfFirst was counted twice: the waiting hook
// had let it be taken before the hook of its submission ran.
func TestAPromptThatTheTranscriptToldOfFirst(t *testing.T) {
	t.Parallel()
	l := newLab(t, persistent)
	cmd := l.waits()
	l.change(func(r *Record) { r.Attached, r.TypedAt = 1, time.Now() })
	l.queued("enqueue")
	if r := ended(t, cmd); r.status != 0 {
		t.Fatalf("%+v", r)
	}
	l.quietly(client.UserPromptSubmit, fields{"prompt": "what time is it"})
	l.queued("dequeue")
	l.wait() // their turn's Stop
}

func TestLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		submitted  int
		operations []string
		stands     bool
	}{
		{"nothing", 0, nil, false},
		{"a prompt, written behind", 1, nil, true},
		{"a command", 0, []string{"enqueue"}, true},
		{"two, one of them taken", 2, []string{"enqueue", "enqueue", "dequeue"}, true},
		{"two, taken together", 2, []string{"enqueue", "enqueue", "dequeue", "dequeue"}, false},
		{"one that the model was told in the turn", 1, []string{"enqueue", "remove"}, false},
		{"taken back into the input", 2, []string{"enqueue", "enqueue", "popAll"}, false},
		{"another one after that", 3, []string{"enqueue", "enqueue", "popAll", "enqueue"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := &lab{t: t, transcript: t.TempDir() + "/t.jsonl"}
			line := Line{Transcript: l.transcript, Submitted: c.submitted}
			for _, o := range c.operations {
				l.queued(o)
			}
			line.read()
			if line.stands() != c.stands {
				t.Errorf("%+v: stands %v, want %v", line, !c.stands, c.stands)
			}
			if line.serve(); line.stands() {
				t.Errorf("served, and it still stands: %+v", line)
			}
		})
	}
}
