package hook

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// TestHooksGoByTheirShimAlone: what the record in the agent's folder said of where the queue
// is, and of what the session may do, made its hooks take a neighbour's prompt and hand over
// without end.
func TestHooksGoByTheirShimAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(r *Record) { r.Policy.MaxContinuations = 2 })
	before := l.record().Terms
	neighbour := filepath.Join(l.home, "..", "n", "inbox.jsonl")
	if err := os.Mkdir(filepath.Dir(neighbour), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(neighbour, []byte("the neighbour's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	forge := func() {
		forged := l.record()
		forged.Inbox, forged.Session, forged.Agent, forged.Conversation = neighbour, "another", "another", "another"
		forged.Policy = Policy{Mode: Persist, Deliver: DeliverJSON, MaxContinuations: 1 << 30}
		if err := forged.write(l.home); err != nil {
			t.Fatal(err)
		}
		if l.live.Shows() {
			t.Error("the shim does not see it")
		}
	}
	l.append("one", "two", "three")
	forge()
	l.handsOver("one", fields{"stop_hook_active": false})
	if r := l.record(); r.Terms != before {
		t.Errorf("the record says %+v", r)
	}
	forge()
	l.handsOver("two", fields{"stop_hook_active": true})
	if data, err := os.ReadFile(neighbour); err != nil || string(data) != "the neighbour's\n" {
		t.Errorf("the neighbour's queue: %q, %v", data, err)
	}
	if names, _ := os.ReadDir(filepath.Dir(neighbour)); len(names) != 1 {
		t.Errorf("beside the neighbour's queue: %v", names)
	}
}

// TestNoTimeThatIsReadLiesAhead walks all times of the record.
func TestNoTimeThatIsReadLiesAhead(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	ahead := time.Now().Add(time.Hour)
	r := liveRecord(func(r *Record) { r.Work, r.Ruling = &Work{}, &Ruling{} })
	n := setTimes(reflect.ValueOf(r).Elem(), ahead)
	if got := len(r.times()); got != n {
		t.Errorf("times() has %d of %d", got, n)
	}
	if err := r.write(home); err != nil {
		t.Fatal(err)
	}
	shown, err := ReadRecord(home)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range (*Record)(shown).times() {
		if at.After(time.Now()) {
			t.Errorf("%v lies ahead", at)
		}
	}
}

// setTimes sets all times of a record, but those of its clock.
func setTimes(v reflect.Value, to time.Time) (n int) {
	switch {
	case v.Type() == reflect.TypeFor[Clock]():
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(to))
		n = 1
	case v.Kind() == reflect.Pointer && !v.IsNil():
		n = setTimes(v.Elem(), to)
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			n += setTimes(field, to)
		}
	}
	return n
}
