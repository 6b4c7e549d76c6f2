package handwired

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/crashpoint"
	"heartbeat/hook/foreign"
	"heartbeat/hook/handover"
	"heartbeat/hook/handwired/files"
	"heartbeat/hook/harden"
	"heartbeat/hook/hooklog"
	"heartbeat/hook/process"
	"heartbeat/hook/wake"
	"heartbeat/queue"
)

// payloadPatience is how long the hand-wired hook waits for a payload.
// heartbeat-rs never read one, so there may be none.
var payloadPatience = 5 * time.Second

// lockPatience is how long the hook waits for the hook lock: the client waits for us.
const lockPatience = 10 * time.Second

// wired is one call of heartbeat-rs's hand-wired Stop hook.
type wired struct {
	options
	call  Call
	event *client.Event // nil without one that is whole
	// client is the calling client, where it is known; parent is then our parent
	// process: a shell, or the client itself.
	client process.Process
	parent int
	queue  *files.Queue
	before *files.Record // what was in flight when the hook was called
	last   *files.Record // what was acknowledged
}

// stop is the Stop hook. It fails open: when something goes wrong, it
// reports that and approves the stop.
func stop(c Call, args []string) (status int) {
	o, err := parseStop(args)
	if err != nil {
		return flagError(c, err)
	}
	w := &wired{options: o, call: c, parent: os.Getppid()}
	w.client = caller(c.Getenv)
	if o.deliver == asStderr {
		w.call.Stderr = harden.Quiet(c.Stderr)
	}
	defer func() {
		if p := recover(); p != nil {
			w.say("panic: %v: %s", p, debug.Stack())
			status = 0
		}
	}()
	w.queue, err = files.Open(files.Place{Inbox: o.inbox})
	if err != nil {
		return w.approve(err)
	}
	defer w.queue.Close()
	if w.queue.SessionLives() {
		w.say("refused: a session of heartbeat lives in %q and has its own hooks; remove this one", filepath.Dir(o.inbox))
		return 0
	}
	crashpoint.At("alone")
	defer w.sayNotes()
	w.before, _ = w.queue.Peek() // whatever is wrong is found under the lock
	if !w.read() {
		return 0
	}
	return w.stop()
}

// read reads the payload. There may be none, because heartbeat-rs never read one.
// It returns false for a payload that was cut off: its writer has ended.
func (w *wired) read() bool {
	p, err := readPayload(w.call.Stdin, payloadPatience)
	switch {
	case err == nil && p.Cut:
		w.say("the payload was cut off: nothing is acknowledged or handed over")
		return false
	case err == nil:
		w.event = p
	case !errors.Is(err, client.ErrNoPayload) || errors.Is(err, errLate):
		w.say("%v", err)
	}
	return true
}

// alive reports whether there is still a client to hand something over to.
func (w *wired) alive() bool {
	if w.client.PID != 0 {
		return process.Lives(w.client)
	}
	return os.Getppid() == w.parent
}

// caller returns the client that runs this process, by its environment; zero: heartbeat-rs's
// clients did not say.
func caller(getenv func(string) string) process.Process {
	pid, err := strconv.Atoi(getenv(client.Claude.Variables.Caller))
	if err != nil {
		return process.Process{}
	}
	return process.Of(pid)
}

// flagError reports what is wrong with the command line. The exit status is never
// 2.
func flagError(c Call, err error) int {
	if errors.Is(err, errHelp) {
		_, _ = c.Stdout.Write([]byte(usage))
		return 0
	}
	fmt.Fprintf(c.Stderr, "heartbeat-stop: %v\n", err)
	return 1
}

// say writes a message to hook.log, and to stderr as heartbeat-rs does, unless
// stderr carries entries.
func (w *wired) say(format string, args ...any) {
	hooklog.Line(filepath.Dir(w.inbox), format, args...)
	if w.deliver != asStderr {
		fmt.Fprintf(w.call.Stderr, "heartbeat-stop: "+format+"\n", args...)
	}
}

// sayNotes reports what the queue repaired.
func (w *wired) sayNotes() {
	for _, note := range w.queue.Notes() {
		w.say("%s", note)
	}
}

