package testbed

import "time"

// Patience is how long a test waits for what must happen, and the least that it
// calls late: a process can stand still for many seconds where both processors have
// other work. What a test tells from lateness, such as the end of a sleep, has to be
// far beyond it.
const Patience = 2 * time.Minute

// Await looks until what is looked for is there, for at most limit, and reports
// whether it is.
//
// Between two looks it waits three times as long as the first of them took, or an
// eighth of the time that it has waited, from 10 to 400 ms: tests whose looks start a
// program did little else.
func Await(limit time.Duration, is func() bool) bool {
	for start := time.Now(); ; {
		began := time.Now()
		if is() {
			return true
		}
		now := time.Now()
		if now.Sub(start) > limit {
			return false
		}
		time.Sleep(min(max(3*now.Sub(began), now.Sub(start)/8, 10*time.Millisecond), 400*time.Millisecond))
	}
}
