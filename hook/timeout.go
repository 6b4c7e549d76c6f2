package hook

import "time"

const (
	// company is how long a hook waits at most for an attached person who does
	// nothing.
	company = 24 * time.Hour
	// margin is the time that a waiting hook needs to end by itself after its
	// longest wait.
	margin = 10 * time.Second
)

// longest is how long a Stop hook waits at most, from its start. It then ends by
// itself: if the client's time-out ended it, its last message would be lost, and
// the conversation with it.
func (p Policy) longest() time.Duration {
	longest := company
	if p.Mode == Persist {
		longest = max(longest, p.IdleInterval)
	}
	return max(longest, p.CheckTimeout) + max(p.TypingPause, TypingPause)
}

// StopTimeout is the time-out, in whole seconds, that the client's settings must
// give the Stop hook of a session with this policy.
func (p Policy) StopTimeout() time.Duration {
	return (p.longest() + margin + time.Second - 1).Truncate(time.Second)
}
