package sources

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Offset returns how much later than its schedule a trigger with this jitter fires:
// by 0 up to jitter, always the same for one key, and spread over different keys.
func Offset(jitter time.Duration, key string) time.Duration {
	if jitter <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(key))
	return time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(jitter))
}
