package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"heartbeat/internal/promise"
)

// report is the result of a soak.
type report struct {
	Seed    uint64   `json:"seed,omitempty"`
	Agents  int      `json:"agents,omitempty"`
	Took    string   `json:"took,omitempty"`
	LeftOut []string `json:"left_out,omitempty"`

	promise.Verdict

	Starts    int       `json:"starts,omitempty"` // of the scheduler
	Scheduler footprint `json:"scheduler,omitzero"`
	Fresh     footprint `json:"fresh,omitzero"`

	Record string `json:"record"`
}

func (r *report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if r.Starts > 0 {
		fmt.Fprintf(t, "seed\t%d\nagents\t%d\ntook\t%s\n", r.Seed, r.Agents, r.Took)
	}
	fmt.Fprintf(t, "prompts\t%d\taccepted %d, refused %d, not known %d\n", r.Prompts, r.Accepted, r.Refused, r.Unknown())
	table(t, r.ByWay)
	fmt.Fprintf(t, "given\t%d\t%d times again\n", r.Given, r.Repeats)
	fmt.Fprintf(t, "acknowledged\t%d\n", r.Acknowledged)
	fmt.Fprintf(t, "dead letters\t%v\t%d prompts were never given\n", r.Dead, r.OnlyDead)
	table(t, r.Done)
	if r.Starts > 0 {
		fmt.Fprintf(t, "scheduler\t%d starts\tat the end %d MB, %d files; a fresh one %d MB, %d files\n",
			r.Starts, r.Scheduler.RSS>>20, r.Scheduler.FDs, r.Fresh.RSS>>20, r.Fresh.FDs)
	}
	for _, why := range r.LeftOut {
		fmt.Fprintf(t, "left out\t%s\n", why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Findings) == 0 {
		_, err := fmt.Fprintln(w, "nothing lost, garbled or doubled beyond the promise")
		return err
	}
	for _, f := range r.Findings {
		fmt.Fprintln(w, "BROKEN:", f)
	}
	_, err := fmt.Fprintf(w, "%d things are broken; the lines are those of %s\n", len(r.Findings), r.Record)
	return err
}

func table(w io.Writer, of map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if name != "" {
			fmt.Fprintf(w, "  %s\t%d\n", name, of[name])
		}
	}
}
