package doors

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/ptyrun/lobby"
)

// limits bound what slow, endless or broken clients cost: how long a connection has for
// its headers, its whole request, its answer and its next request. end is how long requests
// that are being answered have when the address closes. again is how often an address that
// could not be opened is tried again, and how often a socket is looked after.
type limits struct {
	header, read, write, idle, end, again time.Duration
	room                                  lobby.Room
}

// usual are the limits of every address. A gate may take a minute, a scrape of 10,000
// agents half of one.
var usual = limits{
	header: 5 * time.Second, read: 15 * time.Second, write: 90 * time.Second, idle: 30 * time.Second, end: 5 * time.Second, again: time.Second,
	room: lobby.Room{Served: 256, OfOne: 40, Waiting: 100, WaitingOfOne: 20},
}

const headerBytes = 16 << 10

// Serve answers until ctx ends, and closes the listener.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	return usual.serve(ctx, l, h, log)
}

func (b limits) serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: b.header, ReadTimeout: b.read, WriteTimeout: b.write, IdleTimeout: b.idle,
		MaxHeaderBytes: headerBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	lobby.Attend(server)
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		ending, cancel := context.WithTimeout(context.Background(), b.end)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(lobby.Open(l, b.room))
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

// handler answers what an address serves.
func (d *Doors) handler(l config.Listen) http.Handler {
	serves := func(s config.Service) bool { return slices.Contains(l.Serves, s) }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch metrics, page := isMetrics(r.URL.Path), isPage(r.URL.Path) && d.opt.Page != nil; {
		case page && serves(config.ServesPage):
			d.page(w, r)
		case !metrics && serves(config.ServesWebhooks) && (r.URL.Path != "/" || !serves(config.ServesPage)):
			d.opt.Webhooks.ServeHTTP(w, r) // refuses pages, and tells of it
		case fromPage(r):
			refuse(w, http.StatusForbidden, noPages)
		case r.URL.Path == "/" && serves(config.ServesPage):
			http.Redirect(w, r, config.PagePath, http.StatusSeeOther)
		case metrics && serves(config.ServesMetrics):
			d.opt.Metrics.ServeHTTP(w, r)
		default:
			refuse(w, http.StatusNotFound, "nothing is served at this path")
		}
	})
}
