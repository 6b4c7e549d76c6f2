package config

import "strings"

// nearest returns the known word that a misspelt one most likely means, or
// "" when none is near. Case and the kind of separator do not count.
func nearest(word string, known []string) string {
	plain := simplify(word)
	best, least := "", max(1, len(plain)/3)+1
	for _, k := range known {
		if d := distance(plain, simplify(k), least); d < least {
			best, least = k, d
		}
	}
	return best
}

func simplify(word string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(word))
}

// distance counts the letters to insert, remove, replace or swap with their
// neighbour to get from a to b. It stops counting at limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	var older []int
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, before, row = before, row, make([]int, len(b)+1)
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
