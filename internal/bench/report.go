package main

import (
	"fmt"
	"slices"
	"time"
)

// series are the samples of one thing.
type series struct {
	name  string
	times []time.Duration
}

func (s *series) add(d time.Duration) { s.times = append(s.times, d) }

// at is a percentile.
func (s *series) at(percent int) time.Duration {
	if len(s.times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.times))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

// report prints and counts.
type report struct{ missed int }

func (r *report) show(all ...*series) {
	for _, s := range all {
		fmt.Printf("  %-44s p50 %8s  p90 %8s  p99 %8s  n %d\n", s.name, ms(s.at(50)), ms(s.at(90)), ms(s.at(99)), len(s.times))
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2fms", float64(d)/float64(time.Millisecond)) }

// target prints a figure beside the most it may be.
func (r *report) target(name string, got, limit float64, unit string) {
	verdict := "ok"
	if got > limit {
		verdict = "MISSED"
		r.missed++
	}
	fmt.Printf("  %-44s %.2f%s (at most %.2f%s): %s\n", name, got, unit, limit, unit, verdict)
}

// ratio of two medians.
func ratio(a, b *series) float64 { return float64(a.at(50)) / float64(b.at(50)) }
