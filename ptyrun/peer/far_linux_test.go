package peer

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

func pair(t *testing.T, network, address string) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// TestWhoHasAConnection: this process, and each one that it hands its end to. It runs
// alone: a process that another test is just starting has all of our files.
func TestWhoHasAConnection(t *testing.T) {
	for _, at := range [][2]string{{"tcp", "127.0.0.1:0"}, {"tcp", "[::1]:0"}, {"tcp", "[::ffff:127.0.0.1]:0"}, {"unix", filepath.Join(t.TempDir(), "s")}} {
		client, server := pair(t, at[0], at[1])
		if pids, err := pidsOf(server); err != nil || !slices.Equal(pids, []int{os.Getpid()}) {
			t.Errorf("%s: %v, %v", at, pids, err)
		}
		if at[0] == "unix" {
			continue
		}
		file, err := client.(*net.TCPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		heir := exec.CommandContext(t.Context(), "cat")
		in, err := heir.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		heir.ExtraFiles = []*os.File{file}
		if err := heir.Start(); err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		if pids, err := pidsOf(server); err != nil || !slices.Contains(pids, heir.Process.Pid) || len(pids) != 2 {
			t.Errorf("%s, handed on: %v, %v", at, pids, err)
		}
		_ = client.Close()
		if pids, err := pidsOf(server); err != nil || !slices.Equal(pids, []int{heir.Process.Pid}) {
			t.Errorf("%s, closed here: %v, %v", at, pids, err)
		}
		_ = in.Close()
		_ = heir.Wait()
		if pids, err := processes(server); !errors.Is(err, ErrUnseen) {
			t.Errorf("%s, closed: %v, %v", at, pids, err)
		}
	}
}

// TestAKeptConnectionIsItsProcesses: the number of the process that has connected is given
// to another one.
func TestAKeptConnectionIsItsProcesses(t *testing.T) {
	t.Parallel()
	_, server := pair(t, "unix", filepath.Join(t.TempDir(), "s"))
	who := With(t.Context(), server)
	judged := 0
	person := func(int) error { judged++; return nil }
	for range 2 {
		if err := Person(who, person); err != nil || judged != 1 || PID(who) != os.Getpid() {
			t.Errorf("%v, judged %d times, %d", err, judged, PID(who))
		}
	}
	who.Value(key{}).(*end).of[0].start-- // as if another one had the number now
	if err := Person(who, person); !errors.Is(err, ErrUnseen) || PID(who) != 0 {
		t.Errorf("of a process that has gone: %v, %d", err, PID(who))
	}
	who = With(t.Context(), server)
	who.Value(key{}).(*end).of[0].start--
	if err := Person(who, person); !errors.Is(err, ErrUnseen) {
		t.Errorf("asked for the first time when it has gone: %v", err)
	}
}

// TestWhoHasEndedWhenItIsAccepted is unseen, though its number may be another's.
func TestWhoHasEndedWhenItIsAccepted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestConnectsAndEnds$")
	cmd.Env = append(os.Environ(), envConnects+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := Person(With(t.Context(), server), func(int) error { return nil }); !errors.Is(err, ErrUnseen) {
		t.Errorf("%v", err)
	}
}

const envConnects = "HEARTBEAT_TEST_CONNECTS"

// TestConnectsAndEnds is the process that does.
func TestConnectsAndEnds(t *testing.T) {
	if path := os.Getenv(envConnects); path != "" {
		if _, err := net.Dial("unix", path); err != nil {
			t.Fatal(err)
		}
	}
}

func pidsOf(conn net.Conn) (pids []int, err error) {
	all, err := processes(conn)
	for _, p := range all {
		pids = append(pids, p.pid)
	}
	return pids, err
}

func TestAConnectionFromElsewhere(t *testing.T) {
	t.Parallel()
	for text, local := range map[string]bool{"127.0.0.1": true, "::1": true, "::ffff:127.0.0.9": true, "192.0.2.7": false, "2001:db8::7": false} {
		if got := isLocal(netip.MustParseAddr(text)); got != local {
			t.Errorf("%s: %v", text, got)
		}
	}
	if _, err := holders(netip.MustParseAddrPort("192.0.2.7:4711"), netip.MustParseAddrPort("127.0.0.1:80")); !errors.Is(err, ErrElsewhere) {
		t.Error(err)
	}
}

// TestAnotherUserOverTCP is a stranger there. Only root can start one to try.
func TestAnotherUserOverTCP(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root starts processes of another user")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `exec 3<>/dev/tcp/`+host+`/`+port+` && read x`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := Person(With(t.Context(), server), func(int) error { return nil }); !errors.Is(err, ErrStranger) {
		t.Errorf("%v", err)
	}
	_ = in.Close()
	_ = cmd.Wait()
}
