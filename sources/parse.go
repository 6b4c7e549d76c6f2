package sources

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// minEvery is the shortest period of @every: an agent's turn is never shorter.
// Who opts in to seconds means to go below it.
const (
	minEvery        = time.Minute
	minEverySeconds = time.Second
)

var (
	fieldNames = [6]string{"second", "minute", "hour", "day of month", "month", "day of week"}
	fieldSizes = [6]int{60, 60, 24, 31, 12, 7}

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

	// item is one element of a field's list. The parser behind us takes more
	// (an empty list, "*-5", "+5"), always as something the writer did not mean.
	item = regexp.MustCompile(`^(?:[*?]|([0-9]{1,4}|[A-Za-z]{3})(?:-([0-9]{1,4}|[A-Za-z]{3}))?)(?:/([0-9]{1,9}))?$`)

	parser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
)

// ParseSchedule parses the five fields of crontab(5) with lists, ranges,
// steps and names, the words @yearly, @annually, @monthly, @weekly, @daily,
// @midnight and @hourly, and "@every D" with D of whole seconds, at least a
// minute. In the day of week both 0 and 7 are Sunday, also as the end of a
// range. A nil loc means time.Local.
//
// The error says what is wrong and what to write. Refused are also: a TZ= or
// CRON_TZ= prefix (the zone is a key of its own), a step beyond its field
// ("*/90" minutes would be hourly), and a schedule that never fires.
func ParseSchedule(spec string, loc *time.Location) (Schedule, error) {
	return parseSchedule(spec, loc, false)
}

// ParseScheduleWithSeconds parses what ParseSchedule does, and also six
// fields, of which the first one is the second (0 to 59), and "@every D" from
// one second on. Five fields mean what they always do.
func ParseScheduleWithSeconds(spec string, loc *time.Location) (Schedule, error) {
	return parseSchedule(spec, loc, true)
}

func parseSchedule(spec string, loc *time.Location, seconds bool) (Schedule, error) {
	if loc == nil {
		loc = time.Local
	}
	s := Schedule{spec: spec, loc: loc}
	text := strings.TrimSpace(spec)
	var err error
	switch {
	case text == "":
		err = fmt.Errorf("it is empty; five fields are needed, for example \"*/15 9-18 * * 1-5\"")
	case strings.Contains(text, "TZ="):
		err = fmt.Errorf("a time zone cannot stand in it; set timezone: instead")
	case strings.HasPrefix(text, "@every"):
		s.every, err = parseEvery(text, seconds)
	default:
		s.fields, err = parseFields(text, seconds)
	}
	if err != nil {
		return Schedule{}, fmt.Errorf("cannot read schedule %q: %w", spec, err)
	}
	return s, nil
}

// parseEvery reads "@every D" into seconds.
func parseEvery(text string, seconds bool) (int64, error) {
	word, rest, _ := strings.Cut(text, " ")
	if word != "@every" {
		return 0, fmt.Errorf("unknown word %s; write for example \"@every 90m\"", word)
	}
	d, err := time.ParseDuration(strings.TrimSpace(rest))
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no duration; write for example \"@every 90m\"", strings.TrimSpace(rest))
	case seconds && d < minEverySeconds:
		return 0, fmt.Errorf("@every needs at least %v", minEverySeconds)
	case !seconds && d < minEvery:
		return 0, fmt.Errorf("@every needs at least %v; seconds: true beside it allows less", minEvery)
	case d%time.Second != 0:
		return 0, fmt.Errorf("@every needs whole seconds")
	}
	return int64(d / time.Second), nil
}

