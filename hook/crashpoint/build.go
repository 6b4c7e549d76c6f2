//go:build heartbeat_crash

package crashpoint

import (
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// At ends the process at the stage that HEARTBEAT_CRASH names, as
// "STAGE:KIND". Only the build that tests exit statuses has it.
func At(stage string) {
	at, kind, _ := strings.Cut(os.Getenv("HEARTBEAT_CRASH"), ":")
	if at != stage {
		return
	}
	switch kind {
	case "panic":
		panic("crash point " + stage)
	case "goroutine":
		go func() { panic("crash point " + stage) }()
		time.Sleep(10 * time.Second)
	case "overflow":
		debug.SetMaxStack(16 << 20) // to fill a gigabyte takes a second
		_ = overflow(0)
	case "fatal":
		m := map[int]int{}
		for range 8 {
			go func() {
				for i := 0; ; i++ {
					m[i%8]++
				}
			}()
		}
		time.Sleep(10 * time.Second)
	case "quit":
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
		time.Sleep(10 * time.Second)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(10 * time.Second)
	}
}

//lint:ignore SA5007 it is there to overflow the stack
func overflow(n int) int { return overflow(n+1) + n }
