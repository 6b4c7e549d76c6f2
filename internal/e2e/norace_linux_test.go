//go:build !race

package e2e

// raced is false when these tests are built without the race detector.
const raced = false
