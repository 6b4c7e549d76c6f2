package stepper

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// patience bounds a run.
const patience = 6 * time.Minute // each call stops, and a loaded machine lets it wait

// Run runs p until it ends, or with killAt > 0 until it is about to make the
// killAt-th call that changes something, and kills it there. The error is
// ErrUnavailable where ptrace is not permitted. It is safe for use by several
// goroutines at once, and leaves other children of the process alone.
func Run(p Program, killAt int) (Outcome, error) {
	return step(p, run{at: killAt, signal: unix.SIGKILL})
}

// Interrupt runs p until it ends, and sends it a signal when it is about to
// make its at-th system call of any kind, from its exec on. Outcome.Killed says
// whether it came to that.
func Interrupt(p Program, signal syscall.Signal, at int) (Outcome, error) {
	return step(p, run{at: at, signal: signal, every: true})
}

// Fail runs p until it ends, and has its at-th call that changes something fail with an error;
// with lasts all that follow, too, as those of a disk that stays full. What it writes to its
// stdout and stderr does not fail. Outcome.Killed says whether it came to that.
func Fail(p Program, at int, errno syscall.Errno, lasts bool) (Outcome, error) {
	return step(p, run{at: at, errno: errno, lasts: lasts})
}

func step(p Program, r run) (Outcome, error) {
	files, err := openFiles(p.Stdin)
	if err != nil {
		return Outcome{}, err
	}
	defer files.close()
	// The kernel takes a tracer's requests from one thread only.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A process group of its own, so that waiting for it takes nobody else's; a
	// descriptor of it, by which a subreaper in this process (ptyrun) tells it from
	// an orphan.
	pidfd := -1
	attr := &syscall.ProcAttr{
		Dir: p.Dir, Env: p.Env, Files: files.fds(),
		Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true, PidFD: &pidfd},
	}
	pid, err := syscall.ForkExec(p.Path, append([]string{p.Path}, p.Args...), attr)
	if err != nil {
		if err == syscall.EPERM {
			err = ErrUnavailable
		}
		return Outcome{}, fmt.Errorf("cannot trace %q: %w", p.Path, err)
	}
	if pidfd >= 0 {
		defer unix.Close(pidfd)
	}
	r.pid, r.known, r.forks = pid, map[int]bool{pid: true}, p.Forks
	watchdog := time.AfterFunc(patience, func() { _ = unix.Kill(pid, unix.SIGKILL) })
	defer watchdog.Stop()
	if err := r.trace(); err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		r.bury()
		return Outcome{}, fmt.Errorf("cannot trace %q: %w", p.Path, err)
	}
	return r.outcome(files)
}

// run is one traced process.
type run struct {
	pid    int
	at     int            // which call to send the signal before
	signal syscall.Signal // SIGKILL: the call is not carried out
	errno  syscall.Errno  // what the call fails with, and with lasts all after it; 0: it is killed
	lasts  bool
	every  bool // calls that change nothing count, too
	forks  bool // it starts others, which are not traced
	count  int
	known  map[int]bool // :: thread → it has stopped once
	calls  []string
	killed bool
	status unix.WaitStatus
	// filtered: it stops at no other calls than those of changing.
	filtered bool
}

func (r *run) outcome(files *files) (Outcome, error) {
	o := Outcome{Status: -1, Calls: r.calls, Killed: r.killed}
	if r.status.Exited() {
		o.Status = r.status.ExitStatus()
	}
	var err error
	if o.Stdout, err = content(files.stdout); err == nil {
		o.Stderr, err = content(files.stderr)
	}
	return o, err
}

// wait returns the next thread that stopped or ended.
func (r *run) wait() (tid int, ws unix.WaitStatus, err error) {
	for {
		tid, err = unix.Wait4(-r.pid, &ws, unix.WALL, nil)
		if err != unix.EINTR {
			return tid, ws, err
		}
	}
}

// bury waits until the process is gone.
func (r *run) bury() {
	for {
		if _, _, err := r.wait(); err != nil {
			return
		}
	}
}

const (
	traceOptions = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_EXITKILL
	forkOptions  = unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK
)

