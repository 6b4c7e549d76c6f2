package doors

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/config"
)

// pages is a page that trusts nobody.
type pages struct{ http.Handler }

func (pages) Trusts(netip.Addr) bool { return false }

// TestBrowsersDoNotKeepWebhooksOut: more of them than there is room for connections
// stay connected, and a webhook is answered. Forms of pages are let through to the page,
// and to nothing else.
func TestBrowsersDoNotKeepWebhooksOut(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.doors.opt.Page = pages{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page "+r.Method) })}
	s := l.socket("s")
	s.Serves = []config.Service{config.ServesWebhooks, config.ServesPage}
	l.doors.Set([]config.Listen{s})
	l.state("")
	ask := func(method, path string) (net.Conn, int, string) {
		conn, err := net.Dial("unix", filepath.Join(l.dir, "s"))
		l.must(err)
		t.Cleanup(func() { _ = conn.Close() })
		l.must(conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 0\r\n\r\n", method, path)
		l.must(err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		l.must(err)
		body, err := io.ReadAll(res.Body)
		l.must(err)
		return conn, res.StatusCode, string(body)
	}
	for range usual.room.served + 5 {
		if _, code, body := ask("GET", "/page/"); code != http.StatusOK || body != "page GET" {
			t.Fatal(code, body)
		}
	}
	if code, _, _ := l.ask(http.MethodPost, "/open", `{"text": "x"}`); code != http.StatusAccepted {
		t.Errorf("a webhook: %d", code)
	}
	for path, want := range map[string]int{"/page/act": 200, "/page": 200, "/open": 403, "/pages": 403, "/": 403} {
		if _, code, _ := ask("POST", path); code != want {
			t.Errorf("a form for %s: %d, want %d", path, code, want)
		}
	}
	if _, code, _ := ask("GET", "/"); code != http.StatusSeeOther {
		t.Errorf("the root: %d", code)
	}
	s.Serves = s.Serves[:1]
	l.doors.Set([]config.Listen{s})
	l.state("")
	if _, code, _ := ask("GET", "/page/"); code != http.StatusNotFound {
		t.Errorf("a page that is not served: %d", code)
	}
}

func TestTheCrowdIsBounded(t *testing.T) {
	t.Parallel()
	c := floor{most: mostBrowsers}
	one := netip.MustParsePrefix("192.0.2.1/32")
	enters := func(from netip.Prefix, share int) (*counted, bool) {
		conn := newCounted(&stranger{})
		conn.busy.Store(true)
		ended, _, ok := c.enters(conn, from, share)
		if ended != nil {
			t.Error("one that is being answered makes room")
		}
		return conn, ok
	}
	var in []*counted
	for range mostOfBrowser {
		conn, ok := enters(one, mostOfBrowser)
		if !ok {
			t.Fatal("there is room")
		}
		in = append(in, conn)
	}
	if _, ok := enters(one, mostOfBrowser); ok {
		t.Error("one client has more than its share")
	}
	for range mostBrowsers - mostOfBrowser {
		if _, ok := enters(netip.Prefix{}, mostBrowsers); !ok {
			t.Fatal("there is room")
		}
	}
	if _, ok := enters(netip.Prefix{}, mostBrowsers); ok {
		t.Error("there are too many")
	}
	for _, conn := range in {
		c.leaves(conn)
	}
	if _, ok := enters(one, mostOfBrowser); !ok || len(c.by) != 2 {
		t.Error("who has left takes room")
	}
}
