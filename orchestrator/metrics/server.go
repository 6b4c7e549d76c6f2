package metrics

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of a scrape. One of 10,000 agents takes less than a second.
const (
	scrapeLimit  = 30 * time.Second
	scrapesAtAll = 4 // at once
)

// Handler answers /metrics, /healthz and /readyz.
func (m *Metrics) Handler() http.Handler {
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
