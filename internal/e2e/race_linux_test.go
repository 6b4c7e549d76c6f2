//go:build race

package e2e

// raced is true when these tests are built with the race detector: then so
// are the binaries that they drive.
const raced = true
