package queue

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Letter is a prompt that a sender queues.
type Letter struct {
	// ID is the sender's, so that asking again queues nothing twice; "": it has none.
	ID     string
	Source string // "send", "AGENT/TRIGGER@LABEL", or ""
	Prompt string // not blank
	// Checked marks the entry as one that is done when a check of its work has passed.
	Checked bool
	Urgent  bool // it is handed over before those that are not
	// NotBefore is when it is to be queued; zero: at once.
	NotBefore time.Time
	// Most is how many entries may be queued, with this one; 0: any number; less than 0: none, the
	// letter is refused. One whose id was accepted before is a duplicate all the same.
	Most int
}

// Limits, in bytes.
const (
	// MaxLine is the longest line, a prompt with its envelope, where the file sets no other limit
	// (max-entry).
	MaxLine = 1 << 20
	// MaxReply is how much of an agent's last message is kept.
	MaxReply = 64 << 10
	// MaxShown is how much of a check's output is kept and handed over.
	MaxShown = 4 << 10
	// MaxAnswers is how much of answers is kept and handed over at once.
	MaxAnswers = 16 << 10
	// MaxName bounds ids and sources.
	MaxName = 512

	maxAbandoned = 32
	maxTask      = 256
)

// Validate rejects a letter that could not be found or handed over later.
func (l Letter) Validate() error {
	if strings.TrimFunc(strings.ToValidUTF8(l.Prompt, "\uFFFD"), unicode.IsSpace) == "" {
		return errors.New("cannot queue a blank prompt: there is nothing to hand over")
	}
	for _, name := range []struct{ what, is string }{{"id", l.ID}, {"source", l.Source}} {
		if len(name.is) > MaxName || !utf8.ValidString(name.is) || strings.ContainsFunc(name.is, unicode.IsControl) {
			return fmt.Errorf("cannot queue an entry with the %s %.80q: it must be printable text of at most %d bytes", name.what, name.is, MaxName)
		}
	}
	return nil
}

// Within returns a reply as it is kept: valid UTF-8, within the limits.
func (r Reply) Within() Reply {
	text, cut := Cut(strings.ToValidUTF8(r.Text, "\uFFFD"), MaxReply)
	r.Text, r.Cut = text, r.Cut || cut
	var tasks []string
	for _, task := range r.Abandoned[:min(maxAbandoned, len(r.Abandoned))] {
		task, _ = Cut(strings.ToValidUTF8(task, "\uFFFD"), maxTask)
		tasks = append(tasks, strings.ReplaceAll(task, "\n", " "))
	}
	r.Abandoned = tasks
	return r
}

// Within returns what is shown as it is kept.
func (s Shown) Within() Shown {
	s.Output = CleanOutput(s.Output)
	s.Answers, _ = Cut(strings.ToValidUTF8(s.Answers, "\uFFFD"), MaxAnswers)
	return s
}

// Cut shortens s to at most limit bytes on a rune boundary, and reports whether it did.
func Cut(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return s, false
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], true
}
