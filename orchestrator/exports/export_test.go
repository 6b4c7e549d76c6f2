package exports

import "heartbeat/hook/durable"

// Guard has each step that changes an agent's files run by guard.
func (x *Exporter) Guard(guard func(s durable.Step, run func() error) error) { x.guard = guard }

// SetMost sets MaxFile.
func (x *Exporter) SetMost(bytes int64) { x.most = bytes }
