package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"heartbeat/internal/promise"
)

// The targets, on two cores.
const (
	lateP99 = 250 * time.Millisecond
	// burstP99 is no promise of ours but of the disk: 10,000 fires at one
	// instant are as many files to be written and synced.
	burstP99    = 5 * time.Second
	peakMemory  = 200 << 20
	idlePercent = 1.0
	readyWithin = 10 * time.Second
	loadWithin  = time.Second
)

// shownFindings is how many findings of a scenario are printed.
const shownFindings = 20

// target is a figure beside the most it may be.
type target struct {
	Scenario string  `json:"scenario"`
	Name     string  `json:"name"`
	Got      float64 `json:"got"`
	Limit    float64 `json:"limit"`
	Unit     string  `json:"unit"`
	Missed   bool    `json:"missed"`
}

// targets returns what is wanted of a result.
func (r *Result) targets() []target {
	var all []target
	add := func(name string, got, limit float64, unit string) {
		all = append(all, target{r.Scenario, name, got, limit, unit, got > limit})
	}
	add("memory, most", float64(r.RSSPeak)/(1<<20), peakMemory>>20, "MB")
	add("start to ready", r.Ready.Seconds(), readyWithin.Seconds(), "s")
	add("configuration loaded", r.Load.Seconds(), loadWithin.Seconds(), "s")
	if r.Owed == 0 {
		add("idle processor time", r.CPUPercent, idlePercent, "% of a core")
		return all
	}
	add("lateness p99", ms(r.Queued.P99), ms(scenarios[r.Scenario].late), "ms")
	lost, doubled, waiting := r.found(promise.Lost), r.found(promise.Doubled), r.found(promise.Waiting)
	add("fires that never came", lost, 0, "")
	add("fires that came twice", doubled, 0, "")
	add("fires that no session took", waiting, 0, "")
	add("other findings", float64(len(r.Findings))-lost-doubled-waiting, 0, "")
	add("sessions at once", float64(r.Most), float64(r.Slots), "")
	add("unfairness (1 − Jain's index)", 1-r.Jain, 0.001, "")
	return all
}

// report prints the results and returns how many targets were missed.
func (s settings) report(w io.Writer, all []Result) (missed int, err error) {
	var goals []target
	for i := range all {
		goals = append(goals, all[i].targets()...)
	}
	for _, g := range goals {
		if g.Missed {
			missed++
		}
	}
	if s.asJSON {
		return missed, json.NewEncoder(w).Encode(map[string]any{"results": all, "targets": goals, "missed": missed})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range all {
		all[i].print(t)
	}
	fmt.Fprintln(t, "\ntarget\tscenario\tgot\tat most\t")
	for _, g := range goals {
		verdict := "ok"
		if g.Missed {
			verdict = "MISSED"
		}
		fmt.Fprintf(t, "%s\t%s\t%.4g %s\t%.4g\t%s\n", g.Name, g.Scenario, g.Got, g.Unit, g.Limit, verdict)
	}
	return missed, t.Flush()
}

func (r *Result) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %d agents, max-sessions %d; %s\n", r.Scenario, r.Agents, r.Slots, r.What)
	fmt.Fprintf(w, "  configuration %.2f s\tready %.2f s, processor %.2f s\tmemory %d MB ready, %d MB most\t\n",
		r.Load.Seconds(), r.Ready.Seconds(), r.ReadyCPU.Seconds(), r.RSSReady>>20, r.RSSPeak>>20)
	fmt.Fprintf(w, "  processor %.2f s, %.2f %% of a core\t%d goroutines\t%d open files\t\n",
		r.CPU.Seconds(), r.CPUPercent, r.Goroutines, r.Descriptors)
	for _, a := range r.Asked {
		fmt.Fprintf(w, "  heartbeat %s\t%.2f s\tprocessor %.2f s\t\n", a.Command, a.Took.Seconds(), a.CPU.Seconds())
	}
	if r.Owed == 0 {
		return
	}
	fmt.Fprintf(w, "  %d fires\t%d skipped, %d findings\tat most %d sessions\t\n", r.Owed, r.Skipped, len(r.Findings), r.Most)
	for _, f := range r.Findings[:min(len(r.Findings), shownFindings)] {
		fmt.Fprintln(w, " ", f)
	}
	if r.Record != "" {
		fmt.Fprintf(w, "  go run ./internal/soak --judge %s\n", r.Record)
	}
	for _, row := range []struct {
		what string
		of   Spread
	}{
		{"due to queued", r.Queued},
		{"due to taken", r.Taken},
		{"wait for a slot", r.Waited},
		{"  of drain", r.Drain},
		{"  of persist", r.Persist},
		{"  of the small group", r.Group},
	} {
		fmt.Fprintf(w, "  %s\tp50 %.1f ms\tp99 %.1f ms\tmax %.1f ms\tn %d\n", row.what, ms(row.of.P50), ms(row.of.P99), ms(row.of.Max), row.of.N)
	}
	fmt.Fprintf(w, "  Jain's index %.4f\t\n", r.Jain)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
