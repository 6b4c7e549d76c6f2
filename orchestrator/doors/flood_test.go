package doors

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/internal/testbed"
)

// TestSilentConnectionsCloseOutNobody: 700 connections that keep an address waiting, in
// any way and on any network, and that are opened again as soon as they are ended, and a
// client beside them that is answered each time by all that is served. None of them is ever
// ended for its silence: a client that had to wait for that would not be answered.
func TestSilentConnectionsCloseOutNobody(t *testing.T) {
	t.Parallel()
	for _, flood := range []struct{ network, says string }{
		{"tcp", ""},
		{"unix", ""},
		{"tcp", "GET /page/ HTTP/1.1\r\nHost: loc"},
		{"tcp", "POST /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"},
		{"unix", "GET /page/ HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{"tcp", "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{"tcp", unread},
		{"unix", unread},
	} {
		t.Run(flood.network, func(t *testing.T) { flooded(t, flood.network, flood.says) })
	}
}

// flood is how many connections there are.
const flood = 700

// unread asks again and again, and reads no answer.
const unread = "GET /page/unread HTTP/1.1\r\nHost: localhost\r\n\r\n"

func flooded(t *testing.T, network, says string) {
	l, large := newLab(t), make([]byte, 8<<20)
	l.doors.opt.Page = pages{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") == "" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		if r.URL.Path == "/page/unread" {
			_, _ = w.Write(large)
		}
	})}
	at := config.Listen{Network: network, Address: filepath.Join(l.dir, "s"), Mode: 0o600}
	if network == "tcp" {
		port, err := net.Listen("tcp", "127.0.0.1:0")
		l.must(err)
		at.Address = port.Addr().String()
		l.must(port.Close())
	}
	l.doors.limits.header, l.doors.limits.read, l.doors.limits.write, l.doors.limits.idle = time.Hour, time.Hour, time.Hour, time.Hour
	at.Serves = []config.Service{config.ServesWebhooks, config.ServesMetrics, config.ServesPage}
	l.doors.Set([]config.Listen{at})
	l.state("")
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer all.Wait()
	defer cancel()
	var opened atomic.Int64
	dial := func(patience time.Duration) (net.Conn, error) {
		conn, err := net.DialTimeout(network, at.Address, patience)
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(patience))
		}
		return conn, err
	}
	for range flood {
		all.Go(func() {
			for ctx.Err() == nil {
				conn, err := dial(time.Hour)
				if err != nil {
					continue
				}
				opened.Add(1)
				end := context.AfterFunc(ctx, func() { _ = conn.Close() })
				_, err = io.WriteString(conn, says)
				if c, ok := conn.(interface{ SetReadBuffer(int) error }); ok && says == unread {
					_ = c.SetReadBuffer(4 << 10)
				}
				for says == unread && err == nil {
					_, err = io.WriteString(conn, strings.Repeat(unread, 1000))
				}
				_, _ = io.Copy(io.Discard, conn)
				if end() {
					_ = conn.Close()
				}
			}
		})
	}
	if !testbed.Await(testbed.Patience, func() bool { return opened.Load() >= flood }) {
		t.Fatalf("%d connections are open", opened.Load())
	}
	for _, path := range []string{"/page/", "/metrics", "/none"} {
		conn, err := dial(testbed.Patience)
		l.must(err)
		_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nCookie: known\r\nConnection: close\r\n\r\n", path)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode == http.StatusServiceUnavailable {
			t.Errorf("%s is not answered: %+v, %v", path, res, err)
		} else {
			_ = res.Body.Close()
		}
		_ = conn.Close()
	}
}
