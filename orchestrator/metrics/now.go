package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"heartbeat/orchestrator"
	"heartbeat/orchestrator/status"
)

// Scheduler is what the metrics show.
type Scheduler interface {
	Alive(ctx context.Context) error
	Vitals() orchestrator.Vitals
	Snapshot() []status.AgentState
	Backlog() []status.Backlog
}

// now is what can be said at the moment of a scrape.
type now struct{ m *Metrics }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("heartbeat_"+name, help, labels, nil)
}

var (
	aliveDesc  = desc("scheduler_alive", "1 when the scheduler lives; 0 when it is stuck, and then most other metrics are missing.")
	readyDesc  = desc("scheduler_ready", "1 when directories are locked, orphans recovered and triggers run, until the run stops.")
	slotsDesc  = desc("session_slots", "How many sessions may live at once.")
	usedDesc   = desc("sessions", "How many sessions live.")
	checksDesc = desc("checks_running", "How many checks run.")
	agentsDesc = desc("agents", "How many agents are in a state.", "state")
	parkedDesc = desc("account_parked_until_timestamp_seconds", "Until when an account is parked (usage limit), the longest of them; 0 when none is.")

	stateDesc  = desc("agent_state", "1 for the state that an agent is in.", "agent", "state")
	personDesc = desc("agent_needs_person", "1 when an agent is held until a person resumes it, and not because one has paused it, or when its directory is gone.", "agent")
	pausedDesc = desc("agent_paused_since_timestamp_seconds", "Since when a person wants nothing started for an agent.", "agent")
	sinceDesc  = desc("agent_state_since_timestamp_seconds", "Since when an agent is in its state.", "agent")
	untilDesc  = desc("agent_waits_until_timestamp_seconds", "Until when an agent backs off or is parked.", "agent")
	flightDesc = desc("entry_in_flight_since_timestamp_seconds", "Since when the session of an agent works on its entry.", "agent")
	doneDesc   = desc("entries_acknowledged_total", "Entries that sessions of this run have done.", "agent")
	turnsDesc  = desc("turns_total", "Turns of sessions of this run that the model has answered.", "agent")
	tokensDesc = desc("tokens_total", "Tokens that sessions of this run have taken, by class; cache_read is what was sent again.", "agent", "class")
	costDesc   = desc("cost_dollars_total", "What sessions of this run have cost at list price, by the client's own figure.", "agent")
	budgetDesc = desc("agent_over_budget", "1 while an agent is parked because a budget is spent.", "agent")
	givenDesc  = desc("entries_deadlettered_total", "Entries that this run has given up.", "agent")

	refusedDesc = desc("webhook_refused_requests", "Requests that a webhook has refused since it last accepted one of that kind of sender, by what is wrong with them.", "agent", "trigger", "sender", "reason")

	queuedDesc  = desc("queued_entries", "Entries that are queued, without the one in flight.", "agent")
	asideDesc   = desc("entries_waiting_aside", "Entries that wait for a person's approval while the queue goes on.", "agent")
	oldestDesc  = desc("oldest_queued_since_timestamp_seconds", "Since when the first queued entry stands there, as far as this run has seen.", "agent")
	deadDesc    = desc("dead_letters", "Entries in the dead-letter file.", "agent")
	problemDesc = desc("queue_unreadable", "1 when an agent's queue cannot be read, or a file that says what was done or given up; missing otherwise.", "agent")
)

// Describe implements prometheus.Collector.
func (now) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		aliveDesc, readyDesc, slotsDesc, usedDesc, checksDesc, agentsDesc, parkedDesc, stateDesc, personDesc, pausedDesc, sinceDesc, untilDesc, flightDesc,
		doneDesc, givenDesc, turnsDesc, tokensDesc, costDesc, budgetDesc, refusedDesc, queuedDesc, asideDesc, oldestDesc, deadDesc, problemDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. A scheduler that is stuck is asked
