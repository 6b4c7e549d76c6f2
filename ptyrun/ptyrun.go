// Package ptyrun runs one child in a PTY and leaves nothing behind: it
// starts it in a process session of its own, drains and logs its terminal,
// knows its activity, and ends its whole tree, also what left the process
// group, the process session or its parents (setsid, double fork).
//
// Four things find a process of the tree: a control group of its own, where
// one may be made (Linux; see PlanGroup); ancestry, for which this process
// becomes the subreaper of all its descendants (Linux; for good); the
// process sessions that the tree has made; and a mark in the environment
// (HEARTBEAT_TREE). As a subreaper this process inherits orphans and reaps
// them, by pid: children of os/exec and os.StartProcess keep their status; one
// made by syscall.ForkExec may lose it. An orphan that nothing else tells of is left
// alone while it may be another child's.
//
// Not promised: processes that run as another user can be beyond our
// permission; they are named in [Exit]. On systems other than Linux there is
// no subreaper, and an orphan that cleared its environment is not found.
package ptyrun

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultGrace is the time between SIGTERM and SIGKILL if no grace is given.
const DefaultGrace = 10 * time.Second

// Why a child could not be started.
var (
	ErrCommand = errors.New("the command cannot be run")      // missing, not executable, not a program
	ErrDir     = errors.New("the directory cannot be used")   // missing, not a directory
	ErrPTY     = errors.New("a terminal could not be opened") // no PTY left, no /dev/ptmx
)

// Config says what to run. Only Argv is needed.
type Config struct {
	Argv []string
	Dir  string   // "": the current one
	Env  []string // nil: CleanEnv(os.Environ())
	Rows int      // 0: DefaultRows
	Cols int      // 0: DefaultCols
	// Cookie is the value of HEARTBEAT_SESSION in Env: End also finds processes by
	// it, as [Sweep] does. "": none.
	Cookie string
	// Group is the control group to run in, as PlanGroup names it: End also finds
	// processes by it, kills them in one step and removes it. If it cannot be made,
	// the child runs without one. "": none.
	Group string
	// Limits apply to the child and its tree, if it has such a group.
	Limits Limits
	// Output gets all terminal output, from one goroutine. After it fails, nothing
	// more is written to it; when it blocks for long, output is dropped and a note
	// in the stream shows the gap. The child never waits for it longer than about
	// two seconds. nil: discarded.
	Output io.Writer
	Grace  time.Duration // from SIGTERM to SIGKILL; 0: DefaultGrace, less: none

	stuck time.Duration // how long Output may take; 0: stuckAfter
}

// Child is a running command. End must always be called, also when the child has
// exited by itself.
type Child struct {
	cmd    *exec.Cmd
	start  uint64
	tree   string // our mark in HEARTBEAT_TREE
	cookie string
	group  string // the control group's directory, or ""
	// unlimited is why the limits are not in force, or nil.
	unlimited error
	grace     time.Duration

	master  *os.File
	out     *forwarder
	done    chan struct{} // closed when the child has exited
	drained chan struct{} // closed when the terminal is closed by all

	lastOutput atomic.Int64 // Unix nanoseconds
	bytes      atomic.Int64

	hurry     chan struct{} // closed: no grace
	hurryOnce sync.Once
	endOnce   sync.Once
	exit      Exit // set by endOnce

	kin kin // used by End only
}

// Start runs a command in a new PTY, as the leader of a new process session. If ctx
// is already done, nothing starts; later it has no effect on the child. The error
// wraps ErrCommand, ErrDir or ErrPTY.
func Start(ctx context.Context, cfg Config) (*Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cannot start: %w", context.Cause(ctx))
	}
	cmd, err := cfg.command()
	if err != nil {
		return nil, err
	}
	if err := becomeReaper(); err != nil {
		return nil, fmt.Errorf("cannot adopt orphans: %w", err)
	}
	c := &Child{
		cmd: cmd, cookie: cfg.Cookie, grace: cfg.Grace, tree: mark(), out: newForwarder(cfg.Output, cmp.Or(cfg.stuck, stuckAfter)),
		done: make(chan struct{}), drained: make(chan struct{}), hurry: make(chan struct{}),
	}
	if c.grace == 0 {
		c.grace = DefaultGrace
	}
	cmd.Env = withMark(cmd.Env, c.tree)
	tty, err := c.open(cfg.Rows, cfg.Cols)
	if err != nil {
		return nil, err
	}
	if err := children.start(c, cfg.Group, cfg.Limits); err != nil {
		_ = tty.Close()
		_ = c.master.Close()
		c.out.close()
		return nil, fmt.Errorf("cannot start %q: %w: %w", cfg.Argv[0], ErrCommand, err)
	}
	c.lastOutput.Store(time.Now().UnixNano())
	go c.drain()
	go c.wait(tty)
	return c, nil
}

