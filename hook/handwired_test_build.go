//go:build heartbeat_crash

package hook

import (
	"os"
	"time"

	"heartbeat/hook/client"
)

// HEARTBEAT_SOONER is how long this build waits for what is written late, and for a
// payload.
func init() {
	if d, err := time.ParseDuration(os.Getenv("HEARTBEAT_SOONER")); err == nil {
		client.Claude.Transcript.Behind, lineBehind, payloadPatience = d, d, d
	}
}
