package config

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns up to three of the known words that somebody who wrote word most
// likely meant, nearest first, or nil. It ignores case and the kind of separator,
// and the beginning of a known word counts as near.
func Nearest(word string, known []string) []string {
	type candidate struct {
		word     string
		distance int
	}
	plain := simplify(word)
	limit := max(1, len(plain)/3) + 1
	var found []candidate
	for _, k := range known {
		of := simplify(k)
		d := distance(plain, of, limit)
		if len(plain) > 1 && strings.HasPrefix(of, plain) {
			d = min(d, 1)
		}
		if d < limit {
			found = append(found, candidate{k, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var near []string
	for _, c := range found[:min(len(found), 3)] {
		near = append(near, c.word)
	}
	return near
}

func simplify(word string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(word))
}

// distance counts the letters to insert, remove, replace or swap with their
// neighbour to get from a to b (optimal string alignment). It stops counting at
// limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	older, before, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, before, row = before, row, older
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := before[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(before[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return min(row[len(b)], limit)
}
