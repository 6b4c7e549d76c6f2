package session

import (
	"slices"
	"time"

	"heartbeat/hook"
)

// answersWindow is how often so many answers as a record keeps may be reported: a
// turn of a model takes about as long, and whatever the agent writes there, the
// journal does not grow faster.
const answersWindow = time.Second

// answers follow what the session's Stop hooks have decided. They are for the journal
// only.
type answers struct {
	last   hook.Answered // that was reported
	window time.Time
	count  int // of this window
}

// fresh are those of the record's that were not reported yet, as far as they may be
// now; at the end of the session all may.
func (a *answers) fresh(kept []hook.Answered, now time.Time, end bool) []hook.Answered {
	left := kept
	if i := slices.Index(kept, a.last); i >= 0 {
		left = kept[i+1:]
	}
	if now.Sub(a.window) >= answersWindow || end {
		a.window, a.count = now, 0
	}
	left = left[:min(len(left), hook.KeptAnswers-a.count)]
	if len(left) > 0 {
		a.count, a.last = a.count+len(left), left[len(left)-1]
	}
	return left
}

// heardAnswers are those of a record that anybody may have written.
func heardAnswers(told []hook.Answered) []hook.Answered {
	told = slices.Clone(told[max(0, len(told)-hook.KeptAnswers):])
	for i := range told {
		a := &told[i]
		if !slices.Contains(hook.AllAnswers(), a.Answer) {
			a.Answer = hook.HeldBack
		}
		a.Done, a.Entry, a.Why = hook.Cut(a.Done, maxDelivery), hook.Cut(a.Entry, maxDelivery), hook.Cut(a.Why, hook.MaxWhy)
	}
	return told
}

// maxDelivery bounds a delivery id.
const maxDelivery = 64

// lastAnswers are those that no report has had yet when the session has ended.
func (s *shim) lastAnswers() []hook.Answered {
	if s.record == nil { // it never began
		return nil
	}
	return s.answers.fresh(s.record.Answers, time.Now(), true)
}
