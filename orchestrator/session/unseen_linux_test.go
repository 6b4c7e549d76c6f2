package session

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

// envListen has this program listen as a shim does, in a process namespace of its own, and say
// whom it sees.
const envListen = "HEARTBEAT_TEST_LISTEN"

// listenApart says of the first who connects to a socket why its hook is not answered.
func listenApart(path string) {
	l, err := net.Listen("unix", path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("listens")
	conn, err := l.Accept()
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = callerOf(conn)
	fmt.Println(errors.Is(err, errUnseen), err)
}

// TestAHookThatCannotBeSeenIsRefused: with heartbeat in a container and the client outside, the
// system tells no process, and any process could have the token.
func TestAHookThatCannotBeSeenIsRefused(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "-pf", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("no process namespaces here: %v: %s", err, out)
	}
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	apart := exec.Command("unshare", "-pf", "--mount-proc", "--kill-child", os.Args[0])
	apart.Env = append(os.Environ(), envListen+"="+path)
	stdout, err := apart.StdoutPipe()
	if err == nil {
		err = apart.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = apart.Process.Kill(); _ = apart.Wait() }()
	said := bufio.NewScanner(stdout)
	if !said.Scan() || said.Text() != "listens" {
		t.Fatalf("it does not listen: %q", said.Text())
	}
	conn, err := net.DialTimeout("unix", path, testbed.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if said.Scan(); !strings.HasPrefix(said.Text(), "true its process cannot be seen") {
		t.Errorf("it says %q", said.Text())
	}
}
