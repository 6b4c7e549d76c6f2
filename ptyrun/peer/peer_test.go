package peer

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// nobody is a user who is not this one.
const nobody = 65534

// The test binary is a stranger as well: it joins, or listens on, a socket.
const envSocket, envListen = "PEER_TEST_SOCKET", "PEER_TEST_LISTEN"

func TestMain(m *testing.M) {
	switch path := os.Getenv(envSocket); {
	case path == "":
		os.Exit(m.Run())
	case os.Getenv(envListen) != "":
		os.Exit(listens(path))
	default:
		os.Exit(joins(path))
	}
}

// joins ends with 0 when it is let in, and with 3 when it is hung up on.
func joins(path string) int {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return 1
	}
	if _, err := bufio.NewReader(conn).ReadByte(); err != nil {
		return 3
	}
	return 0
}

func listens(path string) int {
	l, err := net.Listen("unix", path)
	if err != nil || os.Chmod(path, 0o777) != nil {
		return 1
	}
	os.Stdout.WriteString("listening\n")
	_, _ = l.Accept()
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends
	return 0
}

// stranger is another user's process.
func stranger(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env, cmd.Dir = append(os.Environ(), env...), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}

// meeting is a folder that everybody can use.
func meeting(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "peer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "s")
}

// TestOthersAreHungUpOn: a socket that everybody can open lets this user in
// alone.
func TestOthersAreHungUpOn(t *testing.T) {
	t.Parallel()
	path := meeting(t)
	plain, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	l := Listener{Listener: plain, Refused: func(err error) { refused <- err }}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("x"))
		}
	}()
	defer l.Close()
	if code := joins(path); code != 0 {
		t.Errorf("this user: %d", code)
	}
	err = stranger(t, envSocket+"="+path).Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 {
		t.Fatalf("another user: %v", err)
	}
	if err := <-refused; !errors.Is(err, ErrStranger) {
		t.Errorf("refused: %v", err)
	}
}

// TestAnothersSocketIsNotSpokenTo: the client looks at who listens, too.
func TestAnothersSocketIsNotSpokenTo(t *testing.T) {
	t.Parallel()
	path := meeting(t)
	cmd := stranger(t, envSocket+"="+path, envListen+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(in.Close(), cmd.Wait()) }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	conn, err := net.DialTimeout("unix", path, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p, err := Check(conn)
	if !errors.Is(err, ErrStranger) || p.UID != nobody || p.PID != cmd.Process.Pid {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestWhatIsNoSocket(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := Check(a); err == nil {
		t.Error("a pipe has a peer")
	}
}
