package main

import (
	"slices"
	"strings"
)

// nearest returns up to three names that somebody who typed name may have
// meant, the nearest first.
func nearest(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	limit := max(1, len(name)/3)
	var found []candidate
	typed := strings.ToLower(name)
	for _, n := range names {
		d := distance(typed, strings.ToLower(n))
		if typed != "" && strings.HasPrefix(strings.ToLower(n), typed) {
			d = min(d, 1)
		}
		if d <= limit {
			found = append(found, candidate{n, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	var near []string
	for _, c := range found[:min(len(found), 3)] {
		near = append(near, c.name)
	}
	return near
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours between two words (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before := make([]int, len(y)+1)
	last := make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row := make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}
