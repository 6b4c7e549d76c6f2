package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"heartbeat/hook"
)

var persist = []string{"mode: persist", "idle-interval: 5m", "idle-grace: 2s"}

// TestIdleReleaseAndRelaunch: after idle-interval the session ends without a
// turn, and the next entry starts another one.
func TestIdleReleaseAndRelaunch(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"mode: persist", "idle-interval: 2s"})
		f.teach()
		f.start()
		f.send("one")
		f.Until("the release", func() bool { return len(f.ends()) == 1 })
		f.send("two")
		f.Until("the second reply", func() bool { return len(f.outbox()) == 2 })
		if n := len(f.calls()); n != 2 {
			t.Errorf("%d model calls for 2 prompts", n)
		}
		if why := f.ends()[0]; !strings.HasPrefix(why, "released") {
			t.Errorf("the first session ended by %q", why)
		}
	})
}

// typeInto types at the live client's terminal, as a person at it would.
func (f *fleet) typeInto(keys string) {
	f.t.Helper()
	r := f.session()
	tty, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/0", r.Client), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	defer tty.Close()
	for _, b := range []byte(keys) {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, tty.Fd(), unix.TIOCSTI, uintptr(unsafe.Pointer(&b))); errno != 0 {
			f.t.Skipf("cannot type into a terminal here (TIOCSTI): %v", errno)
		}
	}
}

// TestAPersonInALiveSession: whatever a person does at the terminal of a
// session that waits, the queue goes on.
func TestAPersonInALiveSession(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(f *fleet){
		"types a prompt": func(f *fleet) {
			f.typeInto("what time is it")
			time.Sleep(400 * time.Millisecond) // the client takes a faster CR as part of a paste
			f.typeInto("\r")
			f.Until("the person's turn", func() bool {
				return slices.ContainsFunc(f.prompts(), func(p string) bool { return strings.Contains(p, "what time") })
			})
		},
		"clears the conversation": func(f *fleet) {
			f.typeInto("/clear")
			time.Sleep(400 * time.Millisecond)
			f.typeInto("\r")
		},
		"kills the hook": func(f *fleet) {
			if err := kill(f.session().Waiter, syscall.SIGKILL); err != nil {
				f.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { disturbed(t, disturb) })
	}
}

// disturbed is a session that waits, what a person does to it, and two entries after that.
func disturbed(t *testing.T, disturb func(f *fleet)) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, persist)
		f.teach()
		f.start()
		f.send("before")
		f.phase(hook.Waiting)
		disturb(f)
		f.send("after")
		begun := time.Now()
		f.Until("the next reply", func() bool { return len(f.outbox()) == 2 })
		t.Logf("the queue went on after %v", time.Since(begun))
		f.send("and again")
		f.Until("the reply after that", func() bool { return len(f.outbox()) == 3 })
	})
}
