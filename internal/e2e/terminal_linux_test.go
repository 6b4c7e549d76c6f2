package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// keptOutput bounds what a terminal remembers.
const keptOutput = 4 << 20

// Terminal is a program that runs in a pseudo-terminal of 50×200 whose output
// is always read.
type Terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	ended  chan struct{}
	began  time.Time

	mu     sync.Mutex
	output []byte
	sent   []string // the names of signals
}

// startTerminal runs cmd in a new terminal. The test's end kills its process
// group.
func startTerminal(t *testing.T, cmd *exec.Cmd) *Terminal {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	blocking, err := pty.StartWithAttrs(cmd, &pty.Winsize{Rows: 50, Cols: 200}, cmd.SysProcAttr)
	if err != nil {
		t.Fatalf("cannot start %s: %v", cmd.Path, err)
	}
	master, err := interruptible(blocking)
	if err != nil {
		t.Fatal(err)
	}
	term := &Terminal{t: t, cmd: cmd, master: master, ended: make(chan struct{}), began: time.Now()}
	read := make(chan struct{})
	go func() {
		defer close(read)
		term.drain()
	}()
	go func() {
		cmd.Wait() //nolint:errcheck // the state has it
		close(term.ended)
	}()
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-term.ended
		master.Close()
		<-read
		if t.Failed() {
			t.Logf("the end of the terminal's output:\n%s", lastLines(term.Screen(), 30))
		}
	})
	return term
}

// interruptible is f as a file whose Close ends a Read that waits: a terminal
// is not hung up while a blocking read holds it. f is closed.
func interruptible(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot duplicate the terminal: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("cannot make the terminal non-blocking: %w", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func (p *Terminal) drain() {
	buf := make([]byte, 64<<10)
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.output = append(p.output, buf[:n]...)
		if len(p.output) > keptOutput {
			p.output = p.output[len(p.output)-keptOutput/2:]
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Pid is the client's process id.
func (p *Terminal) Pid() int { return p.cmd.Process.Pid }

// Type sends keys.
func (p *Terminal) Type(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Errorf("cannot type %q: %v", keys, err)
	}
}

// Submit types a line and, when the client has had time to take it as typing
// and not as a paste, the return key.
func (p *Terminal) Submit(line string) {
	p.t.Helper()
	p.Type(line)
	time.Sleep(400 * time.Millisecond) // a person's pace is what is tested
	p.Type("\r")
}

// HangUp closes the terminal's master, as the death of its owner would.
func (p *Terminal) HangUp() { p.master.Close() }

// Signal sends a signal to the client alone.
func (p *Terminal) Signal(sig syscall.Signal) {
	p.t.Helper()
	p.sent = append(p.sent, unix.SignalName(sig))
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Errorf("cannot send %v: %v", sig, err)
	}
}

// Running says whether the client is alive.
func (p *Terminal) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// WaitExit waits for the client's end and returns "exit N" or the signal's
// name.
func (p *Terminal) WaitExit(d time.Duration) string {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(d):
		p.t.Errorf("the client still runs after %v", d)
		return "running"
	}
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return unix.SignalName(status.Signal())
	}
	return fmt.Sprintf("exit %d", status.ExitStatus())
}

// End ends the client with SIGTERM, unless a signal was sent before or it has
// ended, and says what was done and came of it.
func (p *Terminal) End() string {
	p.t.Helper()
	if p.Running() && len(p.sent) == 0 {
		p.Signal(syscall.SIGTERM)
	}
	return "client: " + strings.Join(append(p.sent, p.WaitExit(patience)), ", ")
}

var (
	escapes = regexp.MustCompile(`\x1b\[[0-9;:?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\|\x1b[()][0-9A-Za-z]|\x1b[=>78MDE]`)
	blanks  = regexp.MustCompile(`[ \t\r]+`)
)

// Screen is everything that was printed, without escape sequences. Programs
// move the cursor where they mean a blank, so compare with Shows.
func (p *Terminal) Screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return escapes.ReplaceAllString(string(p.output), " ")
}

// Shows says whether text has been printed, blanks aside.
func (p *Terminal) Shows(text string) bool {
	return strings.Contains(blanks.ReplaceAllString(p.Screen(), ""), blanks.ReplaceAllString(text, ""))
}

func lastLines(text string, n int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, strings.TrimRight(blanks.ReplaceAllString(line, " "), " \n"))
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
