package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

var (
	syntaxLine  = pattern(`^line (\d+): `)
	namedAnchor = pattern(`unknown anchor '(.+)' referenced`)
)

// syntax reports an error of the YAML parser. The parser knows the line at most,
// and often only the line where the block begins, so syntax searches for the line
// that breaks the file. The column is where that line's text begins.
func (l *loader) syntax(file place, err error, data []byte) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	lines := bytes.Split(data, []byte("\n"))
	if i := slices.IndexFunc(lines, func(line []byte) bool { return string(line) == "=======" }); i >= 0 { // others would be found before
		l.problem(file.of(&yaml.Node{Line: i + 1, Column: 1}, ""), conflict+"=======", conflictHint)
		return
	}
	line := 0
	if m := syntaxLine().FindStringSubmatch(message); m != nil {
		message = message[len(m[0]):]
		fmt.Sscan(m[1], &line)
		if found := breaking(lines); found > 0 {
			line = found
		}
	} else {
		line = bytes.Count(data[:culprit(message, data)], []byte("\n")) + 1
	}
	line = min(max(line, 1), len(lines))
	message, hint := explain(message, lines[:line])
	text := lines[line-1]
	column := len(text) - len(bytes.TrimLeft(text, " \t\r")) + 1
	l.problem(file.of(&yaml.Node{Line: line, Column: column}, ""), message, hint)
}

// culprit returns the offset of what the parser complains about without naming a
// line.
func culprit(message string, data []byte) int {
	at := -1
	if m := namedAnchor().FindStringSubmatch(message); m != nil {
		at = bytes.Index(data, []byte("*"+m[1]))
	} else {
		at = bytes.IndexFunc(data, func(r rune) bool {
			return r == '\uFFFD' || r == 0x7f || r < ' ' && r != '\t' && r != '\n' && r != '\r'
		})
	}
	return max(at, 0)
}

const (
	// mostParsed bounds in bytes how much is parsed again to find a line: some
	// seconds' worth.
	mostParsed = 24 << 20
	// longest is how many lines a list or a quoted text may reasonably span.
	longest = 100
)

// breaking returns the number of the first line with which the file cannot be
// parsed any more, whatever follows it, or 0 when the search takes too long. Where
// something is opened and never closed, it is the line that opens it.
func breaking(lines [][]byte) int {
	budget := mostParsed
	parses := func(n int) bool {
		part := bytes.Join(lines[:n], []byte("\n"))
		budget -= len(part)
		return budget >= 0 && whole(part)
	}
	good, bad := 0, len(lines)
	found := 0
	for {
		for bad-good > 1 {
			if middle := (good + bad) / 2; parses(middle) {
				good = middle
			} else {
				bad = middle
			}
		}
		if budget < 0 {
			return found
		}
		found = bad
		// Nothing parses in the middle of a value that spans lines: the line that
		// breaks the file may be after its end.
		ahead := bad + 1
		for ahead < min(bad+longest, len(lines)) && !parses(ahead) {
			ahead++
		}
		if budget < 0 || ahead >= min(bad+longest, len(lines)) {
			return found
		}
		good, bad = ahead, len(lines)
	}
}

// whole reports whether data parses to its end.
func whole(data []byte) bool {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

var (
	// keyed matches a line with a key and captures its value; dashes may stand
	// before the key.
	keyed = pattern(`^ *(?:- +)*[\w."'-]+ *:(?: +(.*)|)$`)
	// behindQuotes matches a value that continues after its closing quote.
	behindQuotes = pattern(`^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*') *[^ ,#\]}]`)
	closedQuotes = pattern(`^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')`)
)

// explain says what is wrong with the last of lines and what to write instead.
// Where it cannot tell, it returns the parser's message.
func explain(message string, lines [][]byte) (what, hint string) {
	text := string(bytes.TrimRight(lines[len(lines)-1], "\r"))
	trimmed := strings.TrimLeft(text, " ")
	value := ""
	if m := keyed().FindStringSubmatch(text); m != nil {
		value = strings.TrimSpace(m[1])
	}
	switch {
	case strings.HasPrefix(trimmed, "\t"):
		return message, "YAML is indented with spaces"
	case strings.Contains(text, ": *") || strings.Contains(text, "[*"):
		return message, `put it in quotes: a bare * begins an alias`
	case strings.Contains(text, ": {{"):
		return message, `put it in quotes: a bare { begins a mapping`
	}
	if fits := indents(lines); fits != "" {
		return fmt.Sprintf("its indentation, %s, matches no line above", spaces(len(text)-len(trimmed))), "lines above it: " + fits
	}
	switch {
	case behindQuotes().MatchString(value):
		return "there is text after the closing quote", `write \" for a " inside of "…", and '' for a ' inside of '…'`
	case strings.HasPrefix(value, `"`) || strings.HasPrefix(value, `'`):
		if !closedQuotes().MatchString(value) {
			return "the quote that begins here is not closed", "end the text with " + value[:1]
		}
	case strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{"):
		if end := map[byte]string{'[': "]", '{': "}"}[value[0]]; strings.Count(value, value[:1]) > strings.Count(value, end) {
			return message, "the " + value[:1] + " that begins here needs its " + end
		}
	case strings.Contains(value, ": ") || strings.HasSuffix(value, ":"):
		return message, "put the text after the first colon in quotes: a colon and a space begin a mapping"
	case value != "" && strings.ContainsAny(value[:1], "@`%&!|>?"):
		return message, "put it in quotes: a bare " + value[:1] + " means something else"
	case value != "" && len(trimmed) > 0 && !strings.Contains(trimmed, ":"):
		return message, "write a key and its value as KEY: VALUE"
	}
	return message, ""
}

// indents lists the indentations of the lines above that the last line could align
// with; "" where it already matches one.
func indents(lines [][]byte) string {
	own := indent(lines[len(lines)-1])
	least := -1
	var found []string
	for _, line := range slices.Backward(lines[:len(lines)-1]) {
		text := strings.TrimSpace(string(line))
		if !keyed().Match(bytes.TrimRight(line, "\r")) && !strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "#") {
			continue
		}
		n := indent(line)
		if least >= 0 && n >= least {
			continue
		}
		opens := least < 0 && n < own && strings.HasSuffix(text, ":") // and own is what it holds
		least = n
		if n == own || opens {
			return ""
		}
		name, _, _ := strings.Cut(text, ":")
		if len(found) < 3 {
			found = append(found, fmt.Sprintf("%s with %s", cut(name), spaces(n)))
		}
	}
	return strings.Join(found, ", ")
}

func indent(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

func spaces(n int) string {
	switch n {
	case 0:
		return "no space"
	case 1:
		return "1 space"
	}
	return fmt.Sprintf("%d spaces", n)
}
