package hook

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/foreign"
	"heartbeat/hook/hooklog"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// Live is a session as its shim has it: the record of it, in memory, and the answers to its
// hooks. session.json shows the record for the recovery of a session whose shim was killed;
// nothing is read from it here.
type Live struct {
	home  string
	token string
	asks  *asks // what it asks of its scheduler, and has in flight

	// turn is held by who changes the record, for a moment, and stops, which is taken before it, by
	// who decides at the end of a turn what becomes of the entry in flight, until that is carried out.
	turn, stops gate

	mu      sync.Mutex
	record  *Record       // as it was saved last: never changed, but replaced
	shown   durable.Stamp // of session.json as it was written last
	unshown bool          // it could not be
	line    *client.StatusLine
	lineAt  time.Time
	sign    *Sign
	wakes   map[chan struct{}]bool

	// Grant has the scheduler do what something in the session wants, and returns its answer; nil:
	// it gives none. It is set before the first Answer.
	Grant func(ctx context.Context, wish []byte) []byte
}

// Sign is a sign of life that something in a session gives by itself, with words for people. It
// tells that somebody says so, and no more.
type Sign struct {
	At       time.Time
	Text     string
	Delivery string // of the entry in flight then, or ""
}

// MaxSaid bounds what a session may say of itself, in bytes, maxSign with what stands before it,
// and maxStatusLine what the client tells its status line.
const (
	MaxSaid       = 200
	maxSign       = 1 << 10
	maxStatusLine = 256 << 10
)

// MaxWish bounds what something in a session may want of the scheduler, in bytes.
const MaxWish = 16 << 20

// Caller is who has called a hook.
type Caller struct {
	Client Process // whose hook it is
	Hook   Process // the hook's own
}

// NewLive returns a session with a record and a token. Its home is the agent's .heartbeat folder.
// send sends a request to its scheduler and does not wait for anything; the answers come by
// Answered, in the order of the requests.
func NewLive(r *Record, home, token string, send func(wire.Request)) *Live {
	return &Live{
		home: home, token: token, asks: newAsks(send), turn: make(gate, 1), stops: make(gate, 1), record: r, wakes: map[chan struct{}]bool{},
	}
}

// Answered takes an answer of the scheduler.
func (l *Live) Answered(a wire.Answer) {
	for _, note := range a.Notes {
		l.log("%s", note)
	}
	l.asks.take(a)
	l.rouse()
}

// Unanswered says that the scheduler has gone: no answer comes any more.
func (l *Live) Unanswered() {
	l.asks.end()
	l.rouse()
}

// Queued says that the agent's queue has changed: a hook that waits asks for what it holds.
func (l *Live) Queued() {
	l.asks.mu.Lock()
	l.asks.heard++
	l.asks.mu.Unlock()
	l.rouse()
}

// Moved says that what was in flight may have been moved, by the verdict of a check.
func (l *Live) Moved() {
	a := l.asks
	a.mu.Lock()
	a.heard++
	if a.known {
		look := wire.Step{Do: wire.Look}
		if a.flight != nil {
			look.At = wire.RefOf(&a.flight.Entry)
		}
		a.put(look)
	}
	a.mu.Unlock()
	l.rouse()
}

// InFlight returns what is in flight for the session, or nil. It is not to be changed.
func (l *Live) InFlight() *queue.Given {
	if g := l.asks.now(); g != nil && g.Handover.Session == l.Record().Session {
		return g
	}
	return nil
}

// IsUnproved reports whether what is in flight, perhaps since an earlier session, is left to a check
// or to its next iteration.
func (l *Live) IsUnproved() bool {
	g := l.asks.now()
	return g != nil && (g.State == queue.Checking || g.State == queue.Unproven)
}

// Count asks how much is queued; Depth has the last answer, nil before the first.
func (l *Live) Count() { l.asks.ask(wire.Step{Do: wire.Count}) }

// Heard is how often the queue was said to have changed.
func (l *Live) Heard() int {
	l.asks.mu.Lock()
	defer l.asks.mu.Unlock()
	return l.asks.heard
}

