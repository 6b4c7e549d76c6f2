package sources

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Offset is how much later than its schedule a trigger fires whose jitter is
// given: from 0 up to it, always the same for one key, spread over different ones.
func Offset(jitter time.Duration, key string) time.Duration {
	if jitter <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(key))
	return time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(jitter))
}
