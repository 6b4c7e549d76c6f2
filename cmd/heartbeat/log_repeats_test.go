package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A state directory that could not be written was said at each event.
func TestTheSameFailureIsLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(newRepeats(newLog(&out, palette{}, slog.LevelInfo, "text").Handler()))
		full := errors.New("no space left on device")
		for range 100 {
			log.With("agent", "a").Warn("cannot publish an agent's state", "err", full)
			log.With("agent", "b").Warn("cannot publish an agent's state", "err", full)
			log.Warn("session ended", "agent", "a")
			time.Sleep(time.Second)
		}
		log.Warn("cannot write the journal", "err", full)
		log.Warn("cannot write the journal", "err", errors.New("read-only file system"))
		for text, want := range map[string]int{
			"agent's state\" agent=a": 0, "state agent=a": 2, "state agent=b": 2, "also=59": 2, "session ended": 100, "the journal": 2,
		} {
			if n := strings.Count(out.String(), text); n != want {
				t.Errorf("%q stands there %d times, want %d", text, n, want)
			}
		}
	})
}
