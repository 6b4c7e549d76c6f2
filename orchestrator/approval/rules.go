package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
)

// decide returns the answer that an agent's rules give to a request, or nil if a person has to
// answer. past are the agent's requests that people have answered, in any order. never beats
// the other rules. A person's rejection restarts the count of after.
func decide(rules config.Approvals, r Request, past []Request) *Answer {
	words := r.Words()
	if w := among(words, rules.Never); w != "" {
		return &Answer{State: Rejected, By: fmt.Sprintf("a rule (approvals: never: %s)", w)}
	}
	if w := among(words, rules.Always); w != "" {
		return &Answer{State: Approved, By: fmt.Sprintf("a rule (approvals: always: %s)", w)}
	}
	for _, w := range words {
		n, ok := rules.After[w]
		if ok && n > 0 && inARow(w, past, r.At) >= n {
			return &Answer{State: Approved, By: fmt.Sprintf("a rule (approvals: after: %s: %d)", w, n)}
		}
	}
	return nil
}

// among returns the first word that a rule names, or "".
func among(words, rule []string) string {
	i := slices.IndexFunc(words, func(w string) bool { return slices.Contains(rule, w) })
	if i < 0 {
		return ""
	}
	return words[i]
}

// inARow counts the requests with a word that people have approved since the last one that a
// person rejected. Answers of rules do not count. Nor does a yes from a clock that was ahead,
// because it may be older than a rejection.
func inARow(word string, past []Request, now time.Time) (n int) {
	all := slices.Clone(past)
	slices.SortStableFunc(all, func(x, y Request) int { return y.AnsweredAt.Compare(x.AnsweredAt) })
	for _, r := range all {
		switch {
		case !r.Person || !slices.Contains(r.Words(), word):
		case !r.Yes():
			return n
		case r.AnsweredAt.After(now):
		default:
			n++
		}
	}
	return n
}

// Text returns the question on one line.
func (r Request) Text() string {
	text := r.Question.String()
	if words := r.Words(); len(words) > 0 {
		text += " (" + strings.Join(words, ", ") + ")"
	}
	return text
}