// trace follows all threads from the exec on, until the process is gone.
func (r *run) trace() error {
	if _, ws, err := r.wait(); err != nil || !ws.Stopped() {
		return fmt.Errorf("%w: the program did not stop at its start: %v", ErrUnavailable, err)
	}
	options := traceOptions
	if !r.forks {
		options |= forkOptions
	}
	if err := unix.PtraceSetOptions(r.pid, options); err != nil {
		return fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	if !r.every && !r.forks { // who is not traced has no use for a filter that asks the tracer
		var err error
		if r.filtered, err = r.filter(); err != nil {
			return err
		}
	}
	if err := r.resume(r.pid, 0); err != nil {
		return err
	}
	for {
		tid, ws, err := r.wait()
		switch {
		case err != nil:
			return err
		case tid == r.pid && (ws.Exited() || ws.Signaled()):
			r.status = ws
			return nil
		case !ws.Stopped():
			continue
		}
		signal, err := r.stopped(tid, ws)
		if err != nil {
			return err
		}
		// ESRCH: the thread died meanwhile, by our SIGKILL or an exit_group.
		if err := r.resume(tid, signal); err != nil && err != unix.ESRCH {
			return err
		}
	}
}

// resume lets a thread go on to where it stops next.
func (r *run) resume(tid, signal int) error {
	if r.filtered {
		return unix.PtraceCont(tid, signal)
	}
	return unix.PtraceSyscall(tid, signal)
}

// stopped looks at a thread that stopped and returns the signal to go on with.
func (r *run) stopped(tid int, ws unix.WaitStatus) (signal int, err error) {
	first := !r.known[tid]
	r.known[tid] = true
	switch sig := ws.StopSignal(); {
	case sig == unix.SIGTRAP|0x80, sig == unix.SIGTRAP && ws.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
		return 0, r.atCall(tid)
	case sig == unix.SIGTRAP && ws.TrapCause() > 0, sig == unix.SIGSTOP && first:
		return 0, nil // a clone, or the thread that it made
	default:
		return int(sig), nil
	}
}

// callInfo is struct ptrace_syscall_info (ptrace(2)).
type callInfo struct {
	op     uint8
	_      [3]uint8
	arch   uint32
	ip, sp uint64
	nr     uint64
	args   [6]uint64
	_      [2]uint64
}

const (
	opEntry   = 1 // PTRACE_SYSCALL_INFO_ENTRY
	opSeccomp = 3 // PTRACE_SYSCALL_INFO_SECCOMP: it begins, too
)

// atCall counts a call that begins, and sends the signal before the chosen one.
func (r *run) atCall(tid int) error {
	var info callInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid),
		unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	switch {
	case errno == unix.ESRCH:
		return nil
	case errno != 0:
		return fmt.Errorf("%w: PTRACE_GET_SYSCALL_INFO: %v", ErrUnavailable, errno)
	case info.op != opEntry && info.op != opSeccomp, r.killed && !r.lasts:
		return nil
	}
	name := describe(r.pid, info.nr, info.args)
	if r.errno != 0 && (info.nr == unix.SYS_EXIT_GROUP || strings.HasPrefix(name, "write memfd:")) {
		return nil
	}
	if name != "" {
		r.calls = append(r.calls, name)
	}
	if name != "" || r.every {
		r.count++
	}
	if name == "" && !r.every || r.count < r.at || r.at == 0 || r.count > r.at && !r.lasts {
		return nil
	}
	r.killed = true
	if r.errno != 0 {
		return refuse(tid, r.errno)
	}
	return unix.Kill(r.pid, r.signal)
}

// files are a run's standard files.
type files struct{ stdin, stdout, stderr *os.File }

func openFiles(stdin string) (*files, error) {
	f := &files{}
	for _, file := range []**os.File{&f.stdin, &f.stdout, &f.stderr} {
		fd, err := unix.MemfdCreate("stepper", unix.MFD_CLOEXEC)
		if err != nil {
			f.close()
			return nil, fmt.Errorf("cannot make a file in memory: %w", err)
		}
		*file = os.NewFile(uintptr(fd), "stepper")
	}
	_, err := f.stdin.WriteString(stdin)
	if err == nil {
		_, err = f.stdin.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *files) fds() []uintptr {
	return []uintptr{f.stdin.Fd(), f.stdout.Fd(), f.stderr.Fd()}
}

func (f *files) close() {
	for _, file := range []*os.File{f.stdin, f.stdout, f.stderr} {
		if file != nil {
			file.Close()
		}
	}
}

func content(f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	data := make([]byte, info.Size())
	_, err = f.ReadAt(data, 0)
	return string(data), err
}
