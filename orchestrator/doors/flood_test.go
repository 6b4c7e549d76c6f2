package doors

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/internal/testbed"
)

// TestSilentConnectionsCloseOutNobody: 300 connections that keep an address waiting, in
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
	} {
		t.Run(flood.network, func(t *testing.T) { flooded(t, flood.network, flood.says) })
	}
}

func flooded(t *testing.T, network, says string) {
	l := newLab(t)
	l.doors.opt.Page = pages{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") })}
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
	for range 300 {
		all.Go(func() {
			for ctx.Err() == nil {
				conn, err := dial(time.Hour)
				if err != nil {
					continue
				}
				opened.Add(1)
				end := context.AfterFunc(ctx, func() { _ = conn.Close() })
				_, _ = io.WriteString(conn, says)
				_, _ = io.Copy(io.Discard, conn)
				if end() {
					_ = conn.Close()
				}
			}
		})
	}
	if !testbed.Await(testbed.Patience, func() bool { return opened.Load() >= 300 }) {
		t.Fatalf("%d connections are open", opened.Load())
	}
	for range 5 {
		for _, path := range []string{"/page/", "/metrics", "/none"} {
			conn, err := dial(testbed.Patience)
			l.must(err)
			_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Errorf("%s is not answered: %v", path, err)
			} else {
				_ = res.Body.Close()
			}
			_ = conn.Close()
		}
	}
}
