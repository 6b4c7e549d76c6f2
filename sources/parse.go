package sources

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// minEvery is the shortest period of @every, because an agent's turn is never
// shorter. Enabling seconds allows shorter ones.
const (
	minEvery        = time.Minute
	minEveryOptedIn = time.Second
)

var (
	// descriptors are crontab(5)'s words.
	descriptors = map[string]string{
		"@yearly":   "0 0 1 1 *",
		"@annually": "0 0 1 1 *",
		"@monthly":  "0 0 1 * *",
		"@weekly":   "0 0 * * 0",
		"@daily":    "0 0 * * *",
		"@midnight": "0 0 * * *",
		"@hourly":   "0 * * * *",
	}

	parser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
)

// ParseSchedule parses the five fields of crontab(5) with lists, ranges,
// steps and names, the words @yearly, @annually, @monthly, @weekly, @daily,
// @midnight and @hourly, and "@every D" with D of whole seconds, at least a
// minute. In the day of week both 0 and 7 are Sunday, also as the end of a
// range. A nil loc means time.Local.
//
// The error is a *ScheduleError. ParseSchedule also rejects a TZ= or CRON_TZ=
// prefix (the zone is a key of its own), a step beyond its field ("*/90" minutes
// would be hourly), and a schedule that never fires.
func ParseSchedule(spec string, loc *time.Location) (Schedule, error) {
	return parseSchedule(spec, loc, false)
}

// ParseScheduleWithSeconds parses what ParseSchedule does, and also six fields,
// where the first is the second (0 to 59), and "@every D" from one second up. Five
// fields keep their meaning.
func ParseScheduleWithSeconds(spec string, loc *time.Location) (Schedule, error) {
	return parseSchedule(spec, loc, true)
}

func parseSchedule(spec string, loc *time.Location, seconds bool) (Schedule, error) {
	if loc == nil {
		loc = time.Local
	}
	s := Schedule{spec: spec, loc: loc}
	text := strings.TrimSpace(spec)
	var faults []Fault
	switch {
	case text == "":
		faults = fault(0, "it is empty", fiveFields)
	case strings.Contains(text, "TZ="):
		faults = fault(0, "a time zone cannot stand in it", "set timezone: instead")
	case strings.HasPrefix(text, "@every"):
		s.every, faults = parseEvery(text, seconds)
	case strings.HasPrefix(text, "@"):
		s.fields, faults = parseWord(text)
	default:
		s.fields, faults = parseFields(text, seconds)
	}
	if faults == nil {
		return s, nil
	}
	before := strings.Index(spec, text)
	for i := range faults {
		faults[i].Offset += before
	}
	return Schedule{}, &ScheduleError{Spec: spec, Faults: faults}
}

// parseEvery reads "@every D" into seconds.
func parseEvery(text string, seconds bool) (int64, []Fault) {
	const hint = `write for example "@every 90m"`
	word, rest, _ := strings.Cut(text, " ")
	if word != "@every" {
		return 0, fault(0, "the word "+word+" is not known", hint)
	}
	rest = strings.TrimSpace(rest)
	at := len(text) - len(rest)
	positive, negative := strings.CutPrefix(rest, "-")
	d, err := ParseLength(positive)
	if negative {
		d = 0
	}
	switch {
	case err != nil:
		return 0, fault(at, fmt.Sprintf("%q %v", rest, err), hint)
	case d == math.MaxInt64:
		return 0, fault(at, rest+" is too long", hint)
	case seconds && d < minEveryOptedIn:
		return 0, fault(at, rest+" is too short", `at least "@every 1s"`)
	case !seconds && d < minEvery:
		return 0, fault(at, rest+" is too short", `at least "@every 1m"; seconds: true beside it allows less`)
	case d%time.Second != 0:
		return 0, fault(at, rest+" is not in whole seconds", hint)
	}
	return int64(d / time.Second), nil
}

// parseWord reads a word that stands for five fields.
func parseWord(text string) (fields, []Fault) {
	five, ok := descriptors[text]
	if !ok {
		return fields{}, fault(0, "the word "+text+" is not known", `known are @yearly, @monthly, @weekly, @daily, @hourly and "@every 90m"`)
	}
	return parseFields(five, false)
}

// parseFields reads five fields, or with seconds six.
func parseFields(text string, seconds bool) (fields, []Fault) {
	parts := strings.Fields(text)
	six := len(parts) == len(cronFields)
	if message, hint := checkCount(len(parts), seconds); message != "" {
		return fields{}, fault(0, message, hint)
	}
	if faults := checkFields(text, parts); faults != nil {
		return fields{}, faults
	}
	if !six {
		parts = append([]string{"0"}, parts...)
	}
	parts[5] = sundays(parts[5])
	parsed, err := parser.Parse(strings.Join(parts, " "))
	if err != nil { // checkFields knows all that it refuses
		return fields{}, fault(0, err.Error(), fiveFields)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return fields{}, fault(0, "it is not made of fields", fiveFields)
	}
	f := fields{
		second: spec.Second &^ starBit, hasSeconds: six,
		minute: spec.Minute &^ starBit, hour: spec.Hour &^ starBit, dom: spec.Dom &^ starBit,
		month: spec.Month &^ starBit, dow: spec.Dow &^ starBit,
		hourStar: isStar(parts[2]), dayStar: isStar(parts[3]) || isStar(parts[5]),
	}
	if !f.everFires() {
		return fields{}, fault(0, "it never fires: no such day exists", "")
	}
	return f, nil
}

// starBit is robfig/cron's mark for "*" in its bit sets. We look at the text
// instead, as crontab(5) does: there "*/2" counts as a star as well.
const starBit = 1 << 63

func isStar(field string) bool { return field[0] == '*' || field[0] == '?' }

// sundays rewrites the items of a day of week that reach 7 (or end a range with
// "sun") as lists of 0 to 6, which the parser understands.
func sundays(field string) string {
	var out []string
	for part := range strings.SplitSeq(field, ",") {
		out = append(out, sunday(part))
	}
	return strings.Join(out, ",")
}

func sunday(part string) string {
	m := item.FindStringSubmatch(part)
	if m == nil || m[1] == "" { // any day
		return part
	}
	dow := &cronFields[len(cronFields)-1]
	low, _ := dow.value(m[1], 0)
	high, _ := dow.value(m[2], low)
	if low != 7 && high != 7 && !strings.EqualFold(m[2], "sun") {
		return part // nothing to rewrite
	}
	by := 1
	if m[3] != "" {
		by, _ = strconv.Atoi(m[3])
	}
	var days []string
	for d := low; d <= high; d += by {
		days = append(days, strconv.Itoa(d%7))
	}
	return strings.Join(days, ",")
}
