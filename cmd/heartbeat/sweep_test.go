package main

import "flag"

// full has the tests that combine many things with many others try all of them;
// without it they try a slice, and with the race detector a thinner one:
//
//	go test ./cmd/heartbeat -full -timeout 60m
var full = flag.Bool("full", false, "try all combinations instead of a slice")

// stride is how far apart what a sweep tries stands, where a slice is every n-th.
func stride(n int) int {
	switch {
	case *full:
		return 1
	case raceEnabled:
		return 3 * n
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
