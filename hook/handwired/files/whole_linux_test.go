package files

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
	"heartbeat/queue"
)

// Every file that is extended, when the disk has room for a part of the record
// only: the record is not there, what others append behind it is whole, and the
// same act does it all once there is room.
func TestARecordThatTheKernelSplitsLeavesNothing(t *testing.T) {
	if !testbed.Alone(t) {
		return
	}
	for name, k := range map[string]struct {
		prepare, act func(r *rig) error
		want         string // stands in the act's record
	}{
		OutboxFile: {prepare: (*rig).offered, act: func(r *rig) error {
			return r.Acknowledge(Acknowledgement{Reply: "the act's"})
		}, want: "the act's"},
		DeadFile: {prepare: (*rig).offered, act: func(r *rig) error {
			r.advance(queue.Started)
			_, _, err := r.Recover(Interruption{Policy: queue.DeadLetterOrphan})
			return err
		}, want: string(queue.Interrupted)},
	} {
		for _, room := range []int{0, 1, 2, 17, 50} {
			r := newRig(t).unsynced()
			filler := strings.Repeat(`{"filler":true}`+"\n", 2000) // the largest file of the folder
			r.put(name, filler)
			if k.prepare != nil {
				if err := k.prepare(r); err != nil {
					t.Fatal(err)
				}
			}
			before := r.get(name)
			testbed.LimitFiles(t, uint64(len(before)+room))
			err := k.act(r)
			testbed.LimitFiles(t, math.MaxUint64)
			where := fmt.Sprintf("%s, room for %d bytes", name, room)
			if err == nil {
				t.Errorf("%s: no error", where)
			}
			if added := r.get(name)[len(before):]; strings.TrimSpace(added) != "" {
				t.Errorf("%s: left %q", where, added)
			}
			r.put(name, r.get(name)+"{}\n") // somebody's line
			if err := k.act(r); err != nil {
				t.Errorf("%s: with room again: %v", where, err)
			}
			if n := strings.Count(r.get(name), k.want); n != 1 {
				t.Errorf("%s: the record stands %d times in it", where, n)
			}
			for l := range strings.Lines(r.get(name)) {
				if strings.TrimSpace(l) != "" && !json.Valid([]byte(l)) {
					t.Errorf("%s: torn line %q", where, l)
				}
			}
		}
	}
}

// offered has an entry in flight.
func (r *rig) offered() error {
	r.echo("one\n")
	r.offer()
	return nil
}

// 40,000 torn lines took 125 seconds: the dead letters were searched for each.
func TestTornLinesAreSearchedForByTheBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo(strings.Repeat(`{"heartbeat":1,"id":"x","pro`+"\n", 5000) + "one\n")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := readByThread(t)
	if got := r.next(); got != "one" || len(r.dead()) != 5000 {
		t.Errorf("next %q, %d dead letters", got, len(r.dead()))
	}
	if n := readByThread(t) - before; n > 64<<20 {
		t.Errorf("%d bytes were read", n)
	}
}

// readByThread is how many bytes this thread has read.
func readByThread(t *testing.T) (n int) {
	t.Helper()
	data, err := os.ReadFile("/proc/thread-self/io")
	if err == nil {
		_, err = fmt.Sscanf(string(data), "rchar: %d", &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}
