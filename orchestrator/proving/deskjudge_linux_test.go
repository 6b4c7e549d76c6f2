package proving_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook/inbox"
	"heartbeat/internal/crash/stepper"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
)

// known is what stands at a moment in the files.
type known struct {
	// flight is the entry that is in flight or waits aside.
	flight *inbox.InFlight
	aside  int
	done   []inbox.Delivery
	dead   []inbox.DeadEntry
	// stands is a verdict that was decided and is not applied; answered is true where only the
	// people's answer is missing; passed is what the ledger says.
	stands, answered, passed bool
	course                   ledger.Course
	runs                     int
	told                     []string
	requests                 []approval.Request
	waiting                  int
	demand                   *ledger.Demand
}

func (b *bench) look(t testing.TB) (k known) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	q, err := inbox.Open(inbox.Place{Inbox: b.agent().Inbox})
	must(err)
	defer q.Close()
	k.flight, err = q.Peek()
	must(err)
	aside, err := q.Waiting()
	must(err)
	if k.aside = len(aside); k.flight == nil && k.aside > 0 {
		k.flight = &aside[0]
	}
	for d, err := range q.Deliveries() {
		must(err)
		k.done = append(k.done, d)
	}
	for d, err := range q.DeadLetters() {
		must(err)
		k.dead = append(k.dead, d)
	}
	book, err := ledger.Open(b.state(), agent)
	must(err)
	delivery := b.delivery(k)
	k.course, k.passed = book.Course(delivery), book.Passed(delivery)
	k.stands = k.course.Verdict != nil && k.flight != nil && k.flight.State == inbox.Checking && k.course.Verdict.Check == k.flight.Check
	k.answered = k.course.Answered != nil
	k.runs = strings.Count(read(t, b.runs()), "\n")
	k.told = strings.Fields(strings.ReplaceAll(read(t, b.journal()), " ", "_"))
	requests, err := b.requests()
	must(err)
	for _, r := range requests {
		if r.Waits() {
			k.waiting++
		} else {
			k.requests = append(k.requests, r)
		}
	}
	k.demand, err = ledger.DemandOf(b.state(), b.agent().Inbox, entryID)
	must(err)
	return k
}

// delivery is the entry's, wherever it is.
func (b *bench) delivery(k known) string {
	switch {
	case k.flight != nil:
		return k.flight.DeliveryID
	case len(k.done) > 0:
		return k.done[0].DeliveryID
	case len(k.dead) > 0:
		return k.dead[0].DeliveryID
	}
	return ""
}

// recovers judges what was left, has a new desk go on, and judges what comes of it.
func (b *bench) recovers(t testing.TB, where string) {
	t.Helper()
	left := b.look(t)
	if len(left.done) > 0 && !left.passed {
		t.Errorf("%s: it is done, and its check has not passed: %+v", where, left)
	}
	// Two kills in a check hold it back for a minute; a person's resume does not.
	if err := attempts.Forget(b.state(), b.agent().Name); err != nil {
		t.Fatal(err)
	}
	if o := stepper.Plain(t, b.desk(t)); o.Status != 0 {
		t.Fatalf("%s: the next desk: status %d, %s%s", where, o.Status, o.Stdout, o.Stderr)
	}
	b.judge(t, where, left, b.look(t))
}

// judge compares what a kill has left with what has become of it.
func (b *bench) judge(t testing.TB, where string, left, now known) {
	t.Helper()
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: %s\nleft: %+v\nnow: %+v", where, fmt.Sprintf(format, args...), left, now)
	}
	again := now.runs - left.runs
	switch checking := left.flight != nil && left.flight.State == inbox.Checking; {
	case again > 0 && (left.stands || left.answered || !checking):
		wrong("the check ran %d times more, although there is an answer", again)
	case checking && !left.stands && !left.answered && again != 1:
		wrong("the check ran %d times more, although there is no answer", again)
	}
	if len(now.told) > 1 || strings.Contains(strings.Join(now.told, " "), string(journal.Forged)) {
		wrong("it is told of %q", now.told)
	}
	if now.aside > 0 {
		wrong("it waits aside")
	}
	if left.stands && left.course.Verdict.Passed != now.course.Verdict.Passed {
		wrong("another verdict")
	}
	b.judgeEnd(now, wrong)
	if notes, _ := filepath.Glob(filepath.Join(b.state(), "checks", "[^.]*")); len(notes) > 0 {
		wrong("a check is noted that does not run: %v", notes)
	}
	if b.Answer == "" {
		return
	}
	if len(now.requests) != 1 || now.waiting > 0 || now.requests[0].State != b.Answer || now.requests[0].Person == b.Rule {
		wrong("the requests: %+v, %d waiting", now.requests, now.waiting)
	} else if len(left.requests) > 0 && !left.requests[0].AnsweredAt.Equal(now.requests[0].AnsweredAt) {
		wrong("it was answered twice: %+v, %+v", left.requests, now.requests)
	}
}

// judgeEnd checks what has become of the entry: one verdict, applied once.
func (b *bench) judgeEnd(now known, wrong func(format string, args ...any)) {
	past := now.course.Past.Iterations
	switch passes := b.Passes && b.Answer != approval.Rejected; {
	case passes:
		if len(now.done) != 1 || len(now.dead) > 0 || now.flight != nil || !now.passed || past != 0 ||
			now.done[0].Verdict == nil || now.done[0].Verdict.Iteration != 1 || now.done[0].ID != entryID {
			wrong("it is not done once")
		}
	case b.Most == 1:
		if len(now.dead) != 1 || len(now.done) > 0 || now.flight != nil || now.passed || now.dead[0].Reason != inbox.MaxIterations || past != 1 {
			wrong("it is not given up once")
		}
	default:
		if f := now.flight; f == nil || f.State != inbox.Unproven || f.Iteration != 2 || f.Output == "" || len(now.done)+len(now.dead) > 0 || now.passed || past != 1 {
			wrong("it is not unproven once")
		}
	}
}
