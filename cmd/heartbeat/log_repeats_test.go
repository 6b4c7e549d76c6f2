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
func TestTheSameFailureIsLoggedNowAndThen(t *testing.T) {
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

// TestAFailureThatLastsIsLoggedEachHour, not each minute for weeks; after an hour without it,
// it is new.
func TestAFailureThatLastsIsLoggedEachHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(newRepeats(newLog(&out, palette{}, slog.LevelInfo, "text").Handler()))
		fails := func(long time.Duration) (lines int) {
			out.Reset()
			for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(30 * time.Second) {
				log.Warn("cannot handle approvals", "agent", "a", "err", errors.New("no such file"))
			}
			return strings.Count(out.String(), "cannot handle")
		}
		if n := fails(24 * time.Hour); n < 24 || n > 32 {
			t.Errorf("a day of it: %d lines", n)
		}
		time.Sleep(2 * time.Hour)
		if n := fails(4 * time.Minute); n != 3 { // at once, after a minute, after three
			t.Errorf("after two hours: %d lines", n)
		}
	})
}
