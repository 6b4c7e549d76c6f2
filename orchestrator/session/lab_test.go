package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/orchestrator/usage"
	"heartbeat/queue"
	"heartbeat/queue/queuetest"
	"heartbeat/queue/wire"
)

// anybody is a person.
func anybody(int, string) error { return nil }

// lab is an agent's folder for sessions whose client is a shell script.
type lab struct {
	t                         *testing.T
	dir, home, stateDir, user string
	queue                     queuetest.Queue
	broken                    string // why the queue can do nothing; "": it can
	kept                      *store.Store
	runs                      *scheduler
}

func newLab(t *testing.T, prompts ...string) *lab {
	t.Helper()
	dir := t.TempDir()
	l := &lab{
		t: t, dir: dir, home: filepath.Join(dir, ".heartbeat"),
		stateDir: filepath.Join(dir, "state"), user: filepath.Join(dir, "user"),
	}
	if err := errors.Join(os.Mkdir(l.home, 0o700), os.Mkdir(l.user, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, p := range prompts {
		l.queue.Add(time.Now(), queue.Letter{Source: "send", Prompt: p})
	}
	return l
}

// carry carries out what a session asks.
func (l *lab) carry(session string, r wire.Request) wire.Answer {
	if l.broken == "" {
		return l.queue.Carry(session, r)
	}
	a := wire.Answer{N: r.N}
	a.Refuse(errors.New(l.broken))
	return a
}

// change has the entry in flight take a step.
func (l *lab) change(step func(queue.Entry) (queue.Entry, error)) {
	l.t.Helper()
	f := l.queue.InFlight()
	if f == nil {
		l.t.Fatal("nothing is in flight")
	}
	if err := l.queue.Change(f.Delivery, step); err != nil {
		l.t.Fatal(err)
	}
}

// offer hands over the first entry.
func (l *lab) offer(to queue.Handover, checked bool) queue.Entry {
	l.t.Helper()
	a := l.carry(to.Session, wire.Request{Steps: []wire.Step{{Do: wire.Offer, To: to, Checked: checked}}})
	if a.Err() != nil || a.Entry == nil {
		l.t.Fatalf("%+v", a)
	}
	return *a.Entry
}

// id is the session's, as the client is told.
const id = "11111111-2222-4333-8444-555555555555"

// stays is a client that has written what it writes, and waits.
const stays = wrote + `exec sleep 600`

// wrote leaves a sign that a client has written what it writes.
const wrote = `: >"$HOME/wrote"; `

// expire runs a session that its start-timeout ends once the client has written what it
// writes: where a busy machine has kept the client, or us, too long for that, it runs
// again, in a lab of its own, with a longer one.
func expire(newLab func() *lab, script string, change ...func(*Spec)) (*lab, *Outcome) {
	const first = time.Second // the transcript is looked for each second
	for timeout, enough := first, first*3/4; ; timeout, enough = 2*timeout, timeout {
		l, began, stood := newLab(), time.Now(), standstill()
		o := l.run(script, append(change, func(s *Spec) { s.StartTimeout = timeout })...)
		info, err := os.Stat(filepath.Join(l.user, "wrote"))
		if longest := stood(); err == nil && info.ModTime().Sub(began) < enough && longest < timeout/4 {
			return l, o
		}
		if timeout > 30*time.Second {
			l.t.Fatalf("the client wrote nothing within %v: %v, %s", enough, err, o)
		}
	}
}

// standstill measures for how long this process stood still at most.
func standstill() (longest func() time.Duration) {
	stop, most := make(chan struct{}), make(chan time.Duration)
	go func() {
		defer close(most)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		gap := time.Duration(0)
		for last := time.Now(); ; {
			select {
			case <-ticker.C:
			case <-stop:
				most <- max(gap, time.Since(last))
				return
			}
			now := time.Now()
			gap, last = max(gap, now.Sub(last)), now
		}
	}()
	return func() time.Duration { close(stop); return <-most }
}

// run runs a session to its end. The script gets the client's arguments.
func (l *lab) run(script string, change ...func(*Spec)) *Outcome {
	l.t.Helper()
	spec := Spec{
		Agent: "a", Session: id, Token: rand.Text(), Dir: l.dir, Home: l.home,
		Inbox: filepath.Join(l.home, "inbox.jsonl"), StateDir: l.stateDir, Grace: 5 * time.Second,
		Command: []string{"/bin/sh", "-c", script, "client"},
		Env:     []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.user},
		Policy:  hook.Policy{Mode: hook.Drain, Deliver: hook.DeliverStderr, MaxContinuations: 20},
	}
	for _, c := range change {
		c(&spec)
	}
	o, err := l.shim(spec, slog.New(slog.DiscardHandler))
	if err != nil {
		l.t.Fatal(err)
	}
	if o == nil {
		l.t.Fatal("no outcome")
	}
	return o
}

// shim runs a shim to its end. The scheduler lives.
func (l *lab) shim(spec Spec, log *slog.Logger) (*Outcome, error) {
	line, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	orders, life := io.Pipe()
	defer life.Close()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	out := l.scheduler(spec.Session, life)
	err = RunShim(ctx, io.MultiReader(bytes.NewReader(append(line, '\n')), orders), out, anybody, log)
	return out.last.Outcome, err
}

// scheduler takes a shim's reports, and records what the session costs.
type scheduler struct {
	*lab
	session string
	orders  io.WriteCloser
	deaf    bool // it takes nothing
	mute    bool // it answers nothing
	full    bool // it cannot record anything
	last    Report
	billed  []usage.Record // each time that it was told
	answers chan Order     // in their order
}

// live is a session with a record, whose requests are carried out.
func (l *lab) live(r *hook.Record) *hook.Live {
	requests, over, ended := make(chan wire.Request, 100), make(chan struct{}), make(chan struct{})
	session := r.Session
	live := hook.NewLive(r, l.home, "", func(r wire.Request) {
		select {
		case requests <- r:
		case <-over:
		}
	})
	go func() {
		defer close(ended)
		for {
			select {
			case r := <-requests:
				live.Answered(l.carry(session, r))
			case <-over:
				return
			}
		}
	}()
	l.t.Cleanup(func() {
		close(over)
		<-ended
	})
	return live
}

// scheduler answers into a shim's orders.
func (l *lab) scheduler(session string, orders io.WriteCloser) *scheduler {
	s := &scheduler{lab: l, session: session, orders: orders, answers: make(chan Order, 1000)}
	l.t.Cleanup(func() { close(s.answers) })
	go func() {
		for o := range s.answers {
			order, err := json.Marshal(o)
			if err != nil {
				l.t.Error(err)
			}
			_, _ = orders.Write(append(order, '\n')) // it may have gone
		}
	}()
	return s
}

// Write takes a report.
func (s *scheduler) Write(line []byte) (int, error) {
	var r Report
	if err := json.Unmarshal(line, &r); err != nil {
		s.t.Error(err)
	}
	s.billed = append(s.billed, r.Bill...)
	switch {
	case r.Ask != nil:
		answer := s.carry(s.session, *r.Ask)
		s.answers <- Order{Answer: &answer}
	case r.Bill == nil:
		s.last = r
	case s.deaf:
	default:
		answer := Billed{Number: r.Bill[len(r.Bill)-1].Number}
		if s.full {
			answer.Why = "no space is left"
		} else if err := Bill(s.t.Context(), s.store(), r.Bill...); err != nil {
			s.t.Error(err)
		}
		if !s.mute {
			s.answers <- Order{Billed: &answer}
		}
	}
	return len(line), nil
}

// store is that of the session's fleet.
func (l *lab) store() *store.Store {
	if l.kept == nil {
		if err := os.MkdirAll(l.stateDir, 0o700); err != nil {
			l.t.Fatal(err)
		}
		l.kept = storetest.New(l.t, l.stateDir)
	}
	return l.kept
}

// spent is what is recorded of the agent's sessions.
func (l *lab) spent() (sum usage.Sum) {
	l.t.Helper()
	err := l.store().Read(l.t.Context(), func(v *store.View) (err error) {
		sum, err = usage.Since(v, "a", time.Time{})
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return sum
}

// sweep ends what is left of the agent's sessions.
func (l *lab) sweep() ([]Leftover, error) {
	return SweepLeftovers(l.t.Context(), l.store(), l.stateDir, "a", 0)
}
