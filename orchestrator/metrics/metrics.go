// Package metrics shows a running fleet to Prometheus and to health checks. It
// reads what the scheduler knows and decides nothing. Labels are names from the
// configuration and words from closed lists: never an entry's text or id.
package metrics

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/status"
)

// Build says which program runs.
type Build struct{ Version, Revision, Go string }

// Metrics are those of one run.
type Metrics struct {
	registry  *prometheus.Registry
	scheduler atomic.Pointer[Scheduler]

	fires, skips, failures, ended, restarts, recovered, checks *prometheus.CounterVec
	reloads                                                    *prometheus.CounterVec
	lateness                                                   prometheus.Histogram
	reloadOK                                                   prometheus.Gauge
}

// lateBuckets are in seconds: fires should be at most a quarter of one late, and
// one that is a minute late counts as missed.
var lateBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300}

// New returns the metrics of a run that has not begun.
func New(b Build) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		registry:  prometheus.NewRegistry(),
		fires:     counter("heartbeat_fires_total", "Fires of triggers that queued a prompt.", "agent", "trigger"),
		skips:     counter("heartbeat_fires_skipped_total", "Fires that were not queued: overlap (the last one is not done), gate (its command said no), too-large (over max-entry: a dead letter), queue-full (max-queue), rate or missed (it was due while nothing ran).", "agent", "trigger", "reason"),
		failures:  counter("heartbeat_trigger_failures_total", "Times that a trigger could not fire; it is tried again.", "agent", "trigger"),
		ended:     counter("heartbeat_sessions_ended_total", "Sessions that have ended, by why.", "agent", "reason"),
		restarts:  counter("heartbeat_backoffs_total", "Failures after which an agent waits before it starts again.", "agent"),
		recovered: counter("heartbeat_entries_recovered_total", "Entries whose session was interrupted, by what became of them.", "agent", "outcome"),
		checks:    counter("heartbeat_checks_total", "Checks of work, by verdict: passed, unproven (it is handed over again), the reason why it was given up, check-again or check-trouble (no answer).", "agent", "verdict"),
		reloads:   counter("heartbeat_config_reloads_total", "Reloads of the configuration, by result.", "result"),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "heartbeat_fire_lateness_seconds", Help: "How much later than scheduled a fire was queued.", Buckets: lateBuckets,
		}),
		reloadOK: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "heartbeat_config_last_reload_successful", Help: "1 unless the last reload of the configuration failed.",
		}),
	}
	m.reloadOK.Set(1)
	for _, result := range []string{"success", "failure"} {
		m.reloads.WithLabelValues(result)
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "heartbeat_build_info", Help: "Always 1; its labels say what runs.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.fires, m.skips, m.failures, m.ended, m.restarts, m.recovered, m.checks, m.reloads, m.lateness, m.reloadOK, build, now{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Follow shows a scheduler from now on.
func (m *Metrics) Follow(s Scheduler) { m.scheduler.Store(&s) }

// Observe counts an event. It is for orchestrator.Options.
func (m *Metrics) Observe(e journal.Event) {
	switch e.Kind {
	case journal.Fired:
		m.fires.WithLabelValues(e.Agent, triggerOf(e)).Inc()
		if !e.Due.IsZero() {
			m.lateness.Observe(max(0, e.At.Sub(e.Due)).Seconds())
		}
	case journal.Skipped:
		m.skips.WithLabelValues(e.Agent, triggerOf(e), firing.SkipCode(e)).Add(float64(max(1, e.Times)))
	case journal.TriggerFailed:
		m.failures.WithLabelValues(e.Agent, triggerOf(e)).Inc()
	case journal.Ended:
		m.ended.WithLabelValues(e.Agent, closed(e.Why, hook.Ends())).Inc()
	case journal.Recovered:
		m.recovered.WithLabelValues(e.Agent, closed(inbox.Outcome(e.Reason.Raw()), inbox.Outcomes())).Inc()
	case journal.Checked:
		m.checks.WithLabelValues(e.Agent, e.Verdict).Inc()
	case journal.StateChanged:
		if e.State == string(status.BackingOff) {
			m.restarts.WithLabelValues(e.Agent).Inc()
		}
	case journal.Reloaded:
		m.reloads.WithLabelValues("success").Inc()
		m.reloadOK.Set(1)
	case journal.ReloadFailed:
		m.reloads.WithLabelValues("failure").Inc()
		m.reloadOK.Set(0)
	case journal.Removed:
		for _, vec := range []*prometheus.CounterVec{m.fires, m.skips, m.failures, m.ended, m.restarts, m.recovered, m.checks} {
			vec.DeletePartialMatch(prometheus.Labels{"agent": e.Agent})
		}
	}
}

// closed returns a word from a closed list, or "other": a label has few values, and
// none that others wrote.
func closed[W ~string](word W, list []W) string {
	if slices.Contains(list, word) {
		return string(word)
	}
	return "other"
}

// triggerOf returns the name of an event's trigger, which is alone there or
// AGENT/TRIGGER@LABEL.
func triggerOf(e journal.Event) string {
	name := strings.TrimPrefix(e.Trigger, e.Agent+"/")
	name, _, _ = strings.Cut(name, "@")
	return name
}

// patience is how long a scrape and a health check wait for a sign of life.
const patience = 5 * time.Second