// Depth is how much was queued when it was counted last.
func (l *Live) Depth() *wire.Depth {
	l.asks.mu.Lock()
	defer l.asks.mu.Unlock()
	return l.asks.depth
}

// Record returns the record as it was saved last. It is not to be changed.
func (l *Live) Record() *Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record
}

// Told returns what the client has told its status line last about the conversation that is
// followed, and when; nil: nothing yet. It is the same value until it tells something again.
func (l *Live) Told() (*client.StatusLine, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.line == nil || l.line.SessionID != l.record.ClientSession {
		return nil, time.Time{}
	}
	return l.line, l.lineAt
}

// Sign returns the last sign of life that something in the session has given, or nil.
func (l *Live) Sign() *Sign {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sign
}

// clone returns a copy that can be changed while others read the record.
func (r *Record) clone() *Record {
	c := *r
	if r.Work != nil {
		w := *r.Work
		c.Work = &w
	}
	if r.Ruling != nil {
		w := *r.Ruling
		c.Ruling = &w
	}
	c.BackgroundTasks = r.BackgroundTasks[:len(r.BackgroundTasks):len(r.BackgroundTasks)]
	c.Gates = r.Gates[:len(r.Gates):len(r.Gates)]
	c.Answers = r.Answers[:len(r.Answers):len(r.Answers)]
	return &c
}

// With returns a copy of the record with changes.
func (r *Record) With(changes ...func(*Record)) *Record {
	c := r.clone()
	for _, change := range changes {
		change(c)
	}
	return c
}

// save makes a record the session's, and shows it. What is saved holds whatever the disk does;
// the error is about session.json.
func (l *Live) save(r *Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = r.clone()
	return l.show()
}

// show writes session.json, and wakes who waits.
func (l *Live) show() error {
	l.wake()
	err := l.record.write(l.home)
	if l.unshown = err != nil; !l.unshown {
		l.shown = durable.StampOf(os.Lstat(recordPath(l.home)))
	}
	return err
}

// Shows reports whether session.json is as it was written last.
func (l *Live) Shows() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.unshown && l.shown.Same(durable.StampOf(os.Lstat(recordPath(l.home))))
}

// ShowAgain writes session.json, which somebody has changed or removed.
func (l *Live) ShowAgain() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.show()
}

// Watch reports on a channel that the session has changed, until stop is called.
func (l *Live) Watch() (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakes[c] = true
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.wakes, c)
	}
}

func (l *Live) rouse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake()
}

func (l *Live) wake() {
	for c := range l.wakes {
		select {
		case c <- struct{}{}:
		default: // it has not looked since the last one
		}
	}
}

// Answer answers one hook, and closes its connection. who says who has connected; an error: it is
// nobody that is answered. A panic ends this answer only.
func (l *Live) Answer(ctx context.Context, conn ask.Conn, who func() (Caller, error)) {
	defer conn.Close()
	defer func() {
		if p := recover(); p != nil {
			hooklog.Line(l.home, "panic: %v: %s", p, debug.Stack())
		}
	}()
	// Once the session ends nobody is waited for.
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	r := l.Record() // as the hook was called
	q, err := ask.Receive(conn)
	if err != nil {
		l.log("hook ignored: %v", err)
		return
	}
	defer q.Close() //nolint:errcheck // the hook has gone
	if subtle.ConstantTimeCompare([]byte(q.Token), []byte(l.token)) != 1 || r.Phase == Ended {
		return
	}
	caller, err := who()
	switch {
	case q.Kind == ask.Alive:
		l.alive(q, caller)
	case q.Kind == ask.Wish:
		l.wish(ctx, q)
	case err != nil:
		l.log("hook ignored: %v", err)
	case q.Kind == ask.Event:
		l.event(ctx, q, caller, r)
	case q.Kind == ask.Line:
		l.tell(q, caller)
	}
}

func (l *Live) log(format string, args ...any) { hooklog.Line(l.home, format, args...) }

