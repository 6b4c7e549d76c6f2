// Package hook is our side of Claude Code's hook contract (measured in
// 2.1.329): what an event means for a session and for the entry in flight, and the way
// an entry is handed over. A hook's process only asks (package ask): the session's shim
// answers, with a Live. heartbeat-rs's form of a Stop hook is in package handwired.
package hook
