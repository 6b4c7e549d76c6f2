package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"heartbeat/sources"
)

// Tags of YAML's scalars. A date counts as a string, as in JSON.
var (
	textTags = []string{"!!str", "!!timestamp"}
	wordTags = append([]string{"!!int", "!!float", "!!bool"}, textTags...)
)

// word reads a scalar as it is written: 1, yes and 2026-01-01 are words too. It is
// used for the words of commands and environments.
func (l *loader) word(p place) (string, bool) {
	p = p.here()
	n := p.node
	switch tag := n.ShortTag(); {
	case empty(n):
		l.problem(p, "has no value", "write one, or remove the key")
	case n.Kind != yaml.ScalarNode:
		l.problem(p, "must be a single value, not "+kind(n), "")
	case !slices.Contains(wordTags, tag):
		l.problem(p, "the tag "+tag+" is not known", "remove it")
	case strings.ContainsRune(n.Value, 0):
		l.problem(p, "holds a NUL character", "remove it")
	default:
		l.cutAtHash(p)
		return n.Value, true
	}
	return "", false
}

// text reads a string. What YAML reads as a number or a bool must be quoted.
func (l *loader) text(p place) (string, bool) {
	text, ok := l.word(p)
	if ok && !isText(p) {
		l.problem(p, text+" must be a string", "write "+strconv.Quote(text))
		return "", false
	}
	return text, ok
}

func isText(p place) bool { return slices.Contains(textTags, p.here().node.ShortTag()) }

// filled reads a string that is not blank.
func (l *loader) filled(p place) (string, bool) {
	text, ok := l.text(p)
	return text, ok && l.notBlank(p, text)
}

func (l *loader) notBlank(p place, text string) bool {
	if strings.TrimSpace(text) == "" {
		l.problem(p, "is blank", "")
		return false
	}
	return true
}

// texts reads a list of strings that are not blank.
func (l *loader) texts(p place, hint string) []string {
	p = p.here()
	n := p.node
	if n.Kind != yaml.SequenceNode {
		l.problem(p, "must be a list, not "+kind(n), hint)
		return nil
	}
	list := make([]string, 0, len(n.Content))
	for i, element := range n.Content {
		if text, ok := l.filled(p.below(i, element)); ok {
			list = append(list, text)
		}
	}
	return list
}

// argvOf suggests the list for a command line. Commands run without a shell, so a
// line that needs one becomes sh -c.
func argvOf(line string) string {
	if strings.ContainsAny(line, "|&;<>()$`\\\"'*?[]{}~#") {
		return "[sh, -c, " + strconv.Quote(line) + "]"
	}
	return "[" + strings.Join(strings.Fields(line), ", ") + "]"
}

// command reads a command's words: at least one, and the first not empty. Later
// words may be blank. The hint shows example.
func (l *loader) command(p place, example string) []string {
	p = p.here()
	n := p.node
	if n.Kind != yaml.SequenceNode {
		hint := "write a list, for example " + example
		if n.Kind == yaml.ScalarNode && strings.TrimSpace(n.Value) != "" {
			hint = "write " + argvOf(cut(n.Value))
		}
		l.problem(p, "must be a list of words, not "+kind(n), hint)
		return nil
	}
	if len(n.Content) == 0 {
		l.problem(p, "is empty", "write a list, for example "+example)
		return nil
	}
	words := make([]string, 0, len(n.Content))
	for i, element := range n.Content {
		at := p.below(i, element)
		if word, ok := l.word(at); ok && (i > 0 || l.notBlank(at, word)) {
			words = append(words, word)
		}
	}
	return words
}

// wordOf reads the word of a key; ok is false when there is no such key, or no word.
func (l *loader) wordOf(t table, key string) (p place, text string, ok bool) {
	if p, ok = t[key]; ok {
		text, ok = l.word(p)
	}
	return p, text, ok
}

