package status

import (
	"strings"
	"testing"
	"time"

	"heartbeat/hook/inbox"
)

// TestWhatVanishedIsToldOnceAndCuredByWhatCanBeDone: where some of it was a dead letter
// already, status and doctor named different commands, and it was told as dead letters too.
func TestWhatVanishedIsToldOnceAndCuredByWhatCanBeDone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		missing, lost, others int
		asks                  bool
		verb, text            string
		letters               int // that are told apart from it
	}{
		"nothing":                        {0, 0, 1, true, "", "", 1},
		"missing, the queue asks":        {2, 0, 1, true, "answer", "2 queued prompts vanished", 1},
		"missing, it goes on":            {2, 0, 0, false, "dead-letter", "2 queued prompts vanished", 0},
		"filed":                          {0, 1, 1, false, "dead-letter", "1 queued prompt vanished", 1},
		"filed, the queue asks":          {0, 1, 0, true, "dead-letter", "1 queued prompt vanished", 0},
		"some are filed, the queue asks": {2, 3, 1, true, "answer", "5 queued prompts vanished", 1},
	} {
		a := Agent{Dead: tt.lost + tt.others}
		a.TakenOut = TakenOutOf(
			inbox.Gone{Entries: tt.missing, Why: "the inbox was cut"},
			inbox.DeadCount{Entries: a.Dead, Lost: tt.lost, LastLost: inbox.DeadEntry{Cause: "the inbox was removed"}},
		)
		verb, text := "", ""
		if o := a.TakenOut; o != nil {
			s := o.sign("a", tt.asks, time.Now())
			verb, text = strings.TrimSuffix(s.do.command, " a"), s.text
			if v, remark := o.Cure(tt.asks); v != verb || remark != s.do.remark {
				t.Errorf("%s: %q %q, and shown %+v", name, v, remark, s.do)
			}
		}
		if verb != tt.verb || text != tt.text {
			t.Errorf("%s: %q, %q", name, verb, text)
		}
		letters := 0
		for _, s := range a.deadLetters(time.Now()) {
			letters += s.dead.letters
		}
		if letters != tt.letters {
			t.Errorf("%s: %d dead letters are told beside it, want %d", name, letters, tt.letters)
		}
	}
}
