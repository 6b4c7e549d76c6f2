package simulate

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"
)

// itemKind says what an item in the queue is.
type itemKind int

const (
	itemStart   itemKind = iota // the session's start
	itemPrompt                  // a prompt from the command line or the keyboard
	itemCommand                 // a slash command
	itemNotice                  // a task notification
	itemTimed                   // a prompt of the directory's timetable
)

// item is something the session does next, one at a time.
type item struct {
	kind      itemKind
	text      string
	before    []string // prompts that go with it, before it
	system    []string // texts that go with it
	submitted bool     // UserPromptSubmit has run
	queued    bool     // a command typed while something else ran
	rewoken   bool     // by a Stop hook that nobody waited for
}

// ending is how a job ended.
type ending int

const (
	endIdle    ending = iota // went idle: idle_prompt follows
	endSilent                // idle, and nothing says so: aborted, blocked, a command
	endFailed                // as endIdle, and -p exits 1
	endBlocked               // as endSilent; the prompt is typed in again
	endSession               // /exit
)

// Why a job's context ended.
var (
	errInterrupted = errors.New("interrupted by the user")
	errEnding      = errors.New("the client is ending")
)

// again is how soon the second ^C or ^D must follow the first.
const again = 2 * time.Second

// loop is the client's main loop. Only its own goroutine touches it.
type loop struct {
	s       *session
	queue   []item
	cancel  context.CancelCauseFunc // of the running job; nil when idle
	done    chan ending
	running item
	result  ending // of the last job
	line    string // typed so far
	lastKey key    // of ^C and ^D
	lastAt  time.Time
	idle    *time.Timer
	leaving *dialog // "background work is running"
	code    int
	reason  string
	over    bool
}

// run works through the queue until the client is to end.
func (l *loop) run(ctx context.Context) {
	s := l.s
	l.done = make(chan ending, 1)
	l.idle = time.NewTimer(time.Hour)
	l.idle.Stop()
	limit := time.NewTimer(s.args.maxTime)
	defer limit.Stop()
	for {
		if l.startNext(ctx); l.over {
			break
		}
		select {
		case end := <-l.done:
			l.finished(end)
		case it := <-s.arrivals:
			l.queue = append(l.queue, it)
		case <-s.typedIn:
			// The next item is looked for.
		case k := <-l.keys():
			l.key(k)
		case sig := <-s.signals:
			l.signal(sig)
		case code := <-s.exitNow:
			l.end(code, "other")
		case <-l.idle.C:
			s.beside.Go(func() { s.notify(s.life, "idle_prompt", "Claude is waiting for your input") })
		case <-limit.C:
			l.end(1, "other")
		}
	}
	if s.term != nil {
		s.term.stopWaiting()
	}
	if l.cancel != nil {
		l.cancel(errEnding)
		<-l.done
	}
}

func (l *loop) keys() <-chan key {
	if l.s.term == nil {
		return nil
	}
	return l.s.term.keys
}

// startNext starts the next item as a job when none runs.
func (l *loop) startNext(ctx context.Context) {
	if l.cancel == nil && len(l.queue) == 0 {
		if texts, system := l.s.takeWaiting("dequeue"); len(texts) > 0 {
			last := len(texts) - 1
			l.queue = append(l.queue, item{
				kind: itemPrompt, text: texts[last], before: texts[:last], system: system, submitted: true,
			})
		}
	}
	if l.cancel != nil || len(l.queue) == 0 || l.leaving != nil {
		if l.cancel == nil && !l.s.interactive && l.leaving == nil {
			l.end(l.printStatus(), "other")
		}
		return
	}
	it := l.queue[0]
	l.queue, l.running = l.queue[1:], it
	l.idle.Stop()
	if it.queued {
		l.s.queueOperation("dequeue", "")
	}
	ctx, l.cancel = context.WithCancelCause(ctx)
	go func() { l.done <- l.s.do(ctx, it) }()
}

// finished takes note of a job's end.
func (l *loop) finished(end ending) {
	l.cancel(nil)
	l.cancel, l.result = nil, end
	switch end {
	case endIdle, endFailed:
		l.idle.Reset(l.s.script.IdleAfter.Or(60 * time.Second))
	case endBlocked:
		if l.running.kind == itemPrompt {
			l.line = l.running.text + l.line
		}
	case endSession:
		l.leave()
	}
}

func (l *loop) printStatus() int {
	if l.result == endFailed {
		return 1
	}
	return 0
}

// end stops the loop; the first reason stays.
func (l *loop) end(code int, reason string) {
	if !l.over {
		l.over, l.code, l.reason = true, code, reason
	}
}

