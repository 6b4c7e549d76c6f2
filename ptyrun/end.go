package ptyrun

import (
	"context"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How long End keeps trying: for processes to die of SIGKILL (those in an
// uninterruptible system call need some time), for a tree that starts others as fast
// as they are killed, and for the last output.
const (
	killWait  = 5 * time.Second
	chaseWait = time.Minute
	drainWait = 2 * time.Second
)

// Exit says how a child ended.
type Exit struct {
	// Code is the exit status; 128+n after signal n, as in a shell; -1 when
	// the child could not be ended (then it is in Left).
	Code int
	// Signal names the signal that ended the child, "SIGKILL" and so on; ""
	// when it exited.
	Signal string
	// Swept are the other processes of the tree that had to be killed.
	Swept []Process
	// Left are those that could not be killed: they run as another user, or hang in
	// the kernel.
	Left []Process
	// OutOfMemory says that processes of the tree were killed because memory ran
	// out, and Refused how often Limits.Processes refused it another process. Both
	// are known only of a child with a control group.
	OutOfMemory OutOfMemory
	Refused     int
	// Dropped is how many bytes of output a slow or failed Output did not get.
	Dropped int64
}

// End ends the child and its whole tree and says how the child ended. It sends
// SIGTERM to the child and its process group, gives the child the grace to exit,
// then sends SIGKILL to whatever is left of the tree until nothing is; it waits for
// the last output for at most two seconds. A child that has already exited gets no
// signal, but its tree is swept. When ctx is done, the grace ends. All callers get
// the same result, and End can be called again.
func (c *Child) End(ctx context.Context) Exit {
	stop := context.AfterFunc(ctx, func() { c.hurryOnce.Do(func() { close(c.hurry) }) })
	defer stop()
	c.endOnce.Do(c.end)
	return c.exit
}

func (c *Child) end() {
	defer children.remove(c)
	if c.running() {
		c.terminate()
		select {
		case <-c.done:
		case <-c.hurry:
		case <-time.After(c.grace):
		}
	}
	hit := emptyGroup(c.group)
	rest, left := killAll(c.find)
	hit = unique(append(hit, rest...))
	reapOrphans()
	if wait(c.done, time.Second); c.running() {
		_ = c.cmd.Process.Kill() // the processes could not be listed
	}
	c.collect()
	c.exit.OutOfMemory, c.exit.Refused = groupEvents(c.group)
	removeGroup(c.group)
	isChild := func(p Process) bool { return p.PID == c.PID() && p.Start == c.start }
	c.exit.Swept = slices.DeleteFunc(hit, isChild)
	c.exit.Left = left
}

// emptyGroup kills everything in a control group, and returns it.
func emptyGroup(group string) []Process {
	var members []Process
	for pid := range groupMembers(group) {
		if p, err := readProcess(pid); err == nil && !p.zombie {
			members = append(members, p.public())
		}
	}
	killGroup(group)
	return members
}

func (c *Child) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// terminate sends SIGTERM to the child and its process group. It also continues
// stopped processes, which would not receive the signal otherwise.
func (c *Child) terminate() {
	procs, err := c.find()
	if err != nil {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		return
	}
	for _, p := range procs {
		if p.pgrp == c.PID() {
			_ = signal(p, syscall.SIGTERM)
			_ = signal(p, syscall.SIGCONT)
		}
	}
}

// collect closes the terminal once all output has been read, and reads the status.
func (c *Child) collect() {
	wait(c.done, time.Second)
	wait(c.drained, drainWait)
	_ = c.master.Close()
	<-c.drained
	wait(c.out.done, c.out.stuck)
	c.exit.Dropped = c.out.lost()
	c.exit.Code = -1
	if c.running() {
		return
	}
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled():
		c.exit.Code = 128 + int(status.Signal())
		c.exit.Signal = unix.SignalName(status.Signal())
	default:
		c.exit.Code = c.cmd.ProcessState.ExitCode()
	}
}

func wait(ch <-chan struct{}, limit time.Duration) {
	select {
	case <-ch:
	case <-time.After(limit):
	}
}

// killAll kills every process that find returns, until there are no more. As long as
// it finds new ones it continues for up to a minute: on a busy machine a look takes
// longer than a fork.
func killAll(find func() ([]process, error)) (hit, left []Process) {
	return endAll(find, syscall.SIGKILL, killWait, chaseWait, nil)
}

// endAll sends sig once to every process that find returns, and looks again until
// two looks in a row find nothing, stop is closed, or the time is up: limit after
// the last new process was found, and chase at most. It returns all processes that
// got the signal, and those that still exist.
func endAll(find func() ([]process, error), sig syscall.Signal, limit, chase time.Duration, stop <-chan struct{}) (hit, left []Process) {
	began := time.Now()
	found := began
	sent := map[identity]bool{}
	pause, empty := time.Millisecond, 0
	for {
		procs, err := find()
		more := false
		for _, p := range procs {
			if sent[p.identity] {
				continue
			}
			sent[p.identity], more = true, true
			if signal(p, sig) == nil {
				hit = append(hit, p.public())
				_ = signal(p, syscall.SIGCONT)
			}
		}
		if len(procs) > 0 || err != nil {
			empty = 0
		} else if empty++; empty == 2 {
			return hit, nil
		}
		now := time.Now()
		if more {
			found = now
		}
		if now.Sub(found) > limit || now.Sub(began) > chase || closed(stop) {
			return hit, public(procs)
		}
		if empty == 0 && !more { // what is new may be starting others
			time.Sleep(pause)
			pause = min(2*pause, 20*time.Millisecond)
		}
	}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
