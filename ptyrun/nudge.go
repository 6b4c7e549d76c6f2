package ptyrun

import "time"

// escapePause lies between ESC ESC and the prompt: together they would be
// read as one key.
const escapePause = 50 * time.Millisecond

// echoGrace is how long after a nudge output counts as the terminal's echo of
// it, not as recovery.
const echoGrace = 20 * time.Second

// nudge is what a silent terminal asks for.
type nudge int

const (
	keepWaiting nudge = iota
	typePrompt
	giveUp
)

// nudger decides when a silent terminal gets its prompt.
type nudger struct {
	timeout time.Duration // 0: never
	retries int

	used int       // nudges since the last real output
	at   time.Time // of the last nudge
}

// look says what to do at now when the terminal was last heard of at last.
// It counts on the nudge being given.
func (n *nudger) look(now, last time.Time) nudge {
	if n.timeout <= 0 {
		return keepWaiting
	}
	if n.used > 0 && last.After(n.at.Add(echoGrace)) {
		n.used = 0
	}
	quiet := last
	if n.at.After(quiet) {
		quiet = n.at
	}
	if now.Sub(quiet) < n.timeout {
		return keepWaiting
	}
	if n.used >= n.retries {
		return giveUp
	}
	n.used++
	n.at = now
	return typePrompt
}
