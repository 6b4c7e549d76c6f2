package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/doctor"
	"heartbeat/orchestrator/explain"
	"heartbeat/orchestrator/notify"
	"heartbeat/orchestrator/notify/deliver"
	"heartbeat/orchestrator/notify/memo"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/oldqueue"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/ptyrun"
)

type notifyCmd struct {
	Action  string   `arg:"" enum:"test,log" help:"test or log."`
	Targets []string `arg:"" optional:"" help:"Keys of the fleet's notify; all of them when none is named." complete:"target"`
	Count   int      `short:"n" placeholder:"N" default:"20" help:"With log: how many lines, the newest (${default})."`
}

// Help implements kong's HelpProvider.
func (notifyCmd) Help() string {
	return `test sends each target a message and says whether it has taken it. It works
without a running scheduler. log shows what was sent, what failed and why, and what
is still on its way; only a running scheduler sends it.

Examples:

    heartbeat notify test
    heartbeat notify test phone
    heartbeat notify log
    heartbeat notify log phone -n 100 -o json`
}

func (c notifyCmd) run(ctx context.Context, a *app) (result, error) {
	if c.Count < 1 {
		return nil, usagef("heartbeat notify log -n 20", "-n is below 1")
	}
	fleet, err := a.knownFleet()
	if err != nil {
		return nil, err
	}
	targets, unknown := c.targets(fleet)
	if c.Action == "log" {
		return c.log(fleet, unknown)
	}
	if unknown != nil {
		return nil, unknown
	}
	return c.test(ctx, a, fleet, targets)
}

// targets returns the named ones, or all.
func (c notifyCmd) targets(f *config.Fleet) ([]string, error) {
	all := slices.Sorted(maps.Keys(f.Targets))
	if len(all) == 0 {
		return nil, &failure{
			status: exitError, hint: "heartbeat help notify shows how to declare one",
			err: fmt.Errorf("cannot tell anybody: %q has no notify", f.Path),
		}
	}
	for _, name := range c.Targets {
		if f.Targets[name] == nil {
			return nil, &failure{status: exitError, hint: "the targets are " + strings.Join(all, ", "), err: fmt.Errorf("cannot find the target %q", name)}
		}
	}
	if len(c.Targets) > 0 {
		return c.Targets, nil
	}
	return all, nil
}

// tested is what came of a message to each target.
type tested struct {
	Targets []testedTarget `json:"targets"`
}

type testedTarget struct {
	Target  string         `json:"target"`
	Outcome outbox.Outcome `json:"outcome"`
	Why     foreign.Text   `json:"why,omitempty"`
	// DurationMS is how long it took.
	DurationMS int64 `json:"duration_ms"`
}

func (c notifyCmd) test(ctx context.Context, a *app, f *config.Fleet, names []string) (result, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	if err := ptyrun.Bind(); err != nil { // the targets' commands are no persons
		return nil, err
	}
	res := tested{Targets: make([]testedTarget, len(names))}
	var all sync.WaitGroup
	for i, name := range names {
		a.step("sending to " + name)
		all.Go(func() {
			begin := time.Now()
			m := deliver.Trial(name, begin)
			v := deliver.To(ctx, f.Targets[name], deliver.From{Fleet: f.Name, Host: hostName()}, m)
			t := testedTarget{Target: name, Outcome: outbox.Sent, Why: foreign.Text(v.Why), DurationMS: time.Since(begin).Milliseconds()}
			if v.Why != "" {
				t.Outcome = outbox.Failed
			}
			res.Targets[i] = t
		})
	}
	all.Wait()
	if n := slices.IndexFunc(res.Targets, func(t testedTarget) bool { return t.Outcome != outbox.Sent }); n >= 0 {
		return res, &failure{
			status: exitError, hint: "correct notify: " + res.Targets[n].Target + " in the file, then try again",
			err: fmt.Errorf("cannot reach %s: %s", res.Targets[n].Target, res.Targets[n].Why),
		}
	}
	return res, nil
}

func (t tested) text(p *page) {
	var rows [][]cell
	for _, one := range t.Targets {
		colour := p.green
		if one.Outcome != outbox.Sent {
			colour = p.red
		}
		rows = append(rows, []cell{{text: one.Target}, {string(one.Outcome), colour}, {text: cmp.Or(one.Why.String(), "it should have arrived")}})
	}
	p.telling([]string{"TARGET", "OUTCOME", "WHY"}, rows)
}

// toldLog is what became of messages, and what is still to be sent.
type toldLog struct {
	Records []memo.Record `json:"records"`
	Pending []pendingTo   `json:"pending"`
}

// pendingTo is what is on its way to a target.
type pendingTo struct {
	Target  string `json:"target"`
	Notices int    `json:"notices"`
	// Next is when the next attempt is due, Failing since when attempts fail.
	Next    time.Time    `json:"next,omitzero"`
	Failing time.Time    `json:"failing,omitzero"`
	Why     foreign.Text `json:"why,omitempty"`
	Dropped int          `json:"dropped,omitempty"`
}

