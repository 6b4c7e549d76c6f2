package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/hook/flock"
	"heartbeat/internal/promise"
)

// run does the whole soak in a folder and judges it.
func (s settings) run(dir string, stop <-chan os.Signal) (*report, error) {
	l, err := newLab(&fleet{Dir: dir, Seed: s.seed, Members: members(s.agents), StopHook: s.stopHook})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "soak: seed %d, %d agents, %s, in %s\n", s.seed, s.agents, s.length, dir)
	if err := l.prepare(s.programs, s.plant); err != nil {
		return nil, err
	}
	for _, why := range l.LeftOut {
		fmt.Fprintln(os.Stderr, "soak: left out:", why)
	}
	k := &keeper{lab: l, r: l.random(1)}
	b := &breaker{lab: l, keeper: k, r: l.random(2), only: strings.FieldsFunc(s.only, func(r rune) bool { return r == ',' })}
	keeping, release := context.WithCancel(context.Background())
	kept := make(chan struct{})
	go func() { defer close(kept); k.run(keeping) }()
	began := time.Now()
	go l.progress(keeping, k)
	l.storm(s, b, stop)
	b.declareNow(l.lastVariant())
	drained := k.settle(s.settle)
	long := k.held()
	release()
	<-kept
	l.afterEnd()
	fresh := l.afresh(drained)
	if err := l.heldTogether(long, fresh); err != nil {
		return nil, err
	}
	r, err := l.judgeAll()
	if err != nil {
		return nil, err
	}
	r.Seed, r.Agents, r.LeftOut = l.Seed, len(l.Members), l.LeftOut
	r.Took, r.Starts, r.Scheduler, r.Fresh = time.Since(began).Round(time.Second).String(), k.starts, long, fresh
	return r, l.closeDisks(len(r.Findings) > 0)
}

// judgeAll adds what came of the prompts to the record, and has it judged.
func (l *lab) judgeAll() (*report, error) {
	came, err := l.outcome()
	if err != nil {
		return nil, err
	}
	for _, f := range came {
		l.record.add(f)
	}
	return judge(l.path(recordFile))
}

// judge judges a record that is in a file.
func judge(path string) (*report, error) {
	record, err := readRecord(path)
	if err != nil {
		return nil, err
	}
	return &report{Verdict: *record.Judge(), Record: path}, nil
}

// lastVariant has all members, and nothing that goes on firing.
func (l *lab) lastVariant() variant {
	v := l.plainVariant()
	v.cron = ""
	return v
}

// storm sends and breaks for as long as the run takes.
func (l *lab) storm(s settings, b *breaker, stop <-chan os.Signal) {
	ctx, cancel := context.WithTimeout(context.Background(), s.length)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	var senders []*sender
	for i, m := range l.Members {
		for j, name := range []string{"a", "b", "t"} {
			if name == "t" && m.Trigger != "watch" && m.Trigger != "poll" {
				continue
			}
			senders = append(senders, &sender{lab: l, m: m, name: name, r: l.random(uint64(100 + 10*i + j))})
		}
	}
	var wg sync.WaitGroup
	mean := time.Duration(float64(len(senders)) / s.rate * float64(time.Second))
	for _, x := range senders {
		wg.Go(func() { x.run(ctx, mean) })
	}
	b.run(ctx, s.every, s.length/2)
	wg.Wait()
}

// progress prints a line now and then.
func (l *lab) progress(ctx context.Context, k *keeper) {
	began := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
		}
		record, _ := readRecord(l.path(recordFile))
		given, _ := l.given()
		v, f := append(record, given...).Judge(), k.footprint()
		surprises := slices.DeleteFunc(v.Findings, func(f promise.Finding) bool { return f.Wrong != promise.Noticed })
		fmt.Fprintf(os.Stderr, "soak: %4.0fs  %5d prompts sent  %5d given  %4d interruptions  %d surprises  scheduler %d: %d MB, %d files\n",
			time.Since(began).Seconds(), v.Prompts, v.Given, v.Interruptions, len(surprises), k.starts, f.RSS>>20, f.FDs)
	}
}

func (k *keeper) footprint() footprint {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cmd == nil || k.cmd.Process == nil {
		return footprint{}
	}
	f, _ := footprintOf(k.cmd.Process.Pid)
	return f
}

// held is what the scheduler holds for good: a look at its store, or a command that asks it, has
// some files open for a moment.
func (k *keeper) held() footprint {
	least := k.footprint()
	for range 8 {
		time.Sleep(250 * time.Millisecond)
		f := k.footprint()
		least.FDs, least.RSS = min(least.FDs, f.FDs), min(least.RSS, f.RSS)
	}
	return least
}