// command checks everything that can be checked before a PTY is opened.
func (cfg Config) command() (*exec.Cmd, error) {
	if len(cfg.Argv) == 0 || cfg.Argv[0] == "" {
		return nil, fmt.Errorf("cannot start a command: %w: none is given", ErrCommand)
	}
	if cfg.Dir != "" {
		info, err := os.Stat(cfg.Dir)
		if err == nil && !info.IsDir() {
			err = syscall.ENOTDIR
		}
		if err != nil {
			return nil, fmt.Errorf("cannot start %q in %q: %w: %w", cfg.Argv[0], cfg.Dir, ErrDir, err)
		}
	}
	env := cfg.Env
	if env == nil {
		env = CleanEnv(os.Environ())
	}
	path, err := lookPath(cfg.Argv[0], env)
	if err != nil {
		return nil, fmt.Errorf("cannot start %q: %w: %w", cfg.Argv[0], ErrCommand, err)
	}
	return &exec.Cmd{
		Path: path, Args: cfg.Argv, Dir: cfg.Dir, Env: env,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true},
	}, nil
}

// control calls f with the master's descriptor; (*os.File).Fd would make it
// blocking again.
func (c *Child) control(f func(fd int) error) error {
	conn, err := c.master.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = conn.Control(func(fd uintptr) { inner = f(int(fd)) })
	return errors.Join(err, inner)
}

// wait keeps the slave side open until the child has exited: otherwise a child that
// closes its terminal and opens it again would end the drain.
func (c *Child) wait(tty *os.File) {
	_ = c.cmd.Wait() // the status is in ProcessState
	_ = tty.Close()
	close(c.done)
}

func (c *Child) drain() {
	defer close(c.drained)
	defer c.out.close()
	buf := make([]byte, 32<<10)
	for {
		n, err := c.master.Read(buf)
		if n > 0 {
			c.lastOutput.Store(time.Now().UnixNano())
			c.bytes.Add(int64(n))
			c.out.add(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// PID is the child's process id, which is also its process group and session.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Unlimited says why Config.Limits are not in force for the child, or nil. It is a
// *NoLimitsError.
func (c *Child) Unlimited() error { return c.unlimited }

// Done is closed when the child has exited. Its tree may still be alive, and its
// last output may still be on the way: End takes care of both.
func (c *Child) Done() <-chan struct{} { return c.done }

// Activity returns when the terminal last showed something (before any output: when
// the child was started) and how many bytes it has shown. Input to the child counts
// too if the terminal echoes it.
func (c *Child) Activity() (last time.Time, bytes int64) {
	return time.Unix(0, c.lastOutput.Load()), c.bytes.Load()
}

// writeWait limits Write: a child that does not read its terminal fills it.
const writeWait = 5 * time.Second

// Write types into the child's terminal. It gives up after five seconds if the
// child does not read.
func (c *Child) Write(p []byte) (int, error) {
	if err := c.master.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return 0, fmt.Errorf("cannot write to the terminal: %w", err)
	}
	n, err := c.master.Write(p)
	if err != nil {
		return n, fmt.Errorf("cannot write to the terminal: %w", err)
	}
	return n, nil
}

// Resize changes the terminal's size and tells the foreground process group.
func (c *Child) Resize(rows, cols int) error {
	size := &unix.Winsize{Row: uint16(rows), Col: uint16(cols)}
	err := c.control(func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	if err != nil {
		return fmt.Errorf("cannot resize the terminal: %w", err)
	}
	return nil
}

func mark() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