// isBound reports whether a process is the client that the session follows, or may become it.
func (r *Record) isBound(p Process) bool { return r.BoundAt.IsZero() || r.Client == p }

// event answers one hook call of the session's client; r is the record as it was then.
func (l *Live) event(ctx context.Context, q *ask.Question, c Caller, r *Record) {
	if !r.isBound(c.Client) {
		return
	}
	event, err := client.Claude.Hooks.Read(q.Payload)
	if err == nil && event.Cut && event.SessionID == "" {
		err = errors.New("the payload was cut off before its session_id")
	}
	if err != nil {
		l.log("hook ignored: %v", err)
		return
	}
	ctx, done := q.Work(ctx, event.Name == client.Stop)
	defer done()
	t := &tick{
		live: l, home: l.home, ctx: ctx, give: q.Give, client: c.Client, me: c.Hook, began: time.Now(), event: event, handOvers: r.HandOvers,
	}
	defer t.exit()
	t.run()
}

// tell keeps what the client tells its status line. While a person has joined, theirs is shown.
func (l *Live) tell(q *ask.Question, c Caller) {
	data, err := io.ReadAll(io.LimitReader(q.Payload, maxStatusLine))
	if err != nil {
		return
	}
	r, now := l.Record(), time.Now()
	if !r.isBound(c.Client) {
		return
	}
	if line, err := client.Claude.StatusLine(data, now); err == nil {
		l.mu.Lock()
		l.line, l.lineAt = &line, now
		l.wake()
		l.mu.Unlock()
	}
	if r.Attached > 0 {
		q.Say(ask.Answer{Kind: ask.Theirs})
	}
}

// alive keeps a sign of life. What runs in the client says so by its own environment, which has
// another number in a container, or by who has begun its process session.
func (l *Live) alive(q *ask.Question, c Caller) {
	data, err := io.ReadAll(io.LimitReader(q.Payload, maxSign))
	if err != nil {
		return
	}
	said, text, _ := strings.Cut(string(data), " ")
	l.mu.Lock()
	defer l.mu.Unlock()
	pid, err := strconv.Atoi(said)
	if bound := l.record.Client; !l.record.BoundAt.IsZero() && (err != nil || bound.PID != pid) && bound != c.Client {
		return // a client inside of the session's own
	}
	l.sign = &Sign{At: time.Now(), Text: foreign.Cut(text, MaxSaid)}
	if w := l.record.Work; w != nil {
		l.sign.Delivery = w.DeliveryID
	}
	l.wake()
	q.Say(ask.Answer{Kind: ask.Print, Body: []byte(l.record.Session)})
}

// wish passes on what something in the session wants of the scheduler. Whose client runs it does
// not matter: whatever has the token belongs to the session.
func (l *Live) wish(ctx context.Context, q *ask.Question) {
	data, err := io.ReadAll(io.LimitReader(q.Payload, MaxWish+1))
	if err != nil || len(data) > MaxWish || l.Grant == nil {
		return
	}
	ctx, done := q.Work(ctx, true)
	defer done()
	if answer := l.Grant(ctx, data); len(answer) > 0 {
		q.Say(ask.Answer{Kind: ask.Print, Body: answer})
	}
}

// SayAlive gives a sign of life of the session that a process belongs to, by its environment:
// what its client runs, or what that has started. The error matches ask.ErrNoSession where it
// belongs to none; a client inside of the session's own is none of ours.
func SayAlive(getenv func(string) string, text string) (session string, err error) {
	payload := getenv(client.Claude.Variables.Caller) + " " + foreign.Cut(text, MaxSaid)
	a, err := ask.Put(getenv, ask.Alive, []byte(payload))
	if err != nil && !errors.Is(err, ask.ErrNoSession) {
		err = fmt.Errorf("cannot give a sign of life: %w", err)
	}
	if err == nil && a.Kind != ask.Print {
		err = ask.ErrNoSession
	}
	return string(a.Body), err
}
