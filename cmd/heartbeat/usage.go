package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

type usageCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents; if none is named, all of them, also former ones with records." complete:"agent"`
	Since  since    `placeholder:"TIME" default:"168h" help:"From a time on: 90m, 24h, 90d, 09:30, 2026-03-01 (${default})."`
	By     usage.By `enum:"agent,day,trigger,entry,account,session" default:"agent" help:"What a row is: agent, day, trigger, entry, account or session (${default})."`
}

// Help implements kong's HelpProvider.
func (usageCmd) Help() string {
	return `Shows what sessions have cost: turns, calls of the model, tokens by class, and
dollars. CALLS are the model's answers, one more for each round of tools. READ and
WRITTEN are what was sent again and read from the prompt cache, and what was written
to it. Dollars are the client's own figure, at list price; a subscription is not billed
by them, and then the table says so. What could not be seen is said below the table.

A fleet's newest million records are kept, for 400 days at most. Where an agent's are
gone, --by agent and --by day go on with the sums of each ten minutes, which are kept for
400 days (heartbeat series); the other tables say since when they are whole.

Examples:

    heartbeat usage
    heartbeat usage triage --by entry --since 24h
    heartbeat usage --by day --since 2026-03-01 -o json`
}

// spending is what was spent, and on what.
type spending struct {
	By    usage.By    `json:"by"`
	Since time.Time   `json:"since"`
	Rows  []usage.Row `json:"rows"`
	Total usage.Sum   `json:"total"`
	// WholeSince is since when there are records of all that was spent; zero: from Since
	// on. What was spent before is in the rows where Summed is true, from the series.
	WholeSince time.Time `json:"whole_since,omitzero"`
	Summed     bool      `json:"summed,omitempty"`
	// ListPrice is true where some of it may be of a subscription, which is not billed
	// by it.
	ListPrice bool `json:"list_price"`
}

