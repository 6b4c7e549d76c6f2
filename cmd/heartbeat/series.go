package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

type seriesCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents, added up; if none is named, all of them, also former ones with records." complete:"agent"`
	Since  since    `placeholder:"TIME" default:"24h" help:"From a time on: 90m, 24h, 90d, 09:30, 2026-03-01 (${default})."`
	Every  string   `enum:"auto,slot,hour,day" default:"auto" help:"What a row is: slot (ten minutes), hour or day; auto: hours up to two days, days beyond (${default})."`
}

// Help implements kong's HelpProvider.
func (seriesCmd) Help() string {
	return `Shows what agents did over time: the most prompts that were queued at once, prompts
done and given up, sessions that ended, fires of triggers and how late the latest one
was, turns, tokens (in, out, and written to the prompt cache) and cost. Rows in which
nothing happened are left out; times without a run, about which nothing is known, are
summed up below them (-o json lists them). A "-" under QUEUED: nobody has looked how
many were queued.

Every ten minutes are a row in the fleet's store for each agent that did something, of
some 100 bytes, which is kept for 400 days. "heartbeat usage" also reads these rows where
the records of single entries are gone.

Examples:

    heartbeat series
    heartbeat series triage --since 90d
    heartbeat series --since 2026-03-01 --every slot -o json`
}

// happenings are what agents did over time.
type happenings struct {
	Since  time.Time    `json:"since"`
	Every  series.Every `json:"every"` // slot, hour, day
	Points []happening  `json:"points"`
	// Unwatched are the times in which no run looked.
	Unwatched []series.Gap `json:"unwatched"`
}

// happening is one row.
type happening struct {
	series.Point
	LateMS int64 `json:"late_ms"`
	// Unmeasured is true if nobody knows how many were queued.
	Unmeasured bool `json:"queued_unknown,omitempty"`
}

func (c seriesCmd) run(_ context.Context, a *app) (result, error) {
	f, _, err := a.knownAgents(c.Agents)
	if err != nil {
		return nil, err
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	past := series.Past{Every: series.Every(c.Every).Of(now.Sub(c.Since.Time))} // of a fleet without a store
	err = usage.Read(dir, func(v *store.View) (err error) {
		past, err = series.Look(v, c.Agents, c.Since.Time, now, series.Every(c.Every))
		return err
	})
	if err != nil {
		return nil, err
	}
	res := happenings{Since: c.Since.Time, Every: past.Every, Points: []happening{}, Unwatched: past.Gaps(c.Since.Time, now)}
	for _, p := range past.Points {
		from, until := past.Every.Bounds(p.At.Local())
		res.Points = append(res.Points, happening{p, p.Late.Milliseconds(), p.Queued == 0 && past.Unmeasured(from, until)})
	}
	return res, nil
}

func (h happenings) text(p *page) {
	if len(h.Points) == 0 {
		p.linesf("nothing is recorded since %s", h.Since.Local().Format(time.DateTime))
		return
	}
	form := "2006-01-02 15:04"
	if h.Every == series.Day {
		form = time.DateOnly
	}
	most := int64(1)
	for _, r := range h.Points {
		most = max(most, r.Done)
	}
	var rows [][]cell
	for _, r := range h.Points {
		queued, late := strconv.FormatInt(r.Queued, 10), "-"
		if r.Unmeasured {
			queued = "-"
		}
		if r.Fires > 0 {
			late = status.Span(r.Late)
		}
		rows = append(rows, plain(r.At.Local().Format(form), queued, strconv.FormatInt(r.Done, 10), strconv.FormatInt(r.Failed, 10),
			strconv.FormatInt(r.Sessions, 10), strconv.FormatInt(r.Fires, 10), late, strconv.FormatInt(r.Turns, 10),
			usage.Tokens(r.Input+r.Output+r.CacheWrite), r.Sum.Price(), strings.Repeat("█", int((r.Done*doneBar+most-1)/most))))
	}
	p.table([]string{"TIME", "QUEUED", "DONE", "FAILED", "SESSIONS", "FIRES", "LATE", "TURNS", "TOKENS", "COST", barHeader}, rows)
	h.unwatched(p)
}

// unwatched says for how long no run looked since the first row, and when the longest.
func (h happenings) unwatched(p *page) {
	var all time.Duration
	var longest series.Gap
	for _, g := range h.Unwatched {
		if g.From.Before(h.Points[0].At) {
			continue
		}
		all += g.Length()
		if g.Length() > longest.Length() {
			longest = g
		}
	}
	if all > 0 {
		const form = "2006-01-02 15:04"
		p.linesf("heartbeat was not running for %s of this time, at the longest from %s to %s", status.Span(all), longest.From.Local().Format(form), longest.Until.Local().Format(form))
	}
}

// doneBar is how long the bar of the row is in which most was done.
const doneBar = 20
