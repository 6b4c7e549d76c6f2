//go:build !heartbeat_crash

// Package crashpoint lets the test build of the hook binary be made to crash at a named stage.
package crashpoint

// At is where the test build (tag heartbeat_crash) can be made to
// panic, overflow its stack or be sent SIGQUIT.
func At(string) {}
