package handwired

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/flock"
)

func TestWiredRecover(t *testing.T) {
	t.Parallel()
	started := func(o *old) { // as heartbeat's earlier design recorded that a tool was called
		record := strings.Replace(o.read(".in-flight"), `"state":"offered"`, `"state":"started"`, 1)
		if err := os.WriteFile(filepath.Join(o.home, ".in-flight"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name    string
		prepare func(o *old)
		args    []string
		says    string
		next    string // what the next session gets
		dead    int
	}{
		{name: "nothing in flight", says: "NothingToRecover", next: "one"},
		{name: "retry", prepare: started, args: []string{"--on-orphan", "retry"}, says: "Requeued", next: "one"},
		{name: "deadletter is the default", prepare: started, says: "DeadLettered", next: "two", dead: 1},
		{name: "drop", prepare: started, args: []string{"--on-orphan=drop"}, says: "Dropped", next: "two"},
		{name: "deadletter files what nothing proves", args: []string{"--on-orphan", "deadletter"}, prepare: func(*old) {}, says: "DeadLettered", next: "two", dead: 1},
		{name: "retry gives it again", args: []string{"--on-orphan", "retry"}, prepare: func(*old) {}, says: "Requeued", next: "one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := newOld(t, "one\ntwo\n")
			if c.prepare != nil {
				blocks(t, o.stop(), "one")
				c.prepare(o)
			}
			r := o.recover(c.args...)
			if r.status != 0 || r.stdout != "" || !strings.Contains(r.stderr, c.says) {
				t.Fatalf("%+v, want %s", r, c.says)
			}
			if o.exists(".in-flight") || o.exists(".responded") {
				t.Errorf("left: %s", o.files())
			}
			if n := strings.Count(o.read(".dead-letter.jsonl"), "\n"); n != c.dead {
				t.Errorf("%d dead letters", n)
			}
			r = o.stop()
			if r.status != 0 || !strings.HasPrefix(r.stdout, `{"decision":"block","reason":"`+c.next) {
				t.Errorf("then %+v, want %q", r, c.next)
			}
		})
	}
}

func TestWiredRecoverOfAStaleOrphan(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\ntwo\n")
	blocks(t, o.stop(), "one")
	flight := o.read(".in-flight")
	blocks(t, o.stop(), "two")
	// The removal was interrupted: the record of an acknowledged entry stays.
	if err := os.WriteFile(filepath.Join(o.home, ".in-flight"), []byte(flight), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := o.recover(); r.status != 0 || o.exists(".in-flight") {
		t.Errorf("%+v; left: %s", r, o.files())
	}
	r := o.stop()
	if !strings.HasPrefix(r.stdout, `{"decision":"block","reason":"two`) {
		t.Errorf("then %+v", r)
	}
}

func TestRecoverLooksIntoTheTranscript(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\ntwo\n")
	o.transcript = filepath.Join(o.home, "t.jsonl")
	blocks(t, o.stopWith(o.payload(client.Stop, nil)), "one")
	clienttest.Append(t, o.transcript, clienttest.UserLine(clienttest.Feedback+"one"))
	// It arrived, and no PreToolUse hook could say that a tool ran.
	if r := o.recover(); !strings.Contains(r.stderr, "DeadLettered") {
		t.Errorf("%+v", r)
	}
}

func TestWiredRecoverIsFencedByTheSessionLock(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\n")
	release, err := flock.TryLock(o.sessionLock())
	if err != nil {
		t.Fatal(err)
	}
	if r := o.recover(); r.status != 1 || r.stderr == "" {
		t.Errorf("%+v, want a refusal", r)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if r := o.recover(); r.status != 0 {
		t.Errorf("%+v", r)
	}
}