// approve lets the turn end. The signal file tells the launcher.
func (w *wired) approve(err error) int {
	switch {
	case errors.Is(err, files.ErrNeedsOperator) && w.queue != nil:
		w.say("%v; %s", err, w.queue.ByHand())
	case err != nil:
		w.say("%v", err)
	}
	if w.signalFile == "" {
		return 0
	}
	if err := touch(w.signalFile); err != nil {
		w.say("cannot touch the signal file: %v", err)
	}
	return 0
}

// touch sets a file's time, or creates the file. It never opens an existing file.
func touch(path string) error {
	now := time.Now()
	err := os.Chtimes(path, now, now)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // somebody else did
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func (w *wired) lock() (*files.Held, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	return w.queue.Lock(ctx)
}

// stop deals with the entry in flight, then looks for the next one.
func (w *wired) stop() int {
	held, err := w.lock()
	if err != nil {
		return w.approve(err)
	}
	crashpoint.At("locked")
	v, err := w.settle(held)
	if err != nil || v.holds() {
		held.Unlock()
		if err != nil {
			return w.approve(err)
		}
		return 0
	}
	text, offered, err := w.offer(held, v)
	held.Unlock()
	switch {
	case err == nil:
		return w.hand(text, offered)
	case !errors.Is(err, files.ErrEmpty):
		return w.approve(err)
	case w.mode == persist:
		return w.wait()
	}
	return w.approve(nil)
}

// settle finds out what the Stop means for the entry in flight, and acknowledges
// the entry if it is done.
func (w *wired) settle(held *files.Held) (wiredVerdict, error) {
	flight, err := held.InFlight()
	if err != nil || flight == nil {
		return wiredNext, err
	}
	v := w.judge(flight)
	switch v {
	case wiredTwin:
		w.say("entry %s was handed over by another call meanwhile", flight.DeliveryID)
	case wiredHold:
		w.say("entry %s is in flight for session %s: nothing is handed over here; "+
			"if that session is gone, run: heartbeat-stop recover --inbox %s",
			flight.DeliveryID, flight.Session, strconv.Quote(w.inbox))
	case wiredUnread:
		w.say("entry %s stays in flight: no payload tells whether session %s had it", flight.DeliveryID, flight.Session)
	case wiredNext:
		a := files.Acknowledgement{Now: time.Now()}
		if w.event != nil {
			a.Session, a.Reply, a.Abandoned = w.event.SessionID, w.replyOf(flight), w.event.Running()
		}
		err = held.Acknowledge(a)
		w.last = flight
		crashpoint.At("acknowledged")
	case wiredAgain:
	}
	return v, err
}

// wiredVerdict says what a hand-wired Stop means for the entry in flight.
type wiredVerdict int

const (
	wiredNext   wiredVerdict = iota // the session had it, or there is none: the next one is its turn
	wiredAgain                      // it did not arrive, as far as is known: it is offered again
	wiredTwin                       // it was handed over by another call of the same Stop
	wiredHold                       // it is another session's
	wiredUnread                     // it is a session's, and nothing tells whose call this is
)

// holds reports whether nothing may be handed over.
func (v wiredVerdict) holds() bool { return v >= wiredTwin }

// judge decides what the call means for the entry in flight. An entry that was
// offered to an unknown session is acknowledged by the next call, as in
// heartbeat-rs; otherwise proof is required. The same client counts as the same
// session, even when a person has started another conversation in it (/clear).
func (w *wired) judge(f *files.Record) wiredVerdict {
	p := w.event
	switch {
	case f.Via == queue.ViaStop && f.State == queue.Offered && (w.before == nil || !w.before.IsSameOffer(f)):
		return wiredTwin
	case p == nil || p.SessionID == "":
		if f.Session != "" {
			return wiredUnread
		}
		return wiredNext
	case f.Session != "" && f.Session != p.SessionID && (f.Client == "" || f.Client != w.client.String()):
		return wiredHold
	case f.State != "" && f.State != queue.Offered:
		return wiredNext
	case p.StopHookActive && (f.PromptID == "" || f.PromptID == p.PromptID):
		return wiredNext
	}
	if handover.Of(f.Given()).In(p.Transcript).Wait(client.Claude.Transcript.Behind) == queue.Seen {
		return wiredNext
	}
	return wiredAgain
}

// errGone means that the client has ended.
var errGone = errors.New("the client has ended: nothing is handed over")

// offer records the next entry as offered, or offers the one in flight again, and
// returns its text.
func (w *wired) offer(held *files.Held, v wiredVerdict) (text string, f *files.Record, err error) {
	if !w.alive() {
		return "", nil, errGone
	}
	o := files.Offering{Via: queue.ViaStop, Unwatched: true, Unmarked: !w.markRepeats, Client: w.client.String()}
	if w.event != nil {
		o.Session, o.PromptID, o.Transcript = w.event.SessionID, w.event.PromptID, w.event.Transcript
	}
	home := filepath.Dir(w.inbox)
	if v != wiredNext {
		if again, _ := held.InFlight(); again != nil { // offering it says what is wrong
			o.File = handover.FileFor(home, o.Transcript, handover.Whole(again.Given()))
		}
		o.TranscriptOffset = handover.TranscriptSize(o.Transcript)
		f, err = held.OfferAgain(o)
	} else {
		f, err = w.offerNext(held, home, o)
	}
	if err != nil {
		return "", nil, err
	}
	crashpoint.At("offered")
	if text, err = handover.TextOf(f.Given()); err != nil {
		_, back := held.TakeBack(f)
		return "", nil, errors.Join(err, back)
	}
	return text, f, nil
}

func (w *wired) offerNext(held *files.Held, home string, o files.Offering) (*files.Record, error) {
	e, err := held.Next()
	if err != nil {
		return nil, err
	}
	var last *queue.Given
	if w.last != nil {
		last = w.last.Given()
	}
	o.File = handover.FileFor(home, o.Transcript, e.Prompt)
	o.TranscriptOffset = handover.NextOffset(o.Transcript, e.Prompt, last, handover.NextPatience)
	return held.Offer(e, o)
}

// hand gives a text to the client. offered is the entry that the text is for, or
// nil. If the client did not get the text, the offer is taken back.
func (w *wired) hand(text string, offered *files.Record) int {
	status, err := deliver(w.call, w.deliver, text)
	if err == nil {
		return status
	}
	w.say("cannot hand over: %v", err)
	if offered == nil {
		return status
	}
	held, err := w.lock()
	if err == nil {
		_, err = held.TakeBack(offered)
		err = errors.Join(err, held.Unlock())
	}
	if err != nil {
		w.say("%v", err)
	}
	return status
}

// wait holds the turn open until there is work or idle-interval has passed.
func (w *wired) wait() int {
	if w.deliver == asJSON {
		seconds := strconv.FormatFloat(w.idle.Seconds(), 'f', -1, 64)
		fmt.Fprintf(w.call.Stderr, "idle sleep %ss - ensure hook timeout > %ss\n", seconds, seconds)
	}
	idleAt := time.Now().Add(w.idle)
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	watch := wake.Files(told.Done(), w.inbox)
	defer watch.Close()
	crashpoint.At("waiting")
	for watch.Next(idleAt) {
		held, err := w.lock()
		if err != nil {
			return w.approve(err)
		}
		text, offered, err := w.offer(held, wiredNext)
		held.Unlock()
		switch {
		case err == nil:
			return w.hand(text, offered)
		case !errors.Is(err, files.ErrEmpty):
			return w.approve(err)
		case !time.Now().Before(idleAt):
			return w.hand(handover.IdleTick, nil)
		}
	}
	return 0
}

// replyOf returns the answer of a hand-wired session. The answer at the Stop before
// is in the outbox.
func (w *wired) replyOf(f *files.Record) string {
	reply := w.event.LastMessage
	if last, err := w.queue.LastDelivery(); err != nil || reply == "" || last == nil || last.Reply != foreign.Cut(reply, queue.MaxReply) {
		return reply
	}
	if !handover.Of(f.Given()).In(w.event.Transcript).Answered(client.Claude.Transcript.Behind) {
		return ""
	}
	return reply
}
