package handwired

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
)

var errHelp = flag.ErrHelp

// recoverPatience is how long recover waits for the hook lock.
const recoverPatience = 5 * time.Second

// recoverOrphan is the "recover" form: it recovers the entry that a dead session
// left in flight and reports on stderr what it did. It exits with 0, or with 1 when
// it could decide nothing or a session is alive.
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

// recoverQueue recovers the queue that the flags name, and reports what was
// repaired.
func recoverQueue(o options, say func(string)) (outcome inbox.Outcome, flight *inbox.InFlight, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), recoverPatience)
	defer cancel()
	err = inbox.HoldOrphaned(ctx, inbox.Place{Inbox: o.inbox}, false, func(q inbox.Orphaned) (err error) {
		outcome, flight, err = q.Recover(inbox.Interruption{
			Policy: o.onOrphan, MaxAttempts: o.maxAttempts, Counts: true,
			Arrived: func(f inbox.InFlight) inbox.Arrival { return inbox.Arrival(handover.Arrived(f.Given())) },
			Begins:  func(f inbox.InFlight) bool { return handover.FitsArgument(f.Given()) }, Now: time.Now(),
		})
		for _, note := range q.Notes() {
			say(note)
		}
		return err
	})
	return outcome, flight, err
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
