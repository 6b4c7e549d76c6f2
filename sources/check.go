package sources

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ScheduleError lists everything that is wrong with a schedule.
type ScheduleError struct {
	Spec   string
	Faults []Fault // at least one
}

// Fault is one thing that is wrong with a schedule.
type Fault struct {
	Offset  int // where it stands in the text, in bytes
	Message string
	Hint    string // what to write instead, or ""
}

// Error names the schedule and everything that is wrong with it.
func (e *ScheduleError) Error() string {
	texts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		texts[i] = f.Message
		if f.Hint != "" {
			texts[i] += "; " + f.Hint
		}
	}
	return fmt.Sprintf("cannot read schedule %q: %s", e.Spec, strings.Join(texts, "; "))
}

func fault(offset int, message, hint string) []Fault {
	return []Fault{{Offset: offset, Message: message, Hint: hint}}
}

// field describes what one field may contain.
type field struct {
	name      string
	low, high int
	words     []string // for low, low+1 and so on
	size      int      // how many values differ: Sunday is 0 and 7
	any       bool     // "?" may stand for "*": of a day that the other field names
}

var (
	weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	months   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

	cronFields = []field{
		{name: "second", low: 0, high: 59, size: 60},
		{name: "minute", low: 0, high: 59, size: 60},
		{name: "hour", low: 0, high: 23, size: 24},
		{name: "day of month", low: 1, high: 31, size: 31, any: true},
		{name: "month", low: 1, high: 12, words: months, size: 12},
		{name: "day of week", low: 0, high: 7, words: weekdays, size: 7, any: true},
	}
)

const fiveFields = `write five: minute, hour, day of month, month, day of week, for example "*/15 9-18 * * 1-5"`

// checkCount rejects too few and too many fields, and six fields where seconds were
// not enabled: many people count the fields from the wrong end.
func checkCount(n int, seconds bool) (message, hint string) {
	has := "it has " + strconv.Itoa(n) + " fields"
	switch {
	case n == 5 || n == 6 && seconds:
		return "", ""
	case n == 6:
		return has, fiveFields + "; for a seconds field in front of them write seconds: true beside it"
	case n == 1:
		has = "it has 1 field"
	}
	if seconds {
		return has, "write five or six: second (may be left out), minute, hour, day of month, month, day of week"
	}
	return has, fiveFields
}

// item matches one element of a field's list. The parser that we use accepts more
// (an empty list, "*-5", "+5"), but never with the meaning that the writer
// intended.
var item = regexp.MustCompile(`^(?:[*]|([0-9]{1,4}|[A-Za-z]{3})(?:-([0-9]{1,4}|[A-Za-z]{3}))?)(?:/([0-9]{1,9}))?$`)

// checkFields rejects what the parser would reject with a message of its own, or
// would misread. parts are the five or six fields of text.
func checkFields(text string, parts []string) []Fault {
	known := cronFields[len(cronFields)-len(parts):] // the second may be left out
	var faults []Fault
	at := 0
	for i, part := range parts {
		at += strings.Index(text[at:], part)
		offset := at
		for element := range strings.SplitSeq(part, ",") {
			if message, hint := known[i].check(element, part); message != "" {
				faults = append(faults, Fault{Offset: offset, Message: message, Hint: hint})
			}
			offset += len(element) + 1
		}
		at += len(part)
	}
	return faults
}

// check returns what is wrong with an element of list, the content of f, and what
// to write instead; or "".
func (f *field) check(element, list string) (message, hint string) {
	if element == "?" {
		if f.any {
			return "", ""
		}
		return fmt.Sprintf("%s: ? stands for a day alone", f.name), "write *"
	}
	m := item.FindStringSubmatch(element)
	if m == nil {
		if element == "" {
			return fmt.Sprintf("%s: the list %q has an empty element", f.name, list), "remove the comma"
		}
		return fmt.Sprintf("%s: cannot read %q", f.name, element), f.values()
	}
	from, ok := f.value(m[1], 0)
	if !ok {
		return fmt.Sprintf("there is no %s %s", f.name, m[1]), f.values()
	}
	to, ok := f.value(m[2], from)
	switch {
	case !ok:
		return fmt.Sprintf("there is no %s %s", f.name, m[2]), f.values()
	case from > to:
		return fmt.Sprintf("%s: the range %s-%s goes backwards", f.name, m[1], m[2]), "write " + f.around(from, to, m[3])
	case m[3] == "":
		return "", ""
	}
	switch step, _ := strconv.Atoi(m[3]); {
	case step == 0:
		return fmt.Sprintf("%s: a step of 0 leads nowhere", f.name), "write " + strings.TrimSuffix(element, "/"+m[3])
	case step > f.size:
		return fmt.Sprintf("%s: a step of %d is longer than the field, it would not do what it says", f.name, step),
			`"@every" counts across hours and days`
	}
	return "", ""
}

// value reads a number or name of the field. A range may end with sun.
func (f *field) value(text string, from int) (int, bool) {
	if text == "" {
		return from, true
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		if n = numbered(f.words, text); n < 0 {
			return 0, false
		}
		if n += f.low; n < from && n == 0 {
			n = f.high
		}
	}
	return n, n >= f.low && n <= f.high
}

// numbered returns the number of a word, or -1.
func numbered(words []string, word string) int {
	return slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, word) })
}

// values says what the field may contain.
func (f *field) values() string {
	hint := fmt.Sprintf("write %d to %d, or *", f.low, f.high)
	if f.words != nil {
		hint = fmt.Sprintf("write %d to %d, %s to %s, or *", f.low, f.high, f.words[0], f.words[len(f.words)-1])
	}
	return hint
}

// around returns the list to write for a range that goes past the field's end.
func (f *field) around(from, to int, step string) string {
	last := f.low + f.size - 1
	switch {
	case from > last: // Sunday as 7
		return part(f.low, to)
	case step != "":
		return fmt.Sprintf("two ranges: from %d to %d, and from %d", from, last, f.low)
	}
	return part(from, last) + "," + part(f.low, to)
}

func part(from, to int) string {
	if from == to {
		return strconv.Itoa(from)
	}
	return fmt.Sprintf("%d-%d", from, to)
}
