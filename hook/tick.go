package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
)

// How long a hook waits for the hook lock. The client waits for us, so a hook that
// only records something gives up early.
const (
	lockPatience     = 2 * time.Second
	stopLockPatience = 10 * time.Second
	stdinPatience    = 30 * time.Second
)

// idleTickPrompt is the text of a turn without an entry, as in heartbeat-rs.
const idleTickPrompt = "--- IDLE TICK ---"

// tick is one call of a hook in a session of ours.
type tick struct {
	fence
	call  Call
	began time.Time
	token string
	event *client.Event
	queue *inbox.Queue
	// handOvers is how many hand-overs the session had had when the hook was
	// called.
	handOvers int
	last      *inbox.InFlight // the entry that was in flight
	done      string          // the delivery id of the entry that this Stop has acknowledged
	ear       handover.Ear    // while it waits
	trouble   string          // what was logged last

	// Session is read again each time the hook lock is taken, and nil while the
	// lock is not held: nothing of it is carried from one hold to the next.
	*Session
	before Record // the record as it was read
}

// sessionHook is the "hook" form. It exits with 0, or with 2 when it handed over an
// entry on stderr.
func sessionHook(c Call) (status int) {
	t := tick{began: time.Now()}
	record, ok := t.passes(c.Getenv)
	if !ok {
		return 0
	}
	t.handOvers = record.HandOvers
	c.Stderr = quiet(c.Stderr)
	defer func() {
		if p := recover(); p != nil {
			logLine(t.home, "panic: %v: %s", p, debug.Stack())
			status = 0
		}
	}()
	crashLog(t.home)
	crashPoint("fenced")
	event, err := readPayload(c.Stdin, stdinPatience)
	if err == nil && event.Cut && event.SessionID == "" {
		err = errors.New("the payload was cut off before its session_id")
	}
	if err != nil {
		logLine(t.home, "hook ignored: %v", err)
		return 0
	}
	t.call, t.event, t.token = c, event, c.Getenv(EnvSession)
	t.queue, err = inbox.Open(inbox.Place{
		Inbox: record.Inbox, Home: t.home, Dir: filepath.Dir(t.home), MaxEntry: record.Policy.MaxEntry,
	})
	if err != nil {
		t.log("%v", err)
		return 0
	}
	defer t.queue.Close()
	defer t.exit()
	crashPoint("opened")
	return t.run()
}

// crashLog sends the text of a fatal error, which never reaches the client,
// to hook.log.
func crashLog(home string) {
	f, err := openLog(home)
	if err != nil {
		return
	}
	defer f.Close()
	_ = debug.SetCrashOutput(f, debug.CrashOptions{})
}

func (t *tick) log(format string, args ...any) {
	t.trouble = fmt.Sprintf(format, args...)
	logLine(t.home, "%s: %s", t.event.Name, t.trouble)
}

// enter takes the hook lock and reads the record under it. It returns false when
// that failed or the session is not ours any more.
func (t *tick) enter(patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	held, err := t.queue.Lock(ctx)
	if err != nil {
		t.log("cannot take the hook lock: %v", err)
		return false
	}
	r, err := t.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.log("%v", err)
	}
	t.Session = Under(held, r, t.home)
	if r == nil || !r.BoundAt.IsZero() && r.Client != t.client {
		t.exit()
		return false
	}
	t.before = *r
	return true
}

