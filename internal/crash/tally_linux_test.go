package crash

import (
	"fmt"
	"sync"

	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// tally are the verdicts on many runs: the figures of the README.
type tally struct {
	mu     sync.Mutex
	runs   []*promise.Verdict
	faulty int // of them
}

// shownFaults is how many faulty runs of a tally are shown in full.
const shownFaults = 10

// add judges a run, counts it, and shows what is wrong.
func (c *tally) add(l *lab, where string) {
	v, wrong := l.verdict()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs = append(c.runs, v)
	testbed.Played(l.t, testbed.Kills, v.Interruptions)
	if wrong == "" {
		return
	}
	if c.faulty++; c.faulty <= shownFaults {
		l.t.Errorf("%s: %s", where, wrong)
	}
}

// merge adds another tally, which nobody adds to any more.
func (c *tally) merge(o *tally) {
	c.runs = append(c.runs, o.runs...)
	c.faulty += o.faulty
}

func (c *tally) String() string {
	var sum promise.Count
	dead, worst, found := 0, 0.0, map[promise.Wrong]int{}
	for _, v := range c.runs {
		sum.Interruptions += v.Interruptions
		sum.Accepted += v.Accepted
		sum.Repeats += v.Repeats
		sum.OnlyDead += v.OnlyDead
		for _, n := range v.Dead {
			dead += n
		}
		for _, f := range v.Findings {
			found[f.Wrong]++
		}
		worst = max(worst, float64(v.Repeats)/float64(max(1, v.Interruptions)))
	}
	return fmt.Sprintf("%5d kills, %5d entries: %d lost, %d garbled, %d duplicates (at most %.2g a kill), "+
		"%d dead letters (%d never handed over), %d wedged, %d runs of %d with a fault",
		sum.Interruptions, sum.Accepted, found[promise.Lost], found[promise.Garbled], sum.Repeats, worst, dead, sum.OnlyDead,
		found[promise.Waiting], c.faulty, len(c.runs))
}