// log shows what became of messages, also of those to targets that the file no longer
// has. unknown is why a named target is none now, or nil.
func (c notifyCmd) log(f *config.Fleet, unknown error) (result, error) {
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	records, err := notify.Records(dir, c.Count, c.Targets)
	if err != nil {
		return nil, err
	}
	if unknown != nil && len(records) == 0 {
		return nil, unknown
	}
	boxes, err := notify.Pending(dir)
	if err != nil {
		return nil, err
	}
	log := toldLog{Records: records}
	for _, name := range slices.Sorted(maps.Keys(boxes)) {
		if b := boxes[name]; (len(c.Targets) == 0 || slices.Contains(c.Targets, name)) && (b.Pending() > 0 || b.Why != "") {
			log.Pending = append(log.Pending, pendingTo{name, b.Pending(), b.NextDue(), b.Failing, foreign.Text(b.Why), b.Dropped})
		}
	}
	return log, nil
}

func (l toldLog) text(p *page) {
	if len(l.Records)+len(l.Pending) == 0 {
		p.printf("no notice was sent yet\n")
		return
	}
	var rows [][]cell
	for _, r := range l.Records {
		colour := p.green
		if r.Outcome != outbox.Sent {
			colour = p.red
		}
		what := ""
		if len(r.Notices) > 0 {
			what = r.Notices[0].Headline()
		}
		if more := len(r.Notices) - 1; more > 0 {
			what += fmt.Sprintf(" and %d more", more)
		}
		if r.Why != "" {
			what += ": " + r.Why.String()
		}
		rows = append(rows, []cell{{text: r.At.Local().Format(time.DateTime)}, {text: r.Target}, {string(r.Outcome), colour}, {text: strconv.Itoa(r.Attempts)}, {text: what}})
	}
	p.table([]string{"TIME", "TARGET", "OUTCOME", "TRY", "WHAT"}, rows)
	for _, b := range l.Pending {
		p.printf("%s: %s on the way", b.Target, count(b.Notices, "notice"))
		if !b.Failing.IsZero() {
			p.printf("; it has failed for %s: %s", status.Age(time.Since(b.Failing)), b.Why)
		}
		p.printf("\n")
	}
}

// hostName is the machine's name.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "an unnamed machine"
	}
	return name
}

// watch returns who tells people about a fleet that is about to run.
func (a *app) watch(f *config.Fleet, s *store.Store) *notify.Watch {
	return notify.New(notify.Options{Fleet: f, StateDir: s.Dir(), Store: s, Ours: a.ours(), Host: hostName(), Examine: a.findings, Full: fullDisks(s.Dir()), Log: a.log})
}

// fullDisks returns what says which disks are full.
func fullDisks(stateDir string) func(*config.Fleet) []notice.Fact {
	return func(f *config.Fleet) (facts []notice.Fact) {
		for _, one := range doctor.Full(f.Agents, stateDir) {
			facts = append(facts, notice.Fact{
				Key: fmt.Sprintf("/%s/%s", notice.DiskFull, one.Fix), Kind: notice.DiskFull, Urgent: true,
				Since: time.Now(), Text: one.Seen + "; " + one.Why, Do: one.Fix, Slow: true,
			})
		}
		return facts
	}
}

// findings are what doctor finds in a running fleet, but for what status says anyway.
func (a *app) findings(ctx context.Context, f *config.Fleet, s notify.Scheduler) []notice.Fact {
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil // the caller that needs it reports it
	}
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	agents := s.Snapshot()
	those := slices.DeleteFunc(slices.Clone(f.Agents), func(a *config.Agent) bool {
		return !slices.ContainsFunc(agents, func(s status.AgentState) bool { return s.Agent == a.Name })
	})
	facts, err := doctor.Collect(ctx, doctor.Look{
		Scheduler: &doctor.Scheduler{PID: os.Getpid(), Agents: agents}, Agents: those, MaxSessions: f.MaxSessions, StateDir: dir, File: f.Path, Self: self, Env: os.Environ(), Ours: a.ours(),
		OldQueues: oldqueue.Waiting(dir, f.Agents),
	})
	if err != nil {
		a.log.Warn("cannot ask doctor", "err", err)
		return nil
	}
	return newsOf(doctor.Examine(facts))
}

// newsOf returns findings as facts, but for those that are an agent's trouble in status, or
// told by fullDisks.
func newsOf(found []doctor.Finding) (facts []notice.Fact) {
	now, taken := time.Now(), map[string]bool{}
	for _, one := range found {
		word, known := explain.Find(one.Code)
		key := fmt.Sprintf("%s/%s/%s", one.Agent, notice.Finding, one.Code)
		switch {
		case one.Severity == doctor.Info, doctor.IsFull(one):
			continue
		case one.Code == string(status.OldQueues), one.Code == string(status.LoginEnds): // a trouble of no agent, and there may be several
			key += "/" + one.Fix
		case known && slices.Contains(word.Of, "trouble"):
			continue
		case taken[key]: // another one with the same code
			key += "/" + one.Fix
		}
		taken[key] = true
		facts = append(facts, notice.Fact{
			Key: key, Agent: one.Agent, Kind: notice.Finding, Urgent: one.Severity == doctor.Error,
			Since: now, Text: one.Code + ": " + one.Seen, Do: one.Fix, Slow: true,
		})
	}
	return facts
}
