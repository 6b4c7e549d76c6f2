//go:build heartbeat_crash

package handwired

import (
	"os"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
)

// HEARTBEAT_SOONER is how long this build waits for what is written late, and
// HEARTBEAT_PAYLOAD how long for a payload, which a busy machine is slow to feed.
func init() {
	if d, err := time.ParseDuration(os.Getenv("HEARTBEAT_SOONER")); err == nil {
		client.Claude.Transcript.Behind, handover.NextPatience = d, d
	}
	if d, err := time.ParseDuration(os.Getenv("HEARTBEAT_PAYLOAD")); err == nil {
		payloadPatience = d
	}
}
