package ptyrun

import (
	"slices"
	"time"
)

// escapePause is the time between ESC ESC and the prompt: without it they would be
// read as one key.
const escapePause = 50 * time.Millisecond

// echoGrace is how long output after a nudge counts as the terminal's echo of it,
// not as a recovery.
const echoGrace = 20 * time.Second

// nudge is what to do about a silent terminal.
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
	// hookSeen is when a hook that the child waits for was last seen, or found to have
	// ended; waits is whether it was there then.
	hookSeen time.Time
	waits    bool
}

// sees notes whether the child waits for a hook at now. One that has ended since the
// last look may have done so just now: the silence starts over then, too.
func (n *nudger) sees(hook bool, now time.Time) {
	if hook || n.waits {
		n.hookSeen = now
	}
	n.waits = hook
}

// silent reports whether the terminal has been silent long enough to be nudged,
// whether or not a hook is the reason.
func (n *nudger) silent(now, last time.Time) bool {
	return n.timeout > 0 && now.Sub(n.quietSince(last)) >= n.timeout
}

// quietSince returns when the silence began that counts.
func (n *nudger) quietSince(last time.Time) time.Time {
	return slices.MaxFunc([]time.Time{last, n.at, n.hookSeen}, time.Time.Compare)
}

// look says what to do at now when the terminal last showed something at last. It
// assumes that the nudge will be given.
func (n *nudger) look(now, last time.Time) nudge {
	if n.used > 0 && (last.After(n.at.Add(echoGrace)) || n.hookSeen.After(n.at)) {
		n.used = 0
	}
	if !n.silent(now, last) {
		return keepWaiting
	}
	if n.used >= n.retries {
		return giveUp
	}
	n.used++
	n.at = now
	return typePrompt
}

// waitsFor reports whether a process below the child has one of the names.
func (c *Child) waitsFor(names []string) bool {
	if len(names) == 0 {
		return false
	}
	procs, err := snapshot()
	if err != nil {
		return false
	}
	below := map[int]bool{c.PID(): true}
	for grown := true; grown; {
		grown = false
		for _, p := range procs {
			if below[p.ppid] && !below[p.pid] {
				if slices.Contains(names, p.command) {
					return true
				}
				below[p.pid], grown = true, true
			}
		}
	}
	return false
}
