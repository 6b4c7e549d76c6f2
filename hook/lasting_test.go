package hook

import (
	"testing"
	"time"
)

// TestADurationIsWrittenWithoutWhatIsNone: people read "within 30m0s".
func TestADurationIsWrittenWithoutWhatIsNone(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"30m": 30 * time.Minute, "1h": time.Hour, "1h30m": 90 * time.Minute, "1m30s": 90 * time.Second, "10m": 10 * time.Minute,
		"10s": 10 * time.Second, "0s": 0, "20h10m0.5s": 20*time.Hour + 10*time.Minute + 500*time.Millisecond, "1h0m1s": time.Hour + time.Second,
	} {
		if got := Lasting(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