// read reads the record; nil when the session is not ours any more.
func (t *tick) read() (r *Record, err error) {
	err = inHome(t.home, func(f *durable.Folder) error {
		shown, err := readRecord(f)
		if err != nil {
			return err
		}
		if r = t.terms.record(shown); !r.lives(t.token, f) {
			r = nil
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the session record: %w", err)
	}
	return r, nil
}

// exit releases the hook lock.
func (t *tick) exit() {
	if t.Session == nil {
		return
	}
	for _, note := range t.queue.Notes() {
		t.log("%s", note)
	}
	if err := t.Unlock(); err != nil {
		t.log("cannot release the hook lock: %v", err)
	}
	t.Session = nil
}

func (t *tick) run() int {
	patience := lockPatience
	if t.event.Name == client.Stop {
		patience = stopLockPatience
	}
	if !t.enter(patience) {
		return 0
	}
	crashPoint("locked")
	if stray(t.Record, t.event) {
		t.log("ignored: conversation %s is not the one that is followed", t.event.SessionID)
		return 0
	}
	if !t.heedOthers() || !t.ownReply() {
		return 0
	}
	d, ok := t.decide()
	if !ok {
		return 0
	}
	if t.event.Name == client.SessionStart {
		t.Record.Line.follow(t.Record.Transcript)
		t.Record.Heard.Follow(t.Record.Transcript)
	}
	if status, over := t.settlesFirst(d); over {
		return status
	}
	if ok = t.carryOut(d); !ok {
		t.answers(HeldBack, t.trouble)
	}
	if ok && t.event.StopHookActive && !d.again && t.Record.strangers() && runsAway(t.Record) {
		return t.runAway()
	}
	if ok && d.proving {
		return t.prove()
	}
	if ok && (d.next || d.again) {
		return t.goOn(d)
	}
	if ok {
		t.answersEnd()
	}
	t.save()
	t.exit()
	if len(d.print) > 0 {
		return t.print(d.print)
	}
	return 0
}

// answersEnd records what a Stop is answered that hands over nothing and lets the turn end.
func (t *tick) answersEnd() {
	switch t.Record.Phase {
	case Background:
		t.answers(LetGo, t.Record.whyLetGo())
	case Unattended:
		t.answers(HeldBack, t.trouble)
	}
}

// settlesFirst waits, where the session has Stop hooks of others, for what they decide
// about a turn whose entry is done or claimed to be. over is false if the decision can
// be carried out at once.
func (t *tick) settlesFirst(d decision) (status int, over bool) {
	done := cmp.Or(d.acknowledge, d.check)
	if done == nil || !t.Record.strangers() {
		return 0, false
	}
	waits := d.check != nil // for the verdict, and what follows
	if !waits {
		entry, ok := t.next()
		if !ok {
			return t.giveUp(), true
		}
		waits = entry != nil
	}
	if !settles(t.Record, waits, time.Now()) {
		return 0, false
	}
	return t.settle(done), true
}

// decide makes the pure decision, and makes it again when it wants to see the
// transcript. The lock is released while the transcript is read, because the client
// writes it with a delay.
func (t *tick) decide() (decision, bool) {
	flight, ok := t.flight()
	if !ok {
		return decision{}, false
	}
	t.last = flight
	f, look := t.facts(flight)
	d := decide(t.Record, f)
	if !d.look {
		return d, true
	}
	t.exit()
	evidence := absent
	if look.Wait(d.patience) == inbox.Seen {
		evidence = present
	}
	crashPoint("looked")
	if !t.enter(lockPatience) {
		return decision{}, false
	}
	again, ok := t.flight()
	if !ok {
		return decision{}, false
	}
	t.last = again
	f, _ = t.facts(again)
	if flight != nil && again != nil && again.DeliveryID == flight.DeliveryID && again.Attempt == flight.Attempt {
		f.evidence = evidence
	} else {
		f.evidence = absent
	}
	return decide(t.Record, f), true
}

// flight returns the entry in flight for this session. An entry that another
// session left is the scheduler's to recover: this session then gets nothing.
func (t *tick) flight() (*inbox.InFlight, bool) {
	f, err := t.InFlight()
	if w := t.Record.Work; err == nil && f == nil && w != nil {
		f, err = t.Restore(w.DeliveryID, w.Attempt, inbox.Offering{
			Session: t.Record.Session, PromptID: t.Record.PromptID, Checked: t.Record.Policy.Checked,
		})
	}
	if err == nil && (f == nil || f.Session == t.Record.Session || f.State == inbox.Unproven) {
		if done := t.Heeds(f); done != "" {
			t.done = done
		}
		return f, true
	}
	if err == nil {
		t.log("entry %s is in flight for session %q", f.DeliveryID, f.Session)
	} else {
		t.log("%v", err)
	}
	if t.event.Name == client.Stop && t.event.AgentID == "" {
		leave(t.Record, Unattended, time.Now())
		t.answers(HeldBack, t.trouble)
		t.save()
	}
	return nil, false
}

// facts gathers what the decision depends on, and where the transcript would show
// that the entry arrived.
func (t *tick) facts(flight *inbox.InFlight) (facts, handover.Proof) {
	f := facts{now: time.Now(), handOvers: t.handOvers, event: t.event, client: t.client, flight: flight}
	if flight == nil {
		return f, handover.Proof{}
	}
	p := handover.Of(flight).In(t.event.Transcript)
	if p.Asked {
		f.kickoff = p.Text
	}
	return f, p
}

// carryOut makes the decision about the entry in flight durable.
func (t *tick) carryOut(d decision) bool {
	if d.log != "" {
		t.log("%s", d.log)
	}
	var err error
	if d.advance != "" {
		_, err = t.Advance(d.advance, t.event.PromptID)
		crashPoint("advanced")
	}
	if err == nil && d.goesOn {
		_, err = t.GoesOn(t.event.PromptID)
		crashPoint("went on")
	}
	if err == nil && d.failure != "" {
		_, err = t.Fail(d.failure)
		crashPoint("failed")
	}
	if err == nil && d.void {
		_, err = t.Void()
		crashPoint("voided")
	}
	if err == nil && d.check != nil {
		_, err = t.Check(*d.check)
		crashPoint("claimed")
	}
	if err == nil && d.acknowledge != nil {
		var done *inbox.Delivery
		if done, err = t.Acknowledge(*d.acknowledge); done != nil {
			t.done = done.DeliveryID
		}
		crashPoint("acknowledged")
	}
	if err == nil {
		return true
	}
	t.log("%v", err)
	if t.event.Name == client.Stop {
		leave(t.Record, Unattended, time.Now())
	}
	return false
}

// save writes the record, unless the only news is that one more tool is about to
// run in a turn that was active within the last second.
func (t *tick) save() {
	if t.event.Name == client.PreToolUse && t.before.Phase == Turn && t.Record.Phase == Turn &&
		!t.before.BoundAt.IsZero() && t.before.Ruling == t.Record.Ruling &&
		t.Record.LastEventAt.Sub(t.before.LastEventAt) < time.Second {
		return
	}
	if err := t.Save(); err != nil {
		t.log("%v", err)
	}
	crashPoint("saved")
}

// self names this process.
func self() Process {
	pid := os.Getpid()
	start, _ := startTime(pid)
	return Process{PID: pid, Start: start}
}