// figure reads the word of a key that is a number, perhaps with a unit. A bare number
// with zeros in front is refused: it is octal for YAML 1.1 and decimal for YAML 1.2, by
// which editors go.
func (l *loader) figure(t table, key string) (p place, text string, ok bool) {
	p, text, ok = l.wordOf(t, key)
	if ok && !isText(p) && zeros().MatchString(text) {
		l.problem(p, text+" begins with 0: some programs read that as octal, others as decimal", "write "+withoutZeros(text))
		return p, text, false
	}
	return p, text, ok
}

var zeros = pattern(`^[-+]?0[0-9_]`)

// withoutZeros returns a number as it is written without zeros in front.
func withoutZeros(text string) string {
	sign := text[:len(text)-len(strings.TrimLeft(text, "-+"))]
	text = strings.TrimLeft(text[len(sign):], "0_")
	if text == "" || text[0] < '0' || text[0] > '9' {
		text = "0" + text
	}
	return sign + text
}

// enum reads one of the allowed words.
func enum[T ~string](l *loader, t table, key string, otherwise T, allowed []T) T {
	p, text, ok := l.wordOf(t, key)
	if !ok {
		return otherwise
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		if T(text) == a && isText(p) {
			return a
		}
		words[i] = string(a)
	}
	hint := "allowed: " + strings.Join(words, ", ")
	if near := Nearest(text, words); near != nil {
		hint = "did you mean " + near[0] + "? " + hint
	}
	l.problem(p, fmt.Sprintf("%q is not allowed", cut(text)), hint)
	return otherwise
}

// boolean reads true or false; the default is false.
func (l *loader) boolean(t table, key string) bool {
	p, text, ok := l.wordOf(t, key)
	if !ok {
		return false
	}
	var is bool
	switch n := p.here().node; {
	case n.ShortTag() == "!!bool" && n.Decode(&is) == nil:
	case text == "true" || text == "false":
		l.problem(p, fmt.Sprintf("%q is a string", text), "write it without quotes")
	default:
		l.problem(p, fmt.Sprintf("%q is neither true nor false", cut(text)), "write true or false")
	}
	return is
}

// number reads an integer of at least least.
func (l *loader) number(t table, key string, otherwise, least int) int {
	p, text, ok := l.figure(t, key)
	if !ok {
		return otherwise
	}
	n, ok := integer(p)
	switch {
	case !ok && isText(p) && digits().MatchString(text):
		l.problem(p, fmt.Sprintf("%q is a string", cut(text)), "write "+withoutZeros(text)+", without quotes")
	case !ok:
		l.problem(p, fmt.Sprintf("%q is not a whole number", cut(text)), fmt.Sprintf("for example %d", otherwise))
	case n < int64(least):
		l.problem(p, fmt.Sprintf("%d is too small", n), fmt.Sprintf("at least %d", least))
	case n > math.MaxInt32:
		l.problem(p, fmt.Sprintf("%d is too large", n), fmt.Sprintf("at most %d", math.MaxInt32))
	default:
		return int(n)
	}
	return otherwise
}

var digits = pattern(`^[0-9]+$`)

