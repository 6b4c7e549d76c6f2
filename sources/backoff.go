package sources

import "time"

// Backoff returns how long to wait after the given number of failures in a row
// (from 1): base, doubled for each further failure, at most limit. r in [0, 1)
// scales the second half of that time, so that many triggers do not retry in step.
func Backoff(failures int, base, limit time.Duration, r float64) time.Duration {
	d := min(base, limit)
	for i := 1; i < failures && d < limit; i++ {
		d = min(2*d, limit)
	}
	return d/2 + time.Duration(r*float64(d-d/2))
}
