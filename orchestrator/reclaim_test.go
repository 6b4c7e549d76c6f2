package orchestrator

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook"
)

// Space was only given back between sessions: a persistent one that is never
// idle let its inbox grow for as long as it lived.
func TestALiveSessionsDiskSpaceIsGivenBack(t *testing.T) {
	t.Parallel()
	const lines, size = 22, 900_000
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.fleet.Agents[0].Mode = hook.Persist
		r.set("a", persists)
		path := r.agent("a").Inbox
		r.mkdir(r.agent("a").Home)
		if err := os.WriteFile(path, []byte(strings.Repeat(strings.Repeat("x", size)+"\n", lines)), 0o600); err != nil {
			t.Fatal(err)
		}
		before := onDisk(t, path)
		stop := r.run()
		r.sleep(boot + lines*entry + reclaimEvery + time.Minute)
		if starts := r.started("a"); len(starts) != 1 {
			t.Errorf("%d sessions", len(starts))
		}
		r.want("a", Running)
		after := onDisk(t, path)
		if after == before {
			t.Errorf("%d bytes on disk, as before", after)
		}
		if s := stop(); s.Agents[0].Acknowledged != lines {
			t.Errorf("%d of %d done", s.Agents[0].Acknowledged, lines)
		}
	})
}

func onDisk(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0 // moved aside: no holes here
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}
