package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
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

// Server is listening, but does not answer yet.
type Server struct{ l net.Listener }

// standardPort is the port in examples; triedPorts is how many ports from there on
// are tried for a free one.
const standardPort, triedPorts = 9464, 100

const loopback = "127.0.0.1"

// Listen opens the address HOST:PORT. Without a host, or with only a port, it is
// one that only this machine can reach. The error is an *AddressError.
func Listen(addr string) (*Server, error) {
	if _, err := strconv.ParseUint(addr, 10, 16); err == nil {
		addr = ":" + addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &AddressError{Addr: addr, host: loopback, err: errors.New("it is not HOST:PORT or :PORT")}
	}
	host = cmp.Or(host, loopback)
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err == nil {
		return &Server{l}, nil
	}
	if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
		host = loopback // it may not be an address of this machine
	}
	return nil, &AddressError{Addr: addr, host: host, err: err}
}

// AddressError means that an address cannot be used.
type AddressError struct {
	Addr string
	host string // where another port may be free
	err  error
}

// Error names the address.
func (e *AddressError) Error() string {
	return fmt.Sprintf("cannot serve metrics on %q: %v", e.Addr, e.err)
}

// Unwrap returns the cause.
func (e *AddressError) Unwrap() error { return e.err }

// Hint names an address that is free now.
func (e *AddressError) Hint() string {
	for port := standardPort; port < standardPort+triedPorts; port++ {
		free := net.JoinHostPort(e.host, strconv.Itoa(port))
		l, err := net.Listen("tcp", free)
		if err != nil {
			continue
		}
		_ = l.Close()
		if e.host == loopback {
			free = fmt.Sprintf(":%d", port)
		}
		return "heartbeat run --metrics " + free + " (it is free)"
	}
	return "name an address and a port of this machine that are free"
}

// Addr returns where the server listens.
func (s *Server) Addr() string { return s.l.Addr().String() }

// Loopback reports whether only this machine can reach the server.
func (s *Server) Loopback() bool {
	tcp, ok := s.l.Addr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Serve answers until ctx ends, and closes the server.
func (s *Server) Serve(ctx context.Context, m *Metrics, log *slog.Logger) {
	server := &http.Server{
		Handler: s.guarded(m.handler()), ReadTimeout: readLimit, WriteTimeout: writeLimit, IdleTimeout: idleLimit,
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

// guarded refuses, if only this machine can reach the server, requests under
// another name: otherwise a web page whose name was made to point here could read
// the answers.
func (s *Server) guarded(next http.Handler) http.Handler {
	if !s.Loopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !local(r.Host) {
			http.Error(w, "ask by localhost or an address, not by another name", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// local reports whether a Host header names this machine: by an address, or as
// localhost.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	return host == "" || net.ParseIP(host) != nil || strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost")
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
