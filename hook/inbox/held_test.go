package inbox

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// TestNothingChangesOnceTheLockIsGivenBack walks the methods of Held: each one
// that Queue does not have changes the queue, and does not without the lock.
func TestNothingChangesOnceTheLockIsGivenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\ntwo\n")
	r.offer()
	r.put(DeadFile, `{"entry_id":"e","raw_line":"x"}`+"\n")
	files := []string{"inbox.jsonl", CursorFile, metaFile, FlightFile, respondedFile, DeadFile, outboxFile}
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
	released := reflect.ValueOf(Orphaned{h})
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
	if walked < 16 {
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
	case reflect.TypeFor[State]():
		return reflect.ValueOf(Started)
	case reflect.TypeFor[*Entry]():
		return reflect.ValueOf(&Entry{Raw: []byte("one"), End: 4})
	case reflect.TypeFor[func(DeadEntry) bool]():
		return reflect.ValueOf(func(DeadEntry) bool { return true })
	case reflect.TypeFor[[]string]():
		return reflect.ValueOf([]string{"e"})
	case reflect.TypeFor[Letter]():
		return reflect.ValueOf(Letter{ID: "l", Prompt: "long"})
	}
	return reflect.Zero(of)
}

// TestAnOrphanHasNoSession: while somebody holds the lock of the session nothing
// is recovered, and none can begin meanwhile.
func TestAnOrphanHasNoSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	place := Place{Inbox: filepath.Join(r.dir, "inbox.jsonl")}
	unlock, err := r.LockSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, wait := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := HoldOrphaned(ctx, place, wait, func(Orphaned) error { t.Error("it acts"); return nil })
		if !errors.Is(err, ErrSessionLives) {
			t.Errorf("wait %v: %v", wait, err)
		}
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	err = HoldOrphaned(t.Context(), place, false, func(o Orphaned) error {
		if !o.SessionLives() {
			t.Error("a session could begin")
		}
		return nil
	})
	if err != nil || r.SessionLives() {
		t.Errorf("%v, lives %v", err, r.SessionLives())
	}
}
