package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"heartbeat/hook/inbox"
)

// report is the result of a soak.
type report struct {
	Seed    uint64   `json:"seed"`
	Agents  int      `json:"agents"`
	Took    string   `json:"took,omitempty"`
	LeftOut []string `json:"left_out,omitempty"`

	Sent     int            `json:"sent"` // meant to be sent
	ByHow    map[string]int `json:"by_how"`
	Accepted int            `json:"accepted"`
	Unknown  int            `json:"unknown"` // whose sender was killed or failed
	Given    int            `json:"given"`   // to a model, at least once
	OnlyDead int            `json:"only_dead"`
	Repeats  int            `json:"repeats"`
	Dead     map[string]int `json:"dead"` // by their reasons
	// Acknowledged are records in outboxes.
	Acknowledged int            `json:"acknowledged"`
	Faults       map[string]int `json:"faults"`

	Starts    int       `json:"starts"` // of the scheduler
	Scheduler footprint `json:"scheduler"`
	Fresh     footprint `json:"fresh"`

	Broken   []string `json:"broken"`
	Evidence string   `json:"evidence,omitempty"`
}

func (r *report) how(p *prompt) {
	if r.ByHow == nil {
		r.ByHow = map[string]int{}
	}
	r.ByHow[string(p.How)]++
}

func (r *report) dead(why inbox.Reason) {
	if r.Dead == nil {
		r.Dead = map[string]int{}
	}
	r.Dead[string(why)]++
}

func (r *report) fault(f fault) {
	if r.Faults == nil {
		r.Faults = map[string]int{}
	}
	name := string(f.Kind)
	if f.Class != "" {
		name += " " + string(f.Class)
	}
	r.Faults[name]++
}

func (r *report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "seed\t%d\nagents\t%d\ntook\t%s\n", r.Seed, r.Agents, r.Took)
	fmt.Fprintf(t, "prompts\t%d\taccepted %d, not known %d\n", r.Sent, r.Accepted, r.Unknown)
	for _, how := range slices.Sorted(maps.Keys(r.ByHow)) {
		fmt.Fprintf(t, "  %s\t%d\n", how, r.ByHow[how])
	}
	fmt.Fprintf(t, "given\t%d\t%d times again\n", r.Given, r.Repeats)
	fmt.Fprintf(t, "acknowledged\t%d\n", r.Acknowledged)
	fmt.Fprintf(t, "dead letters\t%v\t%d prompts were never given\n", r.Dead, r.OnlyDead)
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(t, "  %s\t%d\n", kind, r.Faults[kind])
	}
	fmt.Fprintf(t, "scheduler\t%d starts\tat the end %d MB, %d files; a fresh one %d MB, %d files\n",
		r.Starts, r.Scheduler.RSS>>20, r.Scheduler.FDs, r.Fresh.RSS>>20, r.Fresh.FDs)
	for _, why := range r.LeftOut {
		fmt.Fprintf(t, "left out\t%s\n", why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Broken) == 0 {
		_, err := fmt.Fprintln(w, "nothing lost, garbled or doubled beyond the promise")
		return err
	}
	for _, b := range r.Broken {
		fmt.Fprintln(w, "BROKEN:", b)
	}
	_, err := fmt.Fprintf(w, "%d things are broken; the evidence is in %s\n", len(r.Broken), r.Evidence)
	return err
}
