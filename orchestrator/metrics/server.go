package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of the server. A scrape of 10,000 agents takes less than a second.
const (
	readLimit    = 10 * time.Second
	scrapeLimit  = 30 * time.Second
	writeLimit   = scrapeLimit + 10*time.Second
	idleLimit    = 2 * time.Minute
	headerLimit  = 16 << 10
	scrapesAtAll = 4 // at once
	endLimit     = time.Second
)

// Server is a listening one that does not answer yet.
type Server struct{ l net.Listener }

// Listen opens the address HOST:PORT. Without a host, or with a port alone, it
// is one that only this machine can reach.
func Listen(addr string) (*Server, error) {
	if _, err := strconv.ParseUint(addr, 10, 16); err == nil {
		addr = ":" + addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics: %q is not HOST:PORT or :PORT", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics on %q: %w", addr, err)
	}
	return &Server{l}, nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.l.Addr().String() }

// Loopback reports whether only this machine can reach the server.
func (s *Server) Loopback() bool {
	tcp, ok := s.l.Addr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Serve answers until ctx ends, and closes the server.
func (s *Server) Serve(ctx context.Context, m *Metrics, log *slog.Logger) {
	server := &http.Server{
		Handler: m.handler(), ReadTimeout: readLimit, WriteTimeout: writeLimit, IdleTimeout: idleLimit,
		MaxHeaderBytes: headerLimit, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
	})
	defer stop()
	if err := server.Serve(s.l); !errors.Is(err, http.ErrServerClosed) {
		log.Error("metrics are not served any more", "err", err)
	}
}

func (m *Metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapesAtAll, Timeout: scrapeLimit,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		_, err := m.living(r.Context())
		answer(w, "stuck", err)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		s, err := m.living(r.Context())
		switch {
		case err != nil:
			answer(w, "stuck", err)
		case s == nil || !s.Vitals().Ready:
			answer(w, "starting", errors.New("directories are being locked and orphans recovered"))
		case s.Vitals().Stopping:
			answer(w, "stopping", errors.New("nothing new is started"))
		default:
			answer(w, "", nil)
		}
	})
	return mux
}

// health is the body of an answer about health.
type health struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

func answer(w http.ResponseWriter, status string, err error) {
	h, code := health{Status: "ok"}, http.StatusOK
	if err != nil {
		h, code = health{Status: status, Reason: err.Error()}, http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(h) // the client may have gone
}
