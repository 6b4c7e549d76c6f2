package page

import (
	"context"
	"net/url"
	"slices"
	"time"

	"heartbeat/orchestrator/page/plot"
	"heartbeat/orchestrator/series"
)

// length is how far back plots go, and what a bar is.
type length struct {
	Name, Text, Bar string
	back            time.Duration
	every           series.Every
}

// lengths are those that are offered; the second is the usual one.
var lengths = []length{
	{"6h", "6 hours", "ten minutes", 6 * time.Hour, series.EverySlot},
	{"24h", "24 hours", "an hour", 24 * time.Hour, series.Hour},
	{"7d", "7 days", "an hour", 7 * 24 * time.Hour, series.Hour},
	{"90d", "90 days", "a day", 90 * 24 * time.Hour, series.Day},
	{"400d", "400 days", "a day", 400 * 24 * time.Hour, series.Day},
}

func lengthOf(q url.Values) length {
	for _, l := range lengths {
		if l.Name == q.Get("of") {
			return l
		}
	}
	return lengths[1]
}

// plots is the page of what all agents did over time, agentPlots that of one.
func (p *Page) plots(ctx context.Context, q ask) (Sheet, error) {
	return p.figures(ctx, q, Sheet{Title: "Plots", Crumb: "Plots"}, "")
}

func (p *Page) agentPlots(ctx context.Context, q ask) (Sheet, error) {
	s, v, err := p.head(ctx, q, "plots")
	if err != nil {
		return s, err
	}
	return p.figures(ctx, q, s, v.Agent.Agent)
}

// figures adds the plots of an agent, or of all agents, to a sheet.
func (p *Page) figures(ctx context.Context, q ask, s Sheet, agent string) (Sheet, error) {
	l := lengthOf(q.Query())
	parts, err := p.plotted.get(ctx, l.Name+" "+agent, func() ([]Part, error) {
		past, err := p.opt.Agents.Series(ctx, agent, q.Now.Add(-l.back), q.Now, l.every)
		if err != nil {
			return nil, err
		}
		figures := plot.Draw(past)
		zone, _ := q.Now.Local().Zone()
		d := drawer{page: p}
		parts := []Part{d.part(Part{ID: "plots-head"}, "plots-head", struct {
			Lengths []length
			Now     length
			Zone    string
			// Gaps and Running are those of the figures.
			Gaps, Running bool
		}{lengths, l, zone, slices.ContainsFunc(figures, func(f plot.Figure) bool { return f.Gaps }), slices.ContainsFunc(figures, func(f plot.Figure) bool { return f.Running })})}
		for _, f := range figures {
			parts = append(parts, d.part(Part{ID: f.ID, Class: "plot"}, "plot", f))
		}
		return parts, d.err
	})
	s.Parts = append(s.Parts, parts...)
	return s, err
}
