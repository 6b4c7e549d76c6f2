package crash

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"heartbeat/hook/inbox"
)

// witness is the independent record of one run: what the senders know to be
// accepted, and what the model of the client knows it was given.
type witness struct {
	want    []string        // prompts in the order of acceptance, all different
	maybe   []string        // whose sender was killed or failed: may come or not
	given   map[string]int  // :: prompt → times
	order   []string        // of the first times
	started map[string]bool // :: prompt → a tool ran, and its hook was not killed
	again   map[string]int  // :: prompt → times it was given after that
	kills   int             // of hooks, senders, recoveries
	dead    int             // dead letters, once judged
	// files is true where recover files what nothing proves to have arrived:
	// hand-wired, under deadletter. filed are the prompts of such letters.
	files  bool
	filed  map[string]bool
	faults []string // what no kill excuses
}

func newWitness() *witness {
	return &witness{given: map[string]int{}, started: map[string]bool{}, again: map[string]int{}, filed: map[string]bool{}}
}

func (w *witness) clone() *witness {
	c := *w
	c.want, c.maybe, c.order, c.faults = slices.Clone(w.want), slices.Clone(w.maybe), slices.Clone(w.order), slices.Clone(w.faults)
	c.given, c.started, c.again, c.filed = maps.Clone(w.given), maps.Clone(w.started), maps.Clone(w.again), maps.Clone(w.filed)
	return &c
}

func (w *witness) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

var footer = regexp.MustCompile(`(?s)^(.*)\n\n\[heartbeat: attempt [0-9]+ of this entry;[^\]]*\]$`)

// hand notes that the client got a text, and returns the prompt that it is.
func (w *witness) hand(text string) string {
	prompt := text
	if m := footer.FindStringSubmatch(text); m != nil {
		prompt = m[1]
	}
	known := append(w.want[:len(w.want):len(w.want)], w.maybe...)
	at := slices.Index(known, prompt)
	if at < 0 {
		w.fault("garbled: %q was handed over", text)
		return ""
	}
	repeated := prompt != text
	prompt = known[at] // one copy of a long text is enough
	if w.given[prompt]++; w.given[prompt] == 1 {
		w.order = append(w.order, prompt)
	} else if !repeated {
		w.fault("unmarked: %q was handed over again as if for the first time", prompt)
	}
	if w.started[prompt] {
		w.again[prompt]++
	}
	return prompt
}

// noteFiled takes in which prompts are dead letters without having been handed
// over, where that is no fault.
func (w *witness) noteFiled(q *inbox.Queue) {
	if !w.files {
		return
	}
	for d, err := range q.DeadLetters() {
		if err != nil {
			w.fault("dead letters: %v", err)
			return
		}
		for _, p := range append(w.want[:len(w.want):len(w.want)], w.maybe...) {
			if w.given[p] == 0 && d.Reason == inbox.Interrupted && strings.Contains(d.RawLine, strings.Fields(p)[0]) {
				w.filed[p] = true
			}
		}
	}
}

// open are the accepted prompts that were never handed over, nor filed.
func (w *witness) open() (open []string) {
	for _, p := range w.want {
		if w.given[p] == 0 && !w.filed[p] {
			open = append(open, p)
		}
	}
	return open
}

// duplicates is how often something was handed over again.
func (w *witness) duplicates() int {
	n := 0
	for _, times := range w.given {
		n += max(0, times-1)
	}
	return n
}

// judge adds what is wrong in the end. The queue is read for what stands in
// it as dead letters and replies.
func (w *witness) judge(q *inbox.Queue, policy inbox.OrphanPolicy, toolsSeen bool) []string {
	w.noteFiled(q)
	for _, p := range w.open() {
		w.fault("lost: %q was never handed over", p)
	}
	if n := w.duplicates(); n > w.kills {
		w.fault("duplicates: %d after %d kills (%v)", n, w.kills, w.given)
	}
	if want := slices.DeleteFunc(slices.Clone(w.want), func(p string) bool { return w.given[p] == 0 }); len(w.maybe) == 0 &&
		!slices.Equal(w.order, want) {
		w.fault("order: handed over as %q, accepted as %q", w.order, want)
	}
	if policy != inbox.Retry && toolsSeen {
		for p, n := range w.again {
			if n > 0 {
				w.fault("repeated: %q was handed over again after a tool had run for it, under %s", p, policy)
			}
		}
	}
	w.judgeDead(q, policy)
	w.judgeReplies(q)
	return w.faults
}

func (w *witness) judgeDead(q *inbox.Queue, policy inbox.OrphanPolicy) {
	seen := map[string]int{}
	for d, err := range q.DeadLetters() {
		if err != nil {
			w.fault("dead letters: %v", err)
			return
		}
		w.dead++
		if seen[d.DeliveryID]++; seen[d.DeliveryID] == 2 {
			w.fault("dead letter twice: %q", d.RawLine)
		}
		if given := w.givenLine(d.RawLine); d.Reason == inbox.Poison && given < 5 || d.Reason != inbox.Poison && policy == inbox.Retry {
			w.fault("dead letter under %s after %d hand-overs: %q (%s)", policy, given, d.RawLine, d.Reason)
		} else if given == 0 && !w.files {
			w.fault("dead letter that was never handed over: %q (%s)", d.RawLine, d.Reason)
		}
	}
}

// givenLine is how often the prompt of a line was handed over. The first
// words tell prompts apart in whatever form a line has.
func (w *witness) givenLine(line string) int {
	for _, p := range w.order {
		if strings.Contains(line, strings.Fields(p)[0]) {
			return w.given[p]
		}
	}
	return 0
}

func (w *witness) judgeReplies(q *inbox.Queue) {
	seen := map[string]bool{}
	for d, err := range q.Deliveries() {
		if err != nil {
			w.fault("outbox: %v", err)
			return
		}
		if seen[d.DeliveryID] {
			w.fault("acknowledged twice: %s", d.DeliveryID)
		}
		seen[d.DeliveryID] = true
	}
	depth, err := q.Depth(0)
	if err != nil || depth.Entries > 0 || depth.Tail {
		w.fault("left in the queue: %+v, %v", depth, err)
	}
}