// nothing that would wait for it.
func (n now) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s, err := n.m.living(context.Background())
	gauge(aliveDesc, truth(err == nil))
	if s == nil {
		gauge(readyDesc, 0)
		return
	}
	v := s.Vitals()
	gauge(readyDesc, truth(v.Ready && !v.Stopping))
	gauge(slotsDesc, float64(v.Slots))
	gauge(usedDesc, float64(v.Sessions))
	gauge(parkedDesc, stamp(v.Parked))
	for _, state := range status.States() {
		gauge(agentsDesc, float64(v.Agents[state]), string(state))
	}
	running := 0
	for _, a := range s.Snapshot() {
		if a.Proof != nil && a.Proof.State == status.CheckRuns {
			running++
		}
		n.agent(ch, gauge, a)
	}
	gauge(checksDesc, float64(running))
	if !v.Ready {
		return // the queues are still being recovered
	}
	for _, b := range s.Backlog() {
		queued(gauge, b)
	}
}

// gauges sends the value of a gauge.
type gauges func(d *prometheus.Desc, v float64, labels ...string)

// agent sends what an agent does, has done in this run, and has spent.
func (n now) agent(ch chan<- prometheus.Metric, gauge gauges, a status.AgentState) {
	gauge(stateDesc, 1, a.Agent, string(a.State))
	gauge(personDesc, truth(a.NeedsPerson()), a.Agent)
	if !a.Paused.IsZero() {
		gauge(pausedDesc, stamp(a.Paused), a.Agent)
	}
	gauge(sinceDesc, stamp(a.Since), a.Agent)
	if !a.Until.IsZero() {
		gauge(untilDesc, stamp(a.Until), a.Agent)
	}
	if a.Work != nil {
		gauge(flightDesc, stamp(a.Work.Since), a.Agent)
	}
	ch <- prometheus.MustNewConstMetric(doneDesc, prometheus.CounterValue, float64(a.Acknowledged), a.Agent)
	ch <- prometheus.MustNewConstMetric(givenDesc, prometheus.CounterValue, float64(a.DeadLettered), a.Agent)
	if a.Aside > 0 {
		gauge(asideDesc, float64(a.Aside), a.Agent)
	}
	for _, r := range a.RefusedRequests {
		gauge(refusedDesc, float64(r.Times), a.Agent, r.Trigger, string(r.Sender), string(r.Fault))
	}
	n.spent(ch, a)
}

// queued sends what is in an agent's queue.
func queued(gauge gauges, b status.Backlog) {
	gauge(queuedDesc, float64(b.Queued), b.Agent)
	gauge(deadDesc, float64(b.Dead), b.Agent)
	if !b.Since.IsZero() {
		gauge(oldestDesc, stamp(b.Since), b.Agent)
	}
	if b.Problem != "" {
		gauge(problemDesc, 1, b.Agent)
	}
}

// spent shows what an agent's sessions of this run have cost.
func (now) spent(ch chan<- prometheus.Metric, a status.AgentState) {
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	count(turnsDesc, float64(a.Spent.Turns), a.Agent)
	for class, n := range map[string]int64{
		"input": a.Spent.Input, "output": a.Spent.Output, "cache_read": a.Spent.CacheRead, "cache_write": a.Spent.CacheWrite,
	} {
		count(tokensDesc, float64(n), a.Agent, class)
	}
	count(costDesc, a.Spent.Cost, a.Agent)
	if a.OverBudget {
		ch <- prometheus.MustNewConstMetric(budgetDesc, prometheus.GaugeValue, 1, a.Agent)
	}
}

// living returns the scheduler if there is one and it lives; nil and nil if there
// is none yet.
func (m *Metrics) living(ctx context.Context) (Scheduler, error) {
	p := m.scheduler.Load()
	if p == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := (*p).Alive(ctx); err != nil {
		return nil, err
	}
	return *p, nil
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// stamp returns a time as Prometheus has it; the zero time is 0.
func stamp(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
