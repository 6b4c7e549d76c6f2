// Package ask is a hook as the client of a session runs it: it asks the session's shim, over a
// Unix socket, what to do, and does that. It knows no rule of the queue and opens no file in the
// agent's directory but hook.log, after a failure.
//
// What goes wrong (no shim, a stuck one, a payload that does not come) ends with status 0, as if
// there were no hook: the client goes on, and the shim ends the session that gets nothing more.
// StatusPrompt is left to a prompt that the shim has handed over and knows to be taken. The
// client would take 2 for that; the shell of a generated entry makes it of StatusPrompt alone, as
// a runtime or a shell that cannot begin exits with 2 by itself.
package ask

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/crashpoint"
	"heartbeat/hook/harden"
	"heartbeat/hook/hooklog"
)

// Environment variables that the shim sets for a session and that its hooks read.
const (
	// EnvSession holds the live session's token: 32 hex digits. Files hold only its sha256.
	EnvSession = "HEARTBEAT_SESSION"
	// EnvSocket is the absolute path of the socket on which the session's shim answers.
	EnvSocket = "HEARTBEAT_SOCKET"
	// EnvHome is the absolute path of the agent's .heartbeat folder, with hook.log.
	EnvHome = "HEARTBEAT_HOME"
)

// StatusPrompt is the exit status that says that a prompt is on stderr, and was taken from the
// shim. Nothing but this package exits with it.
const StatusPrompt = 42

// Call is the process environment of one hook call, so that tests can build one.
type Call struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
}

// Words of a generated entry's command line: Word first, StatusLine second for the status line.
const (
	Word       = "hook"
	StatusLine = "status-line"
)

// Is reports whether a command line is a generated entry's. Flags behind "hook" are those of
// heartbeat-rs's hand-wired form.
func Is(args []string) bool {
	if len(args) == 0 || args[0] != Word {
		return false
	}
	for _, a := range args[1:] {
		if a == StatusLine {
			return true
		}
		if strings.HasPrefix(a, "-") {
			return false
		}
	}
	return true
}

// Main runs one call of a generated entry and returns its exit status. It says nothing in a
// client that does not belong to a session of ours.
func Main(c Call) (status int) {
	if c.Getenv(EnvSession) == "" || c.Getenv(EnvSocket) == "" {
		return 0
	}
	harden.FollowShell()
	harden.Process()
	crashpoint.At("start")
	a := asking{Call: c, home: c.Getenv(EnvHome), parent: os.Getppid()}
	a.Stderr = harden.Quiet(c.Stderr)
	defer func() {
		if p := recover(); p != nil {
			a.log("panic: %v: %s", p, debug.Stack())
			status = 0
		}
	}()
	if len(c.Args) > 1 && c.Args[1] == StatusLine {
		return a.statusLine(strings.Join(c.Args[2:], " "))
	}
	if isTerminal(c.Stdin) {
		a.log("hook ignored: %v", client.ErrNoPayload)
		return 0
	}
	status, err := a.question(c.Stdin)
	if err != nil {
		a.log("%v", err)
	}
	return status
}

// asking is one call.
type asking struct {
	Call
	home   string
	parent int        // the process that runs this one: once it has ended nobody hears of a status
	ctl    sync.Mutex // held while a part of the question is written
	over   bool       // no more of it is
}

// log writes into hook.log, which is the only place to say something in.
func (a *asking) log(format string, args ...any) {
	if a.home != "" {
		hooklog.Line(a.home, format, args...)
	}
}

// question asks what to do about an event, and does what the answer says.
func (a *asking) question(payload io.Reader) (status int, err error) {
	conn, err := dial(a.Getenv(EnvSocket))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, header(a.Getenv(EnvSession), Event)); err != nil {
		return 0, fmt.Errorf("cannot ask the session's shim: %w", err)
	}
	crashpoint.At("asked")
	go a.pass(conn, payload)
	in := bufio.NewReaderSize(conn, 4<<10)
	answer, err := await(conn, in)
	if err != nil {
		return 0, fmt.Errorf("the session's shim does not answer: %w", err)
	}
	crashpoint.At("answered")
	return a.act(conn, in, answer)
}

