package main

import (
	"flag"
	"testing"
)

// full has the tests that combine many things with many others try all of them;
// without it they try a slice:
//
//	go test ./cmd/heartbeat -full -timeout 60m
var full = flag.Bool("full", false, "try all combinations instead of a slice")

// sweep begins a test that tries many combinations of whole programs. With the
// race detector that is for -full: what the programs do is raced by all the other
// tests, and the combinations are tried without it.
func sweep(t *testing.T) {
	t.Helper()
	if raceEnabled && !*full {
		t.Skip("tried without the race detector, or with -full")
	}
	t.Parallel()
}

// stride is how far apart what a sweep tries stands, where a slice is every n-th.
func stride(n int) int {
	if *full {
		return 1
	}
	return n
}

// sliceOf is what a sweep tries of all: the first one, and every n-th.
func sliceOf[T any](all []T, n int) (slice []T) {
	for i := 0; i < len(all); i += stride(n) {
		slice = append(slice, all[i])
	}
	return slice
}
