//go:build !race

package sources

const raceEnabled = false
