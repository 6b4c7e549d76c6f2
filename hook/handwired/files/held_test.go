package files

import (
	"errors"
	"reflect"
	"testing"

	"heartbeat/hook/flock"
)

// TestNothingChangesOnceTheLockIsGivenBack walks the methods of Held: each one
// that Queue does not have changes the queue, and does not without the lock.
func TestNothingChangesOnceTheLockIsGivenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\ntwo\n")
	r.offer()
	r.put(DeadFile, `{"entry_id":"e","raw_line":"x"}`+"\n")
	files := []string{"inbox.jsonl", Inbox.Cursor, Inbox.Sidecar, Inbox.Record, Inbox.Flag, DeadFile, OutboxFile}
	before := map[string]string{}
	for _, name := range files {
		before[name] = r.get(name)
	}
	h, err := r.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.Unlock(), h.Unlock()); err != nil {
		t.Fatal(err)
	}
	walked := 0
	released := reflect.ValueOf(&Orphaned{h, h.Unlock})
	for i := range released.NumMethod() {
		name := released.Type().Method(i).Name
		if _, of := reflect.TypeFor[*Queue]().MethodByName(name); of || name == "Unlock" {
			continue
		}
		method := released.Method(i)
		args := make([]reflect.Value, method.Type().NumIn())
		for j := range args {
			args[j] = argument(method.Type().In(j))
		}
		call := method.Call
		if method.Type().IsVariadic() {
			call = method.CallSlice
		}
		results := call(args)
		if err, _ := results[len(results)-1].Interface().(error); !errors.Is(err, errReleased) {
			t.Errorf("%s: %v, want %v", name, err, errReleased)
		}
		walked++
	}
	if walked < 7 {
		t.Errorf("only %d methods", walked)
	}
	for _, name := range files {
		if got := r.get(name); got != before[name] {
			t.Errorf("%s is %q, was %q", name, got, before[name])
		}
	}
}

// argument is one that would do something.
func argument(of reflect.Type) reflect.Value {
	switch of {
	case reflect.TypeFor[*Entry]():
		return reflect.ValueOf(&Entry{Raw: []byte("one"), End: 4})
	case reflect.TypeFor[*Record]():
		return reflect.ValueOf(&Record{})
	}
	return reflect.Zero(of)
}

// TestAnOrphanHasNoSession: while somebody holds the lock of the session nothing is recovered, and
// none can begin meanwhile.
func TestAnOrphanHasNoSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	unlock, err := flock.TryLockIn(r.dir, SessionLock)
	if err != nil {
		t.Fatal(err)
	}
	if o, err := r.LockOrphaned(t.Context()); !errors.Is(err, ErrSessionLives) {
		t.Fatalf("%v, %v", o, err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	o, err := r.LockOrphaned(t.Context())
	if err != nil || !r.SessionLives() {
		t.Fatalf("%v: a session could begin", err)
	}
	if err := o.Unlock(); err != nil || r.SessionLives() {
		t.Errorf("%v", err)
	}
}
