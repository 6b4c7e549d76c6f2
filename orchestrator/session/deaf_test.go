package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/handover"
	"heartbeat/queue"
)

// writes is a client that keeps its transcript, and calls no hook.
const writes = `t="$HOME/.claude/projects/-work/$2.jsonl"; mkdir -p "${t%/*}"
echo '{"type":"mode","mode":"normal"}' >>"$t"; `

const (
	prompted = `printf '%s\n' '{"type":"user","message":{"role":"user","content":"Task from the queue:\n\none"}}' >>"$t"; `
	another  = `echo '{"type":"user","message":{"role":"user","content":"x"}}' >>"$t"; `
)

// TestAClientThatCallsNoHook: the model worked on the first entry, and it was
// given again at each of six starts. What stands in the transcript was started.
func TestAClientThatCallsNoHook(t *testing.T) {
	t.Parallel()
	const short, long, goesOn = "its start-timeout ends it", "its start-timeout is long", "it goes on with a conversation, and its start-timeout ends it"
	const conversation = "user/.claude/projects/-work/" + id + ".jsonl"
	for name, tt := range map[string]struct {
		script    string
		start     string
		before    func(l *lab)
		why       hook.End
		unwatched bool
		given     bool // again
	}{
		"it works, until start-timeout": {writes + prompted + stays, short, nil, hook.EndNoHooks, true, false},
		"it works, long before":         {writes + prompted + stays, long, nil, hook.EndNoHooks, true, false},
		"it works, and ends":            {writes + prompted + "exit 0", long, nil, hook.EndNoHooks, true, false},
		"it works, and fails":           {writes + prompted + "kill -9 $$", long, nil, hook.EndNoHooks, true, false},
		"it works on something else":    {writes + another + stays, short, nil, hook.EndNoHooks, true, true},
		"it asks something":             {writes + stays, short, nil, hook.EndStartTimeout, false, true},
		"it ends at once":               {writes + "exit 3", long, nil, hook.EndExited, false, true},
		"it goes on with a conversation": {
			`set -- --session-id ` + id + `; ` + writes + stays, goesOn, nil, hook.EndStartTimeout, false, true,
		},
		"it goes on, and works": {
			writes + prompted + stays, goesOn, nil, hook.EndNoHooks, true, false,
		},
		"hooks are called, and cannot work": {
			writes + prompted + `echo "cannot lock" >>.heartbeat/hook.log; ` + stays, short, nil, hook.EndStartTimeout, false, true,
		},
		// An agent was held for hooks that do not run, until a person came.
		"hooks are called, and the disk is full": {
			writes + prompted + `touch .heartbeat/hook.log; ` + stays, short, func(l *lab) { l.write(".heartbeat/hook.log", "before\n") }, hook.EndStartTimeout, false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := func() *lab {
				l := newLab(t, "one")
				if tt.before != nil {
					tt.before(l)
				}
				if tt.start == goesOn {
					l.write(conversation, `{"type":"user"}`+"\n")
				}
				return l
			}
			var l *lab
			var o *Outcome
			if tt.start == long {
				l = begin()
				o = l.run(tt.script, func(s *Spec) { s.StartTimeout = time.Minute })
			} else {
				l, o = expire(begin, tt.script, func(s *Spec) {
					if tt.start == goesOn {
						s.Resume = id
					}
				})
			}
			if o.Why != tt.why || o.Unwatched != tt.unwatched {
				t.Fatalf("ended as %s, unwatched %v", o, o.Unwatched)
			}
			want := queue.DeadLettered
			if tt.given {
				want = queue.Requeued
			}
			var got queue.Outcome
			arrived := handover.Arrived(&l.queue.InFlight().Given)
			l.change(func(e queue.Entry) (queue.Entry, error) {
				e, got = e.Recover(queue.Interruption{
					Policy: queue.DeadLetterOrphan, Arrived: arrived, Unwatched: o.Unwatched, Untaken: o.Untaken,
				}, 1)
				return e, nil
			})
			if got != want {
				t.Errorf("the entry: %s; want %s", got, want)
			}
		})
	}
}

func (l *lab) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// TestWhatTheClientAsksIsNamed: a session that ended for a question at its start
// had only the picture of its screen to tell that by.
func TestWhatTheClientAsksIsNamed(t *testing.T) {
	t.Parallel()
	_, o := expire(func() *lab {
		l := newLab(t, "one")
		l.write("user/.claude.json", "{}")
		return l
	}, `printf 'Accessing workspace:\r\n\r\n 1. Yes, I trust this folder\r\n 2. No, exit\r\n\r\n Enter to confirm'; `+stays)
	if o.Why != hook.EndStartTimeout || !strings.Contains(o.Detail, "whether the folder is trusted") ||
		o.Asks == nil || o.Asks.Do != "heartbeat apply --trust a" {
		t.Errorf("ended as %s", o)
	}
}
