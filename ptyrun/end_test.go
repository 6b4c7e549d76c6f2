package ptyrun

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestATreeThatForksIsChased: on a busy machine one look for processes took so long
// that a tree which forks was given up after five seconds, and lived.
func TestATreeThatForksIsChased(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		forks int // processes, each of which is found in another look
		left  int
		took  time.Duration
	}{
		"one":                   {1, 0, time.Second},
		"for half a minute":     {30, 0, chaseWait},
		"for ever":              {1_000_000, 1, chaseWait + 2*time.Second},
		"one that does not die": {0, 1, killWait + 2*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				looks := 0
				find := func() ([]process, error) {
					looks++
					switch p := (process{identity: identity{pid: 1<<30 + looks}}); { // there is none
					case tt.forks == 0:
						p.pid = 1 << 30
						time.Sleep(time.Millisecond)
						return []process{p}, nil
					case looks > tt.forks:
						return nil, nil
					default:
						time.Sleep(time.Second)
						return []process{p}, nil
					}
				}
				began := time.Now()
				_, left := endAll(find, syscall.SIGKILL, killWait, chaseWait, nil)
				if took := time.Since(began); len(left) != tt.left || took > tt.took {
					t.Errorf("%d are left after %v, want %d within %v", len(left), took, tt.left, tt.took)
				}
			})
		})
	}
}
