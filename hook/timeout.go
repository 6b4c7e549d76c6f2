package hook

import "time"

const (
	// company is how long a hook waits at most for a person who has joined and
	// does nothing.
	company = 24 * time.Hour
	// margin is what a waiting hook needs to end by itself once it has waited
	// as long as it may.
	margin = 10 * time.Second
)

// longest is how long a Stop hook waits at most, from its start. It ends by
// itself then: ended by the client's time-out it would lose its last word, and
// the conversation with it.
func (p Policy) longest() time.Duration {
	longest := company
	if p.Mode == Persist {
		longest = max(longest, p.IdleInterval)
	}
	return longest + max(p.TypingPause, TypingPause)
}

// StopTimeout is the time-out that the Stop hook of a session with this policy
// has to be given in the client's settings, in whole seconds.
func (p Policy) StopTimeout() time.Duration { return timeout(p.longest()) }

// WiredTimeout is the same for the hand-wired Stop hook with --mode persist and
// this --idle-interval.
func WiredTimeout(idle time.Duration) time.Duration { return timeout(idle) }

func timeout(longest time.Duration) time.Duration {
	return (longest + margin + time.Second - 1).Truncate(time.Second)
}
