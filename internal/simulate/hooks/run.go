package hooks

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A Runner runs hooks. The zero value works.
type Runner struct {
	// KillDelay is the time between SIGTERM and SIGKILL; 0 means the
	// client's 1.5 s.
	KillDelay time.Duration
	// HeldDelay is how long the ends of a hook's output may lack after its
	// exit before its answer is refused; 0 means the
	// client's 500 ms.
	HeldDelay time.Duration
	// Rest, when not nil, counts the groups of hooks that were ended and of
	// which something is left.
	Rest *sync.WaitGroup
}

func (r Runner) killDelay() time.Duration {
	if r.KillDelay > 0 {
		return r.KillDelay
	}
	return 1500 * time.Millisecond
}

func (r Runner) heldDelay() time.Duration {
	if r.HeldDelay > 0 {
		return r.HeldDelay
	}
	return 500 * time.Millisecond
}

// A Call is what every hook of one event gets.
type Call struct {
	Payload []byte   // stdin
	Env     []string // NAME=value
	Dir     string
	Timeout time.Duration // of hooks without one; 0: DefaultTimeout
}

// A Result is how one hook ended. Only one of Cut, Unstarted and the exit
// says so: Cut means its time was up or the call was cancelled, and what it
// printed counts for nothing.
type Result struct {
	Hook      Hook
	Stdout    string
	Stderr    string
	Exit      int  // -1: ended by a signal
	Cut       bool // timed out or cancelled
	Held      bool // something still had its stdout or stderr open
	Took      time.Duration
	Unstarted error
}

// RunAll runs hooks in parallel and tells of each when it has ended. When ctx
// ends they get SIGTERM, and SIGKILL KillDelay later.
func (r Runner) RunAll(ctx context.Context, hooks []Hook, call Call, ended func(Result)) {
	results := make(chan Result, len(hooks))
	for _, h := range hooks {
		go func() { results <- r.Run(ctx, h, call) }()
	}
	for range hooks {
		ended(<-results)
	}
}

// Run runs one hook in a session of its own, without a terminal, its stdio
// sockets, as the client does.
func (r Runner) Run(ctx context.Context, h Hook, call Call) Result {
	result := Result{Hook: h, Exit: -1}
	cmd := command(h)
	cmd.Env, cmd.Dir = call.Env, call.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipes, err := connect(cmd)
	if err != nil {
		result.Unstarted = err
		return result
	}
	defer pipes.close()
	err = cmd.Start()
	pipes.closeTheirs()
	if err != nil {
		result.Unstarted = err
		return result
	}
	started := time.Now()
	go pipes.feed(call.Payload)
	outDone, errDone := pipes.stdout.collect(), pipes.stderr.collect()
	result.Cut = r.wait(ctx, cmd, cmp.Or(h.Timeout, call.Timeout, DefaultTimeout))
	result.Exit = cmd.ProcessState.ExitCode()
	if !result.Cut {
		quiet := time.After(r.heldDelay())
		for _, done := range []<-chan struct{}{outDone, errDone} {
			select {
			case <-done:
			case <-quiet:
				result.Held = true
				quiet = closed
			}
		}
	}
	result.Stdout, result.Stderr, result.Took = pipes.stdout.text(), pipes.stderr.text(), time.Since(started)
	return result
}

var closed = func() chan time.Time { c := make(chan time.Time); close(c); return c }()

func command(h Hook) *exec.Cmd {
	if h.Args != nil {
		return exec.Command(h.Command, h.Args...)
	}
	return exec.Command("/bin/sh", "-c", h.Command)
}

// wait reaps the process and reports whether it had to be cut short.
func (r Runner) wait(ctx context.Context, cmd *exec.Cmd, timeout time.Duration) (cut bool) {
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		// The exit stands in ProcessState; there is nothing else to learn.
		_ = cmd.Wait()
	}()
	up := time.NewTimer(timeout)
	defer up.Stop()
	select {
	case <-exited:
		return false
	case <-up.C:
	case <-ctx.Done():
	}
	gone := Terminate(cmd.Process.Pid, exited, r.killDelay())
	if r.Rest != nil {
		r.Rest.Go(func() { <-gone })
	}
	return true
}

// Terminate sends SIGTERM to the process group pid and waits for the end of
// its leader, which exited tells; SIGKILL goes to what is left of the group
// after delay. The channel it returns is closed when nothing of the group is
// left, or SIGKILL was sent. Whoever left the group stays.
func Terminate(pid int, exited <-chan struct{}, delay time.Duration) (gone <-chan struct{}) {
	// ESRCH: gone already, which exited tells.
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		kill := time.NewTimer(delay)
		defer kill.Stop()
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		for !errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH) {
			select {
			case <-look.C:
			case <-kill.C:
				_ = syscall.Kill(-pid, syscall.SIGKILL)
				return
			}
		}
	}()
	<-exited
	return done
}

// maxOutput bounds what is kept of a hook's output; the client took 10 MB.
const maxOutput = 32 << 20

// stream collects one of a hook's outputs.
type stream struct {
	end *os.File

	mu   sync.Mutex
	data []byte
}

// collect reads to the end; the channel is closed there.
func (s *stream) collect() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		for {
			n, err := s.end.Read(buf)
			s.mu.Lock()
			if room := maxOutput - len(s.data); n > 0 && room > 0 {
				s.data = append(s.data, buf[:min(n, room)]...)
			}
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return done
}

func (s *stream) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.data)
}

// stdio is our ends and the hook's ends of three sockets.
type stdio struct {
	stdin          *os.File
	stdout, stderr *stream
	theirs         []*os.File
}

// connect gives cmd sockets for stdio. They are sockets and not pipes, as in
// the client: a hook cannot open /dev/stderr.
func connect(cmd *exec.Cmd) (*stdio, error) {
	p := &stdio{stdout: &stream{}, stderr: &stream{}}
	for _, ours := range []**os.File{&p.stdin, &p.stdout.end, &p.stderr.end} {
		a, b, err := socketPair()
		if err != nil {
			p.close()
			return nil, err
		}
		*ours = a
		p.theirs = append(p.theirs, b)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.theirs[0], p.theirs[1], p.theirs[2]
	return p, nil
}

func socketPair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	// Ours is read and written through the poller, so that close ends a read.
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		return nil, nil, errors.Join(err, syscall.Close(fds[0]), syscall.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "hook"), os.NewFile(uintptr(fds[1]), "hook"), nil
}

// feed writes the payload and the end of input. A hook need not read it.
func (p *stdio) feed(payload []byte) {
	_, _ = p.stdin.Write(payload)
	_ = p.stdin.Close()
}

func (p *stdio) closeTheirs() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
	p.theirs = nil
}

// close drops every end that is still open; errors of closing twice or of a
// socket whose peer is gone say nothing.
func (p *stdio) close() {
	p.closeTheirs()
	for _, f := range []*os.File{p.stdin, p.stdout.end, p.stderr.end} {
		if f != nil {
			_ = f.Close()
		}
	}
}