func (c usageCmd) run(_ context.Context, a *app) (result, error) {
	table := &usage.Table{By: c.By, Zone: time.Local}
	res := spending{By: c.By, Since: c.Since.Time, Rows: []usage.Row{}, Summed: c.By == usage.ByAgent || c.By == usage.ByDay}
	dir, names, err := a.withPast(c.Agents, pastOf(usage.Agents))
	if err != nil {
		return nil, err
	}
	err = usage.Read(dir, func(v *store.View) error {
		for _, name := range names {
			err := usage.Each(v, name, c.Since.Time, func(r usage.Record) {
				table.Add(r)
				res.ListPrice = res.ListPrice || r.Cost > 0 && account.ID(r.Account).MaySubscribe()
			})
			if err == nil {
				err = res.before(v, name, table)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if res.WholeSince.IsZero() {
		res.Summed = false
	}
	rows, all := table.Rows()
	res.Rows, res.Total = append(res.Rows, rows...), all
	return res, nil
}

// before adds what an agent had spent before its oldest record, by the series: whole
// slots, as the record is of the slot that it is in.
func (s *spending) before(v *store.View, agent string, table *usage.Table) error {
	oldest, err := usage.Oldest(v, agent)
	if err != nil {
		return err
	}
	until := oldest.Truncate(series.Slot)
	if oldest.IsZero() {
		until = time.Now()
	}
	return series.Each(v, agent, s.Since, until, func(p series.Point) {
		if p.Sum == (usage.Sum{}) {
			return
		}
		if until.After(s.WholeSince) {
			s.WholeSince = until
		}
		if s.ListPrice = true; s.Summed { // nobody knows whose account it was
			table.Add(usage.Record{At: p.At, Agent: agent, Sum: p.Sum})
		}
	})
}

// pastOf returns the agents that a fleet's store knows by a question.
func pastOf(ask func(*store.View) ([]string, error)) func(stateDir string) ([]string, error) {
	return func(stateDir string) (names []string, err error) {
		err = usage.Read(stateDir, func(v *store.View) (err error) {
			names, err = ask(v)
			return err
		})
		return names, err
	}
}

// withPast returns the state directory and the names of those agents that are named or,
// without names, of all that are declared, and then of those that of knows from before.
func (a *app) withPast(names []string, of func(stateDir string) ([]string, error)) (stateDir string, all []string, err error) {
	f, declared, err := a.knownAgents(names)
	if err != nil {
		return "", nil, err
	}
	if stateDir, err = owner.StateDir(f); err != nil {
		return "", nil, err
	}
	for _, agent := range declared {
		all = append(all, agent.Name)
	}
	if len(names) > 0 {
		return stateDir, all, nil
	}
	past, err := of(stateDir)
	slices.Sort(past)
	for _, name := range past {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return stateDir, all, err
}

func (s spending) text(p *page) {
	if len(s.Rows) == 0 {
		p.saidf("nothing was spent since %s", cmp.Or(s.WholeSince, s.Since).Local().Format(time.DateTime))
		s.wholeText(p)
		return
	}
	named := s.By == usage.ByEntry || s.By == usage.BySession
	header := []string{strings.ToUpper(string(s.By)), "TURNS", "CALLS", "IN", "OUT", "READ", "WRITTEN", "COST"}
	if named {
		header = slices.Insert(header, 0, "TIME", "AGENT")
	}
	var rows [][]cell
	for _, r := range s.Rows {
		row := plain(append([]string{foreign.Text(r.Key).String()}, figures(r.Sum)...)...) // senders name entries
		if named {
			row = slices.Insert(row, 0, plain(r.From.Local().Format(time.DateTime), r.Agent)...)
		}
		rows = append(rows, row)
	}
	if len(s.Rows) > 1 {
		row := plain(append([]string{"all"}, figures(s.Total)...)...)
		if named {
			row = slices.Insert(row, 0, plain("", "")...)
		}
		rows = append(rows, row)
	}
	p.table(header, rows)
	s.accountsText(p)
	dollars := "dollars by the client's own figure"
	if s.ListPrice {
		dollars += ", at list price: a subscription is not billed by them"
	}
	p.printf("\n")
	p.linesf("since %s; %s", s.Since.Local().Format(time.DateTime), dollars)
	s.wholeText(p)
	if n := s.Total.Unseen; n > 0 {
		p.linesf("%s without figures: cut off before the answer was written down", turnsOf(n))
	}
	if n := s.Total.Unpriced; n > 0 {
		p.linesf("%s without a cost: the client reported none", turnsOf(n))
	}
	if n := s.Total.Guessed; n > 0 {
		p.linesf("%s of a model whose price the client does not know: it takes another one's", turnsOf(n))
	}
}

// wholeText says where records are gone.
func (s spending) wholeText(p *page) {
	switch whole := s.WholeSince.Local().Format(time.DateTime); {
	case s.WholeSince.IsZero():
	case s.Summed:
		p.linesf("before %s: by the sums of each ten minutes (heartbeat series)", whole)
	default:
		p.linesf("before %s more was spent, known as sums only: --by agent, --by day", whole)
	}
}

// accountsText says whose accounts those are: their names are hashes, as no secret and
// no address is kept.
func (s spending) accountsText(p *page) {
	if s.By != usage.ByAccount {
		return
	}
	p.printf("\n")
	for _, r := range s.Rows {
		p.printf("%s: used by %s\n", foreign.Text(r.Key), names(r.Agents, p.prose()-width(r.Key)-len(": used by ")))
	}
}

func turnsOf(n int64) string {
	if n == 1 {
		return "1 turn"
	}
	return fmt.Sprintf("%d turns", n)
}

// figures are the columns of a sum.
func figures(s usage.Sum) []string {
	return []string{
		fmt.Sprint(s.Turns), fmt.Sprint(s.Calls),
		usage.Tokens(s.Input), usage.Tokens(s.Output), usage.Tokens(s.CacheRead), usage.Tokens(s.CacheWrite), s.Price(),
	}
}
