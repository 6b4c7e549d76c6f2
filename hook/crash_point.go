//go:build !heartbeat_crash

package hook

// crashPoint is where the test build (tag heartbeat_crash) can be made to
// panic, overflow its stack or be sent SIGQUIT.
func crashPoint(string) {}
