//go:build race

package testbed

// Raced reports whether the tests, and so the programs that they start, are
// built with the race detector.
const Raced = true
