package doors

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"heartbeat/config"
)

// limits bound what clients cost that are slow, endless or broken: a connection has so
// long for its headers, for all of its request, for its answer and for its next
// request, and there are so many at once; others wait in the system's queue.
type limits struct {
	header, read, write, idle time.Duration
	connections               int
}

// usual are the limits of every address. A gate may take a minute, a scrape of 10,000
// agents half of one.
var usual = limits{header: 5 * time.Second, read: 15 * time.Second, write: 90 * time.Second, idle: 30 * time.Second, connections: 100}

const (
	headerBytes = 16 << 10
	endLimit    = 5 * time.Second // for requests that are being answered at the end
)

// Serve answers until ctx ends, and closes the listener.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	return usual.serve(ctx, l, h, log)
}

func (b limits) serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: b.header, ReadTimeout: b.read, WriteTimeout: b.write, IdleTimeout: b.idle,
		MaxHeaderBytes: headerBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		ending, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(&few{Listener: l, room: make(chan struct{}, b.connections), closed: make(chan struct{})})
	if stop() {
		_ = server.Close() // it ended by itself
	} else {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// few is a listener with so many connections at once.
type few struct {
	net.Listener
	room   chan struct{}
	once   sync.Once
	closed chan struct{}
}

// Accept waits for room, then for a connection.
func (f *few) Accept() (net.Conn, error) {
	select {
	case f.room <- struct{}{}:
	case <-f.closed:
		return nil, net.ErrClosed
	}
	conn, err := f.Listener.Accept()
	if err != nil {
		<-f.room
		return nil, err
	}
	return &counted{Conn: conn, leave: sync.OnceFunc(func() { <-f.room })}, nil
}

// Close ends a wait for room, too.
func (f *few) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Listener.Close()
}

// counted is a connection that leaves its room when it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// handler answers what an address serves.
func (d *Doors) handler(l config.Listen) http.Handler {
	serves := func(s config.Service) bool { return slices.Contains(l.Serves, s) }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch metrics := isMetrics(r.URL.Path); {
		case metrics && serves(config.ServesMetrics):
			d.opt.Metrics.ServeHTTP(w, r)
		case !metrics && serves(config.ServesWebhooks):
			d.opt.Webhooks.ServeHTTP(w, r)
		default:
			refuse(w, http.StatusNotFound, "nothing is served at this path")
		}
	})
}
