//go:build race

package sources

// raceEnabled makes the exhaustive tests take samples: they have one
// goroutine, and the race detector makes them ten times slower.
const raceEnabled = true