// integer returns a number without a fraction: 4, 0x10 and 4.0 count.
func integer(p place) (int64, bool) {
	node := p.here().node
	var f float64
	if isText(p) || node.Decode(&f) != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

var percentForm = pattern(`^([1-9][0-9]?|100)%$`)

// percent reads a percentage from 1% to 100%; 0 is none.
func (l *loader) percent(t table, key string) int {
	p, text, ok := l.figure(t, key)
	if !ok || text == "none" {
		return 0
	}
	form := percentForm().FindStringSubmatch(text)
	if form == nil {
		l.problem(p, fmt.Sprintf("%q is not a percentage", cut(text)), "for example 70%; none for no limit")
		return 0
	}
	n, _ := strconv.Atoi(form[1]) // it has the form of one
	return n
}

var sizeUnits = map[string]int64{
	"": 1, "B": 1, "kB": 1000, "MB": 1_000_000, "GB": 1_000_000_000, "TB": 1_000_000_000_000,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

var sizeForm = pattern(`^(\d{1,12}) ?([A-Za-z]*)$`)

// size reads a number of bytes: 65536, 64KiB, 1MiB, 500kB, 1MB, 2GiB.
func (l *loader) size(t table, key string, otherwise, least, most int64) int64 {
	p, text, ok := l.figure(t, key)
	if !ok {
		return otherwise
	}
	n, ok := sizeOf(p, text)
	if !ok {
		l.problem(p, fmt.Sprintf("%q is not a size", cut(text)), "a number of bytes, or with a unit: 64KiB, 1MiB, 500kB, 1MB, 2GiB")
		return otherwise
	}
	if n < least || n > most {
		l.problem(p, text+" is out of range", "from "+sizeText(least)+" to "+sizeText(most))
		return otherwise
	}
	return n
}

func sizeOf(p place, text string) (int64, bool) {
	if !isText(p) {
		return integer(p)
	}
	m := sizeForm().FindStringSubmatch(text)
	if m == nil || sizeUnits[m[2]] == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if n > math.MaxInt64/sizeUnits[m[2]] {
		return math.MaxInt64, err == nil
	}
	return n * sizeUnits[m[2]], err == nil
}

// sizeText formats a size as a person writes it.
func sizeText(n int64) string {
	unit := ""
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if n < 1<<10 || n%(1<<10) != 0 {
			break
		}
		n, unit = n>>10, larger
	}
	return strconv.FormatInt(n, 10) + unit
}

// bounds limits a duration.
type bounds struct {
	none bool          // 0 and none are allowed and mean none
	most time.Duration // 0: a year
	// least is the shortest allowed, and why says the reason; 0: anything over 0.
	least time.Duration
	why   string
}

// duration reads a length of time, as sources.ParseLength does.
func (l *loader) duration(t table, key string, otherwise time.Duration, b bounds) time.Duration {
	p, text, ok := l.figure(t, key)
	if !ok {
		return otherwise
	}
	if n, number := integer(p); b.none && (text == "none" || text == "0" || number && n == 0) {
		return 0
	}
	d, err := parseDuration(text)
	if err != nil {
		l.problem(p, err.Error(), durationHint(text, b))
		return otherwise
	}
	if b.most == 0 {
		b.most = 365 * day
	}
	switch {
	case d == 0 && b.none:
		return 0
	case d <= 0 || d < b.least:
		l.problem(p, text+" is too short", b.leastHint())
	case d > b.most:
		l.problem(p, text+" is too long", "at most "+days(b.most))
	default:
		return d
	}
	return otherwise
}

func (b bounds) leastHint() string {
	switch {
	case b.none:
		return "more than 0, or none"
	case b.least == 0:
		return "more than 0"
	}
	return fmt.Sprintf("at least %v: %s", b.least, b.why)
}

const day = 24 * time.Hour

func days(d time.Duration) string { return strconv.FormatInt(int64(d/day), 10) + "d" }

var unitless = pattern(`^[-+]?[0-9.]+$`)

// parseDuration reads a duration, which may be negative.
func parseDuration(text string) (time.Duration, error) {
	positive, negative := strings.CutPrefix(text, "-")
	d, err := sources.ParseLength(positive)
	switch {
	case unitless().MatchString(text):
		return 0, fmt.Errorf("%q has no unit", cut(text))
	case err != nil:
		return 0, fmt.Errorf("%q %w", cut(text), err)
	case negative:
		return -1, nil
	}
	return d, nil
}

// ParseDuration reads a duration as the file has it. A unit is required, but for 0; the
// error says what to write.
func ParseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	d, err := parseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("%q is negative", cut(text))
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, durationHint(text, bounds{}))
	}
	return d, nil
}

func durationHint(text string, b bounds) string {
	none := ""
	if b.none {
		none = ", or none"
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 {
		if n >= 100 {
			none = ", or in milliseconds " + text + "ms" + none
		}
		return "write " + text + "s or " + text + "m" + none
	}
	return "for example 30s, 10m, 2h, 1d or 1w" + none
}