// parseFields reads five fields, or the word for them, or with seconds six.
func parseFields(text string, seconds bool) (fields, error) {
	if strings.HasPrefix(text, "@") {
		five, ok := descriptors[text]
		if !ok {
			return fields{}, fmt.Errorf("unknown word %s; known are @yearly, @monthly, @weekly, @daily, @hourly and \"@every 90m\"", text)
		}
		text = five
	}
	parts := strings.Fields(text)
	six := len(parts) == len(fieldNames)
	if err := checkCount(len(parts), seconds); err != nil {
		return fields{}, err
	}
	if !six {
		parts = append([]string{"0"}, parts...)
	}
	for i, part := range parts {
		if err := checkField(i, part); err != nil {
			return fields{}, err
		}
	}
	parts[5] = sundays(parts[5])
	parsed, err := parser.Parse(strings.Join(parts, " "))
	if err != nil {
		return fields{}, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return fields{}, fmt.Errorf("it is not made of fields")
	}
	f := fields{
		second: spec.Second &^ starBit, hasSeconds: six,
		minute: spec.Minute &^ starBit, hour: spec.Hour &^ starBit, dom: spec.Dom &^ starBit,
		month: spec.Month &^ starBit, dow: spec.Dow &^ starBit,
		hourStar: isStar(parts[2]), dayStar: isStar(parts[3]) || isStar(parts[5]),
	}
	if !f.everFires() {
		return fields{}, fmt.Errorf("it never fires: no such day exists")
	}
	return f, nil
}

// checkCount refuses too few and too many fields, and six of them where
// nobody asked for seconds: many a writer counts from the wrong end.
func checkCount(n int, seconds bool) error {
	const five = "minute, hour, day of month, month, day of week"
	switch {
	case n == 5 || n == 6 && seconds:
		return nil
	case n == 6:
		return fmt.Errorf("it has 6 fields; five are needed: %s; for a seconds field in front of them write seconds: true beside it", five)
	case seconds:
		return fmt.Errorf("it has %d fields; five or six are needed: second (may be left out), %s", n, five)
	}
	return fmt.Errorf("it has %d fields; five are needed: %s", n, five)
}

// starBit is robfig/cron's mark for "*" in its bit sets. We look at the text
// instead, as crontab(5) does: there "*/2" counts as a star as well.
const starBit = 1 << 63

func isStar(field string) bool { return field[0] == '*' || field[0] == '?' }

// checkField refuses what the parser would misread.
func checkField(i int, field string) error {
	for part := range strings.SplitSeq(field, ",") {
		m := item.FindStringSubmatch(part)
		if m == nil {
			return fmt.Errorf("%s: cannot read %q", fieldNames[i], field)
		}
		if step, _ := strconv.Atoi(m[3]); step > fieldSizes[i] {
			return fmt.Errorf("%s: a step of %d is longer than the field, it would not do what it says; \"@every\" counts across hours and days", fieldNames[i], step)
		}
	}
	return nil
}

// sundays rewrites the items of a day of week that reach 7 (or "sun" as the
// end of a range) into lists of 0 to 6, which is what the parser knows.
func sundays(field string) string {
	var out []string
	for part := range strings.SplitSeq(field, ",") {
		out = append(out, sunday(part))
	}
	return strings.Join(out, ",")
}

func sunday(part string) string {
	m := item.FindStringSubmatch(part)
	from, to, step := m[1], m[2], m[3]
	if from == "" { // a star
		return part
	}
	if strings.EqualFold(to, "sun") && !strings.EqualFold(from, "sun") {
		to = "7"
	}
	low, err := strconv.Atoi(from)
	if err != nil {
		low = weekdayNumber(from)
	}
	high, _ := strconv.Atoi(to)
	if low != 7 && high != 7 || low < 0 || low > 7 || high > 7 {
		return part // nothing to rewrite, or for the parser to refuse
	}
	by := 1
	if step != "" {
		by, _ = strconv.Atoi(step)
	}
	if by == 0 || low == 7 && to != "" && high != 7 {
		return part
	}
	var days []string
	for d := low; d <= 7; d += by {
		days = append(days, strconv.Itoa(d%7))
	}
	return strings.Join(days, ",")
}

// weekdayNumber returns 0 for sun to 6 for sat, or -1.
func weekdayNumber(name string) int {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(d.String()[:3], name) {
			return int(d)
		}
	}
	return -1
}
