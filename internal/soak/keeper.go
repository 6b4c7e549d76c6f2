package main

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/store"
)

// keeper keeps a scheduler running: it starts the next one when a fault has
// ended the last.
type keeper struct {
	*lab
	r *rand.Rand

	mu      sync.Mutex
	cmd     *exec.Cmd
	fault   faultKind // that ends the one that runs; "" none
	starts  int
	stopped bool
}

// endIn is how long a scheduler may take to end by SIGTERM.
const endIn = (shutdownGrace + endGrace + 15) * time.Second

// startIn is how long one may take to be ready: it waits for what the last one
// left, and recovers it.
const startIn = 60 * time.Second

func (k *keeper) command() *exec.Cmd {
	args := []string{"-f", k.path("heartbeat.yaml"), "run"}
	if k.r.IntN(2) == 0 {
		args = append(args, "--watch-config")
	}
	cmd := exec.Command(k.path("bin", "heartbeat"), args...)
	cmd.Env = append(k.env(), envMark+"="+k.Dir, "SIMULATE_LOG="+k.path("model.jsonl"))
	cmd.Stdout, cmd.Stderr = k.runLog, k.runLog
	return cmd
}

// start starts a scheduler and returns when it answers. The configuration is
// not changed meanwhile.
func (k *keeper) start() (ended chan error) {
	k.config.RLock()
	defer k.config.RUnlock()
	k.mu.Lock()
	cmd := k.command()
	k.cmd, k.fault = cmd, ""
	k.starts++
	err := cmd.Start()
	k.mu.Unlock()
	ended = make(chan error, 1)
	if err != nil {
		k.surprise("cannot start the scheduler: %v", err)
		ended <- err
		return ended
	}
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(startIn); !k.answers(cmd.Process.Pid); {
		if time.Now().After(deadline) {
			k.surprise("the scheduler is not ready after %s", startIn)
			return ended
		}
		select {
		case err := <-ended:
			ended <- err
			return ended
		case <-time.After(100 * time.Millisecond):
		}
	}
	return ended
}

// answers reports whether the scheduler with this pid answers.
func (k *keeper) answers(pid int) bool {
	s, err := k.status()
	return err == nil && s.Scheduler != nil && s.Scheduler.PID == pid
}

// earlyTerm is how a process ends that gets SIGTERM before it listens for it.
const earlyTerm = "signal: terminated"

// run keeps one running until ctx ends.
func (k *keeper) run(ctx context.Context) {
	for ctx.Err() == nil {
		ended := k.start()
		select {
		case err := <-ended:
			k.mu.Lock()
			why := k.fault
			k.mu.Unlock()
			if why == "" {
				k.surprise("the scheduler ended by itself: %v", err)
				time.Sleep(time.Second)
			}
			if why == faultTerm && err != nil && err.Error() != earlyTerm {
				k.surprise("the scheduler ended by SIGTERM with: %v", err)
			}
			k.between(why)
		case <-ctx.Done():
			k.end(ended)
			return
		}
	}
}

// end ends the scheduler as a person does.
func (k *keeper) end(ended chan error) {
	k.mu.Lock()
	k.stopped = true
	_ = k.cmd.Process.Signal(syscall.SIGTERM)
	k.mu.Unlock()
	select {
	case err := <-ended:
		if err != nil {
			k.surprise("the scheduler ended by SIGTERM with: %v", err)
		}
	case <-time.After(endIn):
		k.surprise("the scheduler does not end within %s of SIGTERM", endIn)
		_ = k.cmd.Process.Kill()
		<-ended
	}
}

// hit signals the scheduler, as a fault.
func (k *keeper) hit(kind faultKind, sig syscall.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cmd == nil || k.stopped || k.fault != "" {
		return
	}
	f, cmd := kind.on("", classScheduler), k.cmd
	k.fault = kind
	_ = cmd.Process.Signal(sig)
	k.record.overAt(f, f.At.Add(endGrace*time.Second+time.Second))
	if kind == faultTerm {
		time.AfterFunc(endIn, func() {
			if cmd.Process.Signal(syscall.Signal(0)) == nil {
				k.surprise("the scheduler does not end within %s of SIGTERM", endIn)
				_ = cmd.Process.Kill()
			}
		})
	}
}

// reload tells the scheduler that its file has changed.
func (k *keeper) reload() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cmd != nil && k.cmd.Process != nil && !k.stopped {
		_ = k.cmd.Process.Signal(syscall.SIGHUP)
	}
}

// between is what happens while no scheduler runs.
func (k *keeper) between(why faultKind) {
	switch k.r.IntN(4) {
	case 0:
		if time.Since(time.Unix(0, k.shimHit.Load())) < 10*time.Second {
			return // when its shim is dead too, a client stays until the next scheduler
		}
		k.noneLeft("after the scheduler's " + string(why))
	case 1:
		k.stepClock()
	case 2:
		time.Sleep(time.Duration(k.r.IntN(1500)) * time.Millisecond)
	}
}

// noneLeft waits for the sessions of a dead scheduler to end by themselves.
// They have their grace and a second; the rest is for a busy machine.
func (l *lab) noneLeft(when string) {
	deadline := time.Now().Add(endGrace*time.Second + 4*time.Second)
	for {
		left := l.processes()
		if len(left) == 0 {
			return
		}
		if l.stops.Load() > 0 { // a stopped process cannot end
			deadline = time.Now().Add(endGrace*time.Second + 4*time.Second)
		}
		if time.Now().After(deadline) {
			l.surprise("%d processes are left %s: %+v", len(left), when, left)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// stepClock makes what remembers times look as if the clock had been
// stepped while the scheduler was down: last fires and modification times lie
// minutes in the past or seconds in the future.
func (k *keeper) stepClock() {
	by := time.Duration(k.r.IntN(600)-570) * time.Second
	f := faultClock.on("", "")
	f.Note = by.String()
	err := adopt.Act(context.Background(), k.path("state", fleetName), func(c *store.Change) error {
		_, err := c.Do(`UPDATE triggers SET fired = fired + $1 WHERE fired > 0`, by.Milliseconds())
		return err
	})
	if _, full := errors.AsType[*store.FullError](err); err != nil && !full {
		k.surprise("cannot shift the last fires: %v", err)
	}
	then := time.Now().Add(by)
	for _, m := range k.Members {
		// Not the watched files: a touch while the scheduler is down and a memory
		// that could not be kept (disk full) make a changed file, rightly.
		_ = filepath.WalkDir(filepath.Dir(k.inboxOf(m)), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				_ = os.Chtimes(path, then, then)
			}
			return nil
		})
	}
	k.record.over(f)
}
