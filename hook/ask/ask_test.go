package ask_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/internal/testbed"
)

func TestMain(m *testing.M) { os.Exit(testbed.Run(m)) }

// testContext is of answers that the end of a test ends by closing their listener.
var testContext = context.Background()

// asked is a hook's call with a shim that a test plays.
type asked struct {
	t    *testing.T
	home string
	path string // of the socket
	env  []string
}

func newAsked(t *testing.T) *asked {
	t.Helper()
	dir, err := os.MkdirTemp("", "a") // one of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a := &asked{t: t, home: dir, path: filepath.Join(dir, "s")}
	a.env = []string{"PATH=" + os.Getenv("PATH"), ask.EnvSession + "=t", ask.EnvSocket + "=" + a.path, ask.EnvHome + "=" + a.home}
	return a
}

// shim answers each connection.
func (a *asked) shim(answer func(net.Conn, *bufio.Reader)) {
	a.t.Helper()
	name, done, err := ask.ShortName(a.path)
	if err != nil {
		a.t.Fatal(err)
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		a.t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	var all sync.WaitGroup
	a.t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				answer(conn, bufio.NewReader(conn))
			})
		}
	})
}

// says is a shim that reads the header, writes something and waits for the hook's end.
func says(text string) func(net.Conn, *bufio.Reader) {
	return func(conn net.Conn, in *bufio.Reader) {
		if _, err := in.ReadString('\n'); err == nil {
			_, _ = io.WriteString(conn, text)
			_, _ = io.Copy(io.Discard, in)
		}
	}
}

// gives is a shim that answers as it should.
func gives(a ask.Answer) func(net.Conn, *bufio.Reader) {
	return func(conn net.Conn, _ *bufio.Reader) {
		q, err := ask.Receive(conn)
		if err != nil {
			return
		}
		defer q.Close()
		_, done := q.Work(testContext, false)
		defer done()
		_ = q.Give(a)
	}
}

func (a *asked) command(args ...string) *exec.Cmd {
	cmd := exec.Command(testbed.Program(a.t, "heartbeat-stop"), args...)
	cmd.Dir, cmd.Env = a.home, a.env
	return cmd
}

// run calls the hook and returns its status, and all that it has said.
func (a *asked) run(stdin io.Reader) (status int, stdout, stderr string) {
	a.t.Helper()
	var out, errs bytes.Buffer
	cmd := a.command("hook")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		a.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// silent calls the hook, which must do as if it were not there, and say why in hook.log.
func (a *asked) silent(stdin io.Reader) {
	a.t.Helper()
	began := time.Now()
	if status, stdout, stderr := a.run(stdin); status != 0 || stdout+stderr != "" {
		a.t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
	if took := time.Since(began); took > testbed.Patience {
		a.t.Errorf("it took %s", took)
	}
	if log, err := os.ReadFile(filepath.Join(a.home, "hook.log")); err != nil || len(log) == 0 {
		a.t.Errorf("hook.log says nothing: %v", err)
	}
}

const stop = `{"hook_event_name":"Stop","session_id":"S"}`

// TestAShimThatFails: whatever a shim does or does not, a hook ends with 0 and has handed
// nothing over, unless the shim knows that it has.
func TestAShimThatFails(t *testing.T) {
	t.Parallel()
	closes := func(net.Conn, *bufio.Reader) {}
	for name, shim := range map[string]func(net.Conn, *bufio.Reader){
		"closes at once":           closes,
		"closes after the header":  func(_ net.Conn, in *bufio.Reader) { _, _ = in.ReadString('\n') },
		"says nothing":             says(""),
		"gives one sign":           says("."),
		"another kind":             says("X 3\nabc"),
		"another version":          says("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"no length":                says("P \nabc"),
		"a negative one":           says("P -1\nabc"),
		"one that is too long":     says("P 99999999999999999999\nabc"),
		"one that never comes":     says("P 4000000\nabc"),
		"no text":                  says("P 0\n"),
		"text that is not to come": says("0 3\nabc"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAsked(t)
			a.shim(shim)
			a.silent(strings.NewReader(stop))
		})
	}
}

// TestAPromptThatTheShimDoesNotKnowToBeTaken is none: the client takes stderr for a prompt after
// status 2 alone.
func TestAPromptThatTheShimDoesNotKnowToBeTaken(t *testing.T) {
	t.Parallel()
	for name, knows := range map[string]string{"it has gone": "", "it says something else": "?"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAsked(t)
			a.shim(func(conn net.Conn, in *bufio.Reader) {
				_, _ = io.WriteString(conn, "P 3\nabc")
				for b := byte(0); b != ask.Taken; {
					var err error
					if b, err = in.ReadByte(); err != nil {
						return
					}
				}
				_, _ = io.WriteString(conn, knows)
			})
			if status, stdout, _ := a.run(strings.NewReader(stop)); status != 0 || stdout != "" {
				t.Errorf("status %d, %q", status, stdout)
			}
		})
	}
}

