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

// pages is a page that trusts nobody, and knows who says so.
type pages struct{ http.Handler }

func (pages) Trusts(netip.Addr) bool     { return false }
func (pages) Knows(r *http.Request) bool { return r.Header.Get("Cookie") == "known" }

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
		_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nCookie: known\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 0\r\n\r\n", method, path)
		l.must(err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		l.must(err)
		body, err := io.ReadAll(res.Body)
		l.must(err)
		return conn, res.StatusCode, string(body)
	}
	for range usual.room.Served + 5 {
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
