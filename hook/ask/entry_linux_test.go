package ask_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/hook/client"
	"heartbeat/hook/settings"
	"heartbeat/internal/testbed"
)

// These tests call a hook as a client does: by the shell, with the command line of a generated
// entry, as the leader of a process session of its own.

// shells are those that /bin/sh is on some system, each as it is called.
func shells(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{"sh": {"/bin/sh"}}
	for name, argv := range map[string][]string{"dash": {"dash"}, "bash": {"bash", "--posix"}, "busybox": {"busybox", "sh"}} {
		if path, err := exec.LookPath(argv[0]); err == nil {
			all[name] = append([]string{path}, argv[1:]...)
		}
	}
	return all
}

// entry is a call of the generated entry by a shell. before is what a wrapper of the shell does
// first, or "".
func (a *asked) entry(shell []string, before string) *exec.Cmd {
	argv := append(shell[:len(shell):len(shell)], "-c", settings.Command(testbed.Program(a.t, "heartbeat-stop")))
	if before != "" {
		words := make([]string, len(argv))
		for i, w := range argv {
			words[i] = settings.Quote(w)
		}
		argv = []string{"/bin/sh", "-c", before + "; exec " + strings.Join(words, " ")}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = a.home, a.env, strings.NewReader(stop)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// TestTwoIsAPromptWhateverIsShort: a shell that cannot fork and a runtime that cannot begin end
// with 2, which a client takes for a prompt (20 paid calls in 6 s under `ulimit -v 500000`). An
// entry says 2 of a prompt alone.
func TestTwoIsAPromptWhateverIsShort(t *testing.T) {
	t.Parallel()
	limits := []string{""}
	for _, kb := range []int{1000, 2000, 3000, 4000, 8000, 50_000, 500_000, 700_000, 800_000, 2_000_000} {
		limits = append(limits, fmt.Sprint("ulimit -v ", kb))
	}
	for n := range 13 {
		limits = append(limits, fmt.Sprint("ulimit -n ", n))
	}
	limits = append(limits, "ulimit -f 0", "ulimit -s 64", "ulimit -d 10000", "ulimit -d 100000", "exec 2>&-", "exec 2>/dev/full", "exec 1>&-", "exec 0<&-", "PATH=", "trap '' TERM QUIT")
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := 0
			for _, limit := range limits {
				a := newAsked(t)
				a.shim(gives(ask.Answer{Kind: ask.Prompt, Body: []byte("text")}))
				var out, errs bytes.Buffer
				cmd := a.entry(shell, limit)
				cmd.Stdout, cmd.Stderr = &out, &errs
				_ = cmd.Run()
				status := cmd.ProcessState.ExitCode()
				switch {
				case status == client.StatusPrompt && errs.String() == "text" && out.Len() == 0:
					given++
				case status == client.StatusPrompt || limit == "":
					t.Errorf("%q: status %d, %q, %.300q", limit, status, out.String(), errs.String())
				}
			}
			if given < 5 {
				t.Errorf("%d prompts were handed over", given)
			}
		})
	}
}

// TestAHookEndsWithItsShell: a client that ends the shell alone, at its time-out, has nobody left
// who hears of a prompt; and the end of the hook alone is no prompt.
func TestAHookEndsWithItsShell(t *testing.T) {
	t.Parallel()
	for name, shell := range shells(t) {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			for _, alone := range []string{"shell", "hook"} {
				t.Run(fmt.Sprint(name, " ", signal, " ", alone), func(t *testing.T) {
					t.Parallel()
					testbed.Played(t, testbed.Kills, 1)
					a := newAsked(t)
					asks, gone := make(chan int, 1), make(chan struct{})
					a.shim(func(conn net.Conn, _ *bufio.Reader) {
						q, err := ask.Receive(conn)
						if err != nil {
							return
						}
						defer q.Close()
						ctx, done := q.Work(testContext, true)
						defer done()
						asks <- pidAt(conn)
						<-ctx.Done()
						close(gone)
					})
					var errs bytes.Buffer
					cmd := a.entry(shell, "")
					cmd.Stderr = &errs
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					ended := make(chan struct{})
					go func() { _ = cmd.Wait(); close(ended) }()
					hook := await(t, "the hook to ask", asks)
					of := map[string]int{"shell": cmd.Process.Pid, "hook": hook}[alone]
					if of == 0 || alone == "hook" && of == cmd.Process.Pid {
						t.Fatalf("the hook is process %d, its shell %d", hook, cmd.Process.Pid)
					}
					if err := syscall.Kill(of, signal); err != nil {
						t.Fatal(err)
					}
					await(t, "the shim to lose the hook", gone)
					await(t, "the shell to end", ended)
					if status := cmd.ProcessState.ExitCode(); status > 0 || errs.Len() > 0 && alone == "shell" {
						t.Errorf("status %d, %q", status, errs.String())
					}
				})
			}
		}
	}
}

func await[T any](t *testing.T, what string, c <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(testbed.Patience):
		t.Fatalf("not within %s: %s", testbed.Patience, what)
	}
	return got
}

// pidAt is the process at the other end of a connection.
func pidAt(conn net.Conn) (pid int) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			if peer, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
				pid = int(peer.Pid)
			}
		})
	}
	return pid
}

// TestAHookWhoseShellHasGoneHandsNothingOver, also where it does not end with its shell, as this
// one does not lead the process session.
func TestAHookWhoseShellHasGoneHandsNothingOver(t *testing.T) {
	t.Parallel()
	testbed.Played(t, testbed.Kills, 1)
	a := newAsked(t)
	asks, answers, handed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	a.shim(func(conn net.Conn, _ *bufio.Reader) {
		q, err := ask.Receive(conn)
		if err != nil {
			handed <- err
			return
		}
		defer q.Close()
		_, done := q.Work(testContext, true)
		defer done()
		close(asks)
		<-answers
		handed <- q.Give(ask.Answer{Kind: ask.Prompt, Body: []byte("text")})
	})
	cmd := a.entry([]string{"/bin/sh"}, "")
	cmd.SysProcAttr = nil
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the hook to ask", asks)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = cmd.Process.Wait()
	close(answers)
	if err := await(t, "the shim to know", handed); !errors.Is(err, ask.ErrNotTaken) {
		t.Errorf("the shim: %v", err)
	}
	if said, err := io.ReadAll(stderr); err != nil || len(said) > 0 {
		t.Errorf("it said %q, %v", said, err)
	}
}
