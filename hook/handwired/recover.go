package handwired

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"heartbeat/hook/handover"
	"heartbeat/hook/handwired/files"
	"heartbeat/queue"
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
func recoverQueue(o options, say func(string)) (outcome queue.Outcome, flight *files.Record, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), recoverPatience)
	defer cancel()
	q, err := files.Open(files.Place{Inbox: o.inbox})
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	held, err := q.LockOrphaned(ctx)
	if err != nil {
		return "", nil, err
	}
	outcome, flight, err = held.Recover(files.Interruption{
		Policy: o.onOrphan, MaxAttempts: o.maxAttempts, Arrived: handover.Arrived, Begins: handover.FitsArgument,
	})
	for _, note := range q.Notes() {
		say(note)
	}
	return outcome, flight, errors.Join(err, held.Unlock())
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
