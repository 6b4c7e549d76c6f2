package hook

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/inbox"
)

var errHelp = flag.ErrHelp

// recoverPatience is how long recover waits for the hook lock.
const recoverPatience = 5 * time.Second

// recoverOrphan is the "recover" form: it deals with the entry that a dead
// session left in flight and says on stderr what it did. It ends with 0, or
// with 1 when nothing could be decided or a session lives.
func recoverOrphan(c Call, args []string) int {
	o, err := parseRecover(args)
	if err != nil {
		return flagError(c, err)
	}
	outcome, flight, err := recoverQueue(o, func(note string) { fmt.Fprintln(c.Stderr, "heartbeat-stop: "+note) })
	if err != nil {
		fmt.Fprintf(c.Stderr, "heartbeat-stop: cannot recover: %v\n", err)
		return 1
	}
	line := "heartbeat-stop: recover: " + camelCase(string(outcome))
	if flight != nil {
		line += fmt.Sprintf(" (entry %s, attempt %d)", flight.EntryID, flight.Attempt)
	}
	fmt.Fprintln(c.Stderr, line)
	return 0
}

// recoverQueue recovers the queue that the flags name, and says what was put right.
func recoverQueue(o options, say func(string)) (outcome inbox.Outcome, flight *inbox.InFlight, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), recoverPatience)
	defer cancel()
	err = inbox.HoldOrphaned(ctx, inbox.Place{Inbox: o.inbox}, false, func(q inbox.Orphaned) (err error) {
		outcome, flight, err = q.Recover(inbox.Interruption{
			Policy: o.onOrphan, MaxAttempts: o.maxAttempts, Counts: true,
			Arrived: Arrived, Now: time.Now(),
		})
		for _, note := range q.Notes() {
			say(note)
		}
		return err
	})
	return outcome, flight, err
}

// Arrived looks once in the client's transcript for the hand-over of an entry
// that was offered, and for a tool that was called for it: hooks that were turned
// off, removed or killed in the middle of a turn have not told. It errs on the
// side of not Seen: a client that was killed may not have written what it had.
func Arrived(f inbox.InFlight) inbox.Arrival {
	h := handoverOf(&f)
	var seen, called bool // called since it was seen, or at all where it was not
	kept := false         // it was seen, and another Stop hook had the client stop
	err := eachLine(h.path, h.offset, func(line []byte, _ int64) bool {
		if !seen && h.matches(line) {
			seen, called = true, false
		} else if is, _, tool := client.Claude.Transcript.Answered(line); is {
			kept, called = false, called || tool
		} else if stop, _ := client.Claude.Transcript.Stopped(line); seen && stop != nil && stop.Prevented {
			kept = true
		}
		return !seen || !called
	})
	seen = seen && !kept
	switch {
	case called && (seen || f.State == inbox.Taken):
		return inbox.Worked
	case seen:
		return inbox.Seen
	case err != nil:
		return inbox.Unknown
	}
	return inbox.Unseen
}

// ArrivedIn is Arrived for sessions whose client keeps its conversations in
// configDir: that of a session which began with the entry is looked for.
func ArrivedIn(configDir string) func(inbox.InFlight) inbox.Arrival {
	return func(f inbox.InFlight) inbox.Arrival {
		if f.Transcript == "" && f.Via == inbox.ViaKickoff {
			f.Transcript, _ = FindTranscript(configDir, f.Session) // without one nothing is known
		}
		return Arrived(f)
	}
}

// camelCase gives an outcome as heartbeat-rs names it: NothingToRecover.
func camelCase(s string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(s, "-") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