// leave ends the session as a person does, which asks first while background
// tasks run.
func (l *loop) leave() {
	if len(l.s.runningTasks()) == 0 {
		l.end(0, "prompt_input_exit")
		return
	}
	l.leaving = newDialog()
	l.s.term.tell("Background work is running\n\n ❯ 1. Exit anyway\n   2. Stay\n\nEnter to confirm · Esc to cancel")
}

func (l *loop) signal(sig os.Signal) {
	name := map[os.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP", syscall.SIGINT: "INT"}[sig]
	busy := sig == syscall.SIGTERM && l.cancel != nil && l.s.broken("term-only-if-idle")
	if slices.Contains(l.s.script.IgnoreSignals, name) || busy || sig == syscall.SIGTERM && l.s.broken("term-ignored") {
		return
	}
	switch sig {
	case syscall.SIGTERM:
		l.end(143, "other")
	case syscall.SIGINT:
		l.end(0, "other")
	case syscall.SIGHUP:
		// A closed terminal sends SIGHUP as well.
		if l.s.term != nil && l.s.term.gone() {
			l.end(0, "other")
		}
		l.end(129, "other")
	case syscall.SIGQUIT:
		die()
	}
}

// die ends the process at once, without a word to anyone.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// key does what a key does: for a dialog if one is open, else for the prompt.
func (l *loop) key(k key) {
	if k.kind == keyGone {
		l.end(0, "other")
		return
	}
	if l.leaving != nil {
		l.leavingKey(k)
		return
	}
	if d := l.s.openDialog(); d != nil && k.kind != keyInterrupt {
		d.key(k)
		return
	}
	switch k.kind {
	case keyText:
		l.line += k.text
	case keyBackspace:
		if r := []rune(l.line); len(r) > 0 {
			l.line = string(r[:len(r)-1])
		}
	case keyEnter:
		text := l.line
		l.line = ""
		l.submit(text)
	case keyEscape:
		l.interrupt()
	case keyInterrupt, keyEnd:
		l.leaveKey(k)
	}
}

func (l *loop) leavingKey(k key) {
	switch l.leaving.key(k); {
	case l.leaving.chosen == line1:
		l.end(0, "prompt_input_exit")
	case l.leaving.chosen != open:
		l.leaving = nil
	}
}

// leaveKey is ^C and ^D: ^C first interrupts what runs; the same key twice in
// a short time leaves.
func (l *loop) leaveKey(k key) {
	if k.kind == keyInterrupt && l.cancel != nil {
		l.interrupt()
		return
	}
	twice := l.lastKey.kind == k.kind && time.Since(l.lastAt) < again
	l.lastKey, l.lastAt = k, time.Now()
	if twice {
		l.leave()
		return
	}
	l.line = ""
	l.s.term.tell("Press the key again to exit")
}

// interrupt aborts what runs. The job ends by itself, soon.
func (l *loop) interrupt() {
	if l.cancel != nil {
		l.cancel(errInterrupted)
	}
}

// submit takes a typed line. While something runs its UserPromptSubmit fires
// at once and its turn waits.
func (l *loop) submit(text string) {
	busy := l.cancel != nil || len(l.queue) > 0
	if busy && !isBlank(text) {
		l.s.queueOperation("enqueue", text)
	}
	switch {
	case isBlank(text):
	case isCommand(text):
		l.queue = append(l.queue, item{kind: itemCommand, text: text, queued: busy})
	case !busy:
		l.queue = append(l.queue, item{kind: itemPrompt, text: text})
	default:
		select {
		case l.s.typed <- text:
		default: // 64 prompts wait already
		}
	}
}

// takeTyped runs UserPromptSubmit for prompts typed while something else
// runs, in order.
func (s *session) takeTyped() {
	for {
		select {
		case text := <-s.typed:
			if system, ok := s.submitPrompt(s.life, text); ok {
				s.putWaiting(text, system)
			} else {
				s.queueOperation("remove", text)
			}
		case <-s.life.Done():
			return
		}
	}
}

// putWaiting puts a prompt that was typed while something else runs where the
// next turn, or this one's next tool, finds it.
func (s *session) putWaiting(text string, system []string) {
	s.mu.Lock()
	s.waiting = append(s.waiting, item{text: text, system: system})
	s.mu.Unlock()
	select {
	case s.typedIn <- struct{}{}:
	default: // it has not looked since the last one
	}
}

// takeWaiting takes all of them out of the client's queue, by an operation of
// that name.
func (s *session) takeWaiting(operation string) (texts, system []string) {
	s.mu.Lock()
	all := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	for _, it := range all {
		texts, system = append(texts, it.text), append(system, it.system...)
		s.queueOperation(operation, "")
	}
	return texts, system
}