// settle waits until the fleet has nothing left to do. A person resumes what
// backs off, each second, because the faults are over. It may take long on a busy machine,
// but not stand still.
func (k *keeper) settle(within time.Duration) bool {
	began, given := time.Now(), 0
	deadline := began.Add(within)
	left := "nothing is known"
	for i := 0; time.Now().Before(deadline) && time.Since(began) < 10*within; i++ {
		if i%2 == 0 {
			k.heartbeat(nil, 0, "resume", "--all")
		}
		if left = k.left(); left == "" {
			time.Sleep(time.Second)
			if left = k.left(); left == "" {
				return true
			}
		}
		if got, err := k.given(); err == nil && len(got) > given {
			given, deadline = len(got), time.Now().Add(within)
		}
		time.Sleep(500 * time.Millisecond)
	}
	k.surprise("the fleet is not drained %s after the last fault: %s", time.Since(began).Round(time.Second), left)
	return false
}

// left says what the fleet has still to do.
func (l *lab) left() string {
	s, err := l.status()
	if err != nil {
		return err.Error()
	}
	if s.Scheduler == nil {
		return "no scheduler answers"
	}
	var left []string
	for _, a := range s.Agents {
		if a.State == "held" && a.Paused.IsZero() {
			l.surprise("%s is held: %s", a.Agent, a.Reason)
		}
		if a.Depth.Entries > 0 || a.Depth.Tail || a.InFlight != nil || a.Problem != "" {
			left = append(left, fmt.Sprintf("%s is %s (%s) with %d queued, in flight %t, tail %t %s",
				a.Agent, a.State, a.Reason, a.Depth.Entries, a.InFlight != nil, a.Depth.Tail, a.Problem))
		}
	}
	if len(left) > 0 {
		return strings.Join(left, "; ")
	}
	return l.open()
}

// open are prompts that nothing has come of, as files and tickets that no
// trigger has fired for.
func (l *lab) open() string {
	sent, err := readRecord(l.path(recordFile))
	if err != nil {
		return err.Error()
	}
	came, err := l.outcome()
	if err != nil {
		return err.Error()
	}
	if open := append(sent, came...).Open(); len(open) > 0 {
		return "nothing has come of " + strings.Join(open, ", ")
	}
	return ""
}

// afterEnd checks that nothing is left of a fleet that was ended: no process,
// no lock.
func (l *lab) afterEnd() {
	l.noneLeft("after the end of the run")
	for _, m := range l.Members {
		home := filepath.Dir(l.inboxOf(m))
		for _, path := range []string{l.dirOf(m), filepath.Join(home, ".session-lock"), filepath.Join(home, ".hook-lock"), l.inboxOf(m)} {
			if _, err := os.Stat(path); err == nil && flock.Held(path) {
				l.surprise("%s is still locked", path)
			}
		}
	}
}

// afresh starts the fleet once more: nothing is given again, and what a fresh
// scheduler holds is the measure for one that has lived long.
func (l *lab) afresh(drained bool) footprint {
	before, _ := l.given()
	k := &keeper{lab: l, r: rand.New(rand.NewPCG(l.Seed, 3))}
	ended := k.start()
	time.Sleep(3 * time.Second)
	f := k.footprint()
	k.end(ended)
	l.afterEnd()
	after, _ := l.given()
	if drained && len(after) != len(before) {
		l.surprise("a fresh start of a drained fleet gave %d prompts again, first %s", len(after)-len(before), after[len(before)].Text)
	}
	return f
}

// The bounds of what a long-lived scheduler may hold beside a fresh one, and
// an agent's folder beside what it has been given.
const (
	moreFDs   = 8
	moreRSS   = 48 << 20
	moreFiles = 24
)

// heldTogether compares the long-lived scheduler with a fresh one, and looks
// for what has piled up.
func (l *lab) heldTogether(long, fresh footprint) error {
	if long.FDs > fresh.FDs+moreFDs {
		l.surprise("the scheduler has %d files open at the end, a fresh one %d", long.FDs, fresh.FDs)
	}
	if long.RSS > fresh.RSS+moreRSS {
		l.surprise("the scheduler holds %d MB at the end, a fresh one %d", long.RSS>>20, fresh.RSS>>20)
	}
	for _, m := range l.Members {
		names, err := os.ReadDir(filepath.Dir(l.inboxOf(m)))
		if err != nil {
			return err
		}
		var list []string
		for _, n := range names {
			if !strings.Contains(n.Name(), ".corrupt-") {
				list = append(list, n.Name())
			}
		}
		if len(list) > moreFiles {
			l.surprise("%d files are in the folder of %s: %v", len(list), m.Name, list)
		}
	}
	live, _ := filepath.Glob(l.path("state", fleetName, "live", "*"))
	if len(live) > 0 {
		l.surprise("sessions are noted as alive: %v", live)
	}
	return nil
}
