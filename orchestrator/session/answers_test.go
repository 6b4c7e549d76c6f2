package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
)

// TestEachAnswerIsReportedOnce, in its order, however often the record is read.
func TestEachAnswerIsReportedOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var kept []hook.Answered
	var a answers
	got := 0
	for i := range 100 {
		now = now.Add(300 * time.Millisecond)
		kept = append(kept, hook.Answered{At: now, Answer: hook.Gave, Entry: fmt.Sprint(i)})
		kept = kept[max(0, len(kept)-hook.KeptAnswers):]
		for range 3 {
			for _, one := range a.fresh(kept, now, false) {
				if one.Entry != fmt.Sprint(got) {
					t.Fatalf("answer %s, want %d", one.Entry, got)
				}
				got++
			}
		}
	}
	if got += len(a.fresh(kept, now, true)); got != 100 {
		t.Errorf("%d of 100", got)
	}
}

// TestForgedAnswersAreFew: what an agent writes there for an hour is a line in an
// eighth of a second, and short.
func TestForgedAnswersAreFew(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var a answers
	bytes, lines, long := 0, 0, strings.Repeat("x", 10_000)
	for i := range 6_000 { // every 100 ms
		now = now.Add(100 * time.Millisecond)
		var forged []hook.Answered
		for j := range 20 {
			forged = append(forged, hook.Answered{At: now, Answer: "made up", Entry: fmt.Sprint(i, j), Why: long})
		}
		for _, one := range a.fresh(heardAnswers(forged), now, false) {
			if one.Answer != hook.HeldBack {
				t.Fatalf("it takes the word %q", one.Answer)
			}
			lines, bytes = lines+1, bytes+len(one.Why)+len(one.Entry)
		}
	}
	if lines > 600*hook.KeptAnswers+hook.KeptAnswers || bytes > lines*2*hook.MaxWhy {
		t.Errorf("%d lines, %d bytes in 10 minutes", lines, bytes)
	}
}