// pass passes the payload on while the answer is awaited.
func (a *asking) pass(conn io.Writer, payload io.Reader) {
	part := make([]byte, 64<<10)
	for {
		n, err := payload.Read(part)
		if n > 0 && !a.write(conn, part[:n]) {
			return
		}
		if err != nil {
			a.end(conn)
			return
		}
	}
}

func (a *asking) write(conn io.Writer, part []byte) bool {
	a.ctl.Lock()
	defer a.ctl.Unlock()
	return !a.over && writePart(conn, part) == nil
}

// end ends the question, also one whose payload has not come whole.
func (a *asking) end(conn io.Writer) {
	a.ctl.Lock()
	defer a.ctl.Unlock()
	if !a.over {
		a.over = true
		_ = writePart(conn, nil) // who does not hear of it has gone
	}
}

// act does what an answer says. The client has a prompt only once the shim knows that it was
// taken; where that cannot be, the status is one with which the client takes nothing.
func (a *asking) act(conn io.ReadWriter, in *bufio.Reader, answer Answer) (status int, err error) {
	var out io.Writer
	failed := 0
	least := len(answer.Body)
	switch answer.Kind {
	case Print:
		out, failed = a.Stdout, 1 // part of what JSON says is not acted on after 1
		least--                   // without its newline it is whole
	case Prompt:
		out, status = a.Stderr, StatusPrompt
	case Nothing, Theirs:
		return 0, nil
	}
	crashpoint.At("delivering")
	switch {
	case os.Getppid() != a.parent:
		err = errors.New("the shell of this hook has ended")
	case isNull(out):
		err = errors.New("it is closed")
	default:
		err = writeAll(out, answer.Body, least)
	}
	crashpoint.At("delivered")
	a.end(conn)
	if err != nil {
		_, _ = conn.Write([]byte{Refused})
		_, _ = in.ReadByte() // until the shim has taken it back, or has gone
		return failed, fmt.Errorf("cannot hand over: %w", err)
	}
	if _, err := conn.Write([]byte{Taken}); err != nil {
		return failed, fmt.Errorf("cannot tell the session's shim that its answer was taken: %w", err)
	}
	if b, err := in.ReadByte(); err != nil || b != known {
		return failed, fmt.Errorf("the session's shim does not know that its answer was taken: %w", errors.Join(err, errWithdrawn))
	}
	crashpoint.At("known")
	return status, nil
}

var errWithdrawn = errors.New("it has withdrawn it")

// writeAll writes data in one write; least is how much of it has to be written.
func writeAll(w io.Writer, data []byte, least int) error {
	switch n, err := w.Write(data); {
	case n >= least:
		return nil
	case err == nil:
		return io.ErrShortWrite
	default:
		return err
	}
}

// await waits for an answer, for as long as the shim gives signs that it works on one.
func await(conn interface{ SetReadDeadline(time.Time) error }, in *bufio.Reader) (Answer, error) {
	patience := firstPatience
	for {
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return Answer{}, err
		}
		b, err := in.ReadByte()
		if err != nil {
			return Answer{}, err
		}
		switch b {
		case sign:
			patience = signPatience
		case longSign:
			patience = longPatience
		default:
			if err := in.UnreadByte(); err != nil {
				return Answer{}, err
			}
			if err := conn.SetReadDeadline(time.Now().Add(longPatience)); err != nil {
				return Answer{}, err
			}
			return readAnswer(in)
		}
	}
}

// isTerminal reports whether stdin is none that a client gives.
func isTerminal(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return stdin == nil
	}
	info, err := f.Stat()
	return err != nil || info.Mode()&os.ModeCharDevice != 0
}

// isNull reports whether what is written goes nowhere: the runtime opens /dev/null in the place
// of a descriptor that is closed.
func isNull(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	null, err := os.Stat(os.DevNull)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && os.SameFile(info, null)
}
