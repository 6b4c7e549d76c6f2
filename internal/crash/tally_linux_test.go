package crash

import (
	"fmt"
	"strings"
	"sync"
)

// tally counts what many runs showed: the figures of the README.
type tally struct {
	mu               sync.Mutex
	runs, kills      int
	entries          int // accepted
	duplicates, dead int
	worst            float64 // most duplicates for each kill of a run
	lost, garbled    int
	wedged, unseen   int // runs that went no further; dead letters nobody was ever given
	faults           int // runs with any fault
}

// shownFaults is how many faulty runs of a tally are shown in full.
const shownFaults = 10

// add judges a run, counts it, and shows what is wrong.
func (c *tally) add(l *lab, where string) {
	faults := l.verdict()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	c.kills += l.kills
	c.entries += len(l.want)
	c.duplicates += l.duplicates()
	c.dead += l.dead
	c.unseen += len(l.filed)
	if l.kills > 0 {
		c.worst = max(c.worst, float64(l.duplicates())/float64(l.kills))
	}
	for _, f := range faults {
		switch {
		case strings.HasPrefix(f, "lost: "):
			c.lost++
		case strings.HasPrefix(f, "garbled: "):
			c.garbled++
		case strings.HasPrefix(f, "wedged: "), strings.HasPrefix(f, "silent: "):
			c.wedged++
		case strings.HasPrefix(f, "dead letter that was never "):
			c.unseen++
		}
	}
	if len(faults) == 0 {
		return
	}
	if c.faults++; c.faults <= shownFaults {
		l.t.Errorf("%s:\n\t%s%s", where, strings.Join(faults[:min(len(faults), 20)], "\n\t"), l.files())
	}
}

// merge adds another tally, which nobody adds to any more.
func (c *tally) merge(o *tally) {
	c.runs += o.runs
	c.kills += o.kills
	c.entries += o.entries
	c.duplicates += o.duplicates
	c.dead += o.dead
	c.worst = max(c.worst, o.worst)
	c.lost += o.lost
	c.garbled += o.garbled
	c.wedged += o.wedged
	c.unseen += o.unseen
	c.faults += o.faults
}

func (c *tally) String() string {
	return fmt.Sprintf("%5d kills, %5d entries: %d lost, %d garbled, %d duplicates (at most %.2g a kill), "+
		"%d dead letters (%d never handed over), %d wedged, %d runs of %d with a fault",
		c.kills, c.entries, c.lost, c.garbled, c.duplicates, c.worst, c.dead, c.unseen, c.wedged, c.faults, c.runs)
}