// TestNoShim: its socket is not there, is something else, or nobody listens.
func TestNoShim(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(a *asked) error{
		"nothing is there": func(*asked) error { return nil },
		"a file":           func(a *asked) error { return os.WriteFile(a.path, nil, 0o600) },
		"a folder":         func(a *asked) error { return os.Mkdir(a.path, 0o700) },
		"a dead one's": func(a *asked) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: a.path, Net: "unix"})
			if err != nil {
				return err
			}
			l.SetUnlinkOnClose(false)
			return l.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAsked(t)
			if err := prepare(a); err != nil {
				t.Fatal(err)
			}
			a.silent(strings.NewReader(stop))
		})
	}
}

// TestASocketThatComesBack is found: the shim makes it again within a second.
func TestASocketThatComesBack(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	timer := time.AfterFunc(300*time.Millisecond, func() { a.shim(gives(ask.Answer{Kind: ask.Prompt, Body: []byte("text")})) })
	defer timer.Stop()
	if status, _, stderr := a.run(strings.NewReader(stop)); status != ask.StatusPrompt || stderr != "text" {
		t.Errorf("status %d, %q", status, stderr)
	}
}

// TestAHookThatCannotHandOver tells its shim, which takes the prompt back.
func TestAHookThatCannotHandOver(t *testing.T) {
	t.Parallel()
	reader, closed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer closed.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here: ", err)
	}
	defer full.Close()
	for name, redirect := range map[string]struct {
		shell  string
		stderr *os.File
	}{
		"its stderr is closed": {"exec \"$0\" hook 2>&-", nil},
		"nobody reads it":      {"exec \"$0\" hook", closed},
		"it is full":           {"exec \"$0\" hook", full},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsked(t)
			handed := make(chan error, 1)
			a.shim(func(conn net.Conn, _ *bufio.Reader) {
				q, err := ask.Receive(conn)
				if err != nil {
					handed <- err
					return
				}
				defer q.Close()
				_, done := q.Work(testContext, true)
				defer done()
				handed <- q.Give(ask.Answer{Kind: ask.Prompt, Body: []byte("text")})
			})
			cmd := exec.Command("/bin/sh", "-c", redirect.shell, testbed.Program(t, "heartbeat-stop"))
			cmd.Env, cmd.Dir, cmd.Stdin = a.env, a.home, strings.NewReader(stop)
			if redirect.stderr != nil {
				cmd.Stderr = redirect.stderr
			}
			if err := cmd.Run(); err != nil {
				t.Errorf("the hook: %v", err)
			}
			if err := <-handed; !errors.Is(err, ask.ErrNotTaken) {
				t.Errorf("the shim: %v", err)
			}
		})
	}
}

// TestPayloads of each size reach the shim whole, and one that never ends does not keep the hook
// once it has its answer.
func TestPayloads(t *testing.T) {
	t.Parallel()
	never, feeds, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer never.Close()
	defer feeds.Close()
	for name, payload := range map[string]struct {
		from io.Reader
		size int64 // -1: it never ends
	}{
		"none":   {strings.NewReader(""), 0},
		"a byte": {strings.NewReader("x"), 1},
		"60 MB":  {io.LimitReader(zeros{}, 60<<20), 60 << 20},
		"never":  {never, -1},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsked(t)
			got := make(chan int64, 1)
			a.shim(func(conn net.Conn, _ *bufio.Reader) {
				q, err := ask.Receive(conn)
				if err != nil {
					t.Error(err)
					return
				}
				defer q.Close()
				n := int64(-1)
				if payload.size >= 0 {
					n, err = io.Copy(io.Discard, q.Payload)
				}
				_, done := q.Work(testContext, false)
				defer done()
				got <- n
				if err := errors.Join(err, q.Give(ask.Answer{Kind: ask.Print, Body: []byte("{}\n")})); err != nil {
					t.Error(err)
				}
			})
			if status, stdout, _ := a.run(payload.from); status != 0 || stdout != "{}\n" {
				t.Errorf("status %d, %q", status, stdout)
			}
			if n := <-got; n != payload.size {
				t.Errorf("%d bytes came, want %d", n, payload.size)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestALongPath of a socket is reached by a shorter name.
func TestALongPath(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	dir := filepath.Join(a.home, strings.Repeat("d", 100), strings.Repeat("d", 100))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a.path = filepath.Join(dir, "s")
	if _, done, err := ask.ShortName(a.path); err != nil {
		a.env = append(a.env, ask.EnvSocket+"="+a.path)
		a.silent(strings.NewReader(stop)) // this system has no other name of it
		return
	} else {
		done()
	}
	a.env = append(a.env, ask.EnvSocket+"="+a.path)
	a.shim(gives(ask.Answer{Kind: ask.Prompt, Body: []byte("text")}))
	if status, _, stderr := a.run(strings.NewReader(stop)); status != ask.StatusPrompt || stderr != "text" {
		t.Errorf("status %d, %q", status, stderr)
	}
}

// TestThirtyAtOnce get their answers.
func TestThirtyAtOnce(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	a.shim(gives(ask.Answer{Kind: ask.Print, Body: []byte("{}\n")}))
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if status, stdout, _ := a.run(strings.NewReader(stop)); status != 0 || stdout != "{}\n" {
				t.Errorf("status %d, %q", status, stdout)
			}
		})
	}
	all.Wait()
}
