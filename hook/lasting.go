package hook

import (
	"strings"
	"time"
)

// Lasting is a duration for people: 30m, and not 30m0s.
func Lasting(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
