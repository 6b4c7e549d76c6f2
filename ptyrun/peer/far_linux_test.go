package peer

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		if pids, err := processes(server); err != nil || !slices.Equal(pids, []int{os.Getpid()}) {
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
		if pids, err := processes(server); err != nil || !slices.Contains(pids, heir.Process.Pid) || len(pids) != 2 {
			t.Errorf("%s, handed on: %v, %v", at, pids, err)
		}
		_ = client.Close()
		if pids, err := processes(server); err != nil || !slices.Equal(pids, []int{heir.Process.Pid}) {
			t.Errorf("%s, closed here: %v, %v", at, pids, err)
		}
		_ = in.Close()
		_ = heir.Wait()
		if pids, err := processes(server); !errors.Is(err, ErrUnseen) {
			t.Errorf("%s, closed: %v, %v", at, pids, err)
		}
	}
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
