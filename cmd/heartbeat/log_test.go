package main

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"time"
)

func TestLogForPeople(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(&personHandler{mu: new(sync.Mutex), w: &out}).With("agent", "a")
	h := log.Handler()
	at := time.Date(2026, 11, 21, 5, 44, 37, 0, time.UTC)
	for _, r := range []struct {
		level slog.Level
		msg   string
		args  []any
	}{
		{slog.LevelInfo, "agent starting", []any{"why", "work is queued"}},
		{slog.LevelWarn, "session ended", []any{"code", 3, "screen", "Do you trust\n\x1b[31mthis?"}},
	} {
		rec := slog.NewRecord(at, r.level, r.msg, 0)
		rec.Add(r.args...)
		if err := h.Handle(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	want := "05:44:37 agent starting agent=a why=\"work is queued\"\n" +
		"05:44:37 WARN session ended agent=a code=3\n  screen:\n    Do you trust\n    \uFFFD[31mthis?\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
