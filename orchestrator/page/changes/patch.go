package changes

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"heartbeat/hook/foreign"
)

// parsed is what a patch has of each file.
type parsed struct {
	files map[string]*File // :: name → its lines
	lines int
	cut   bool // there were more lines
}

// place is where lines follow: how many of the old file, and how many of the new one.
var place = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// parse reads a patch as git prints it. What belongs to a file is known by the counts of
// its places, never by how a line begins: a file can have any line.
func parse(patch []byte) parsed {
	p := parsed{files: map[string]*File{}}
	var file *File
	old, fresh := 0, 0 // lines that are still to come
	for raw := range bytes.Lines(patch) {
		line := string(bytes.TrimSuffix(raw, []byte("\n")))
		switch {
		case old > 0 || fresh > 0:
			if file != nil {
				p.take(file, line)
			}
			switch {
			case strings.HasPrefix(line, "-"):
				old--
			case strings.HasPrefix(line, "+"):
				fresh--
			case !strings.HasPrefix(line, `\`):
				old, fresh = old-1, fresh-1
			}
		case strings.HasPrefix(line, "diff --git "):
			file = p.begin(nameOf(strings.TrimPrefix(line, "diff --git ")))
		case file == nil:
		case strings.HasPrefix(line, "@@ "):
			if m := place.FindStringSubmatch(line); m != nil {
				old, fresh = number(m[1]), number(m[2])
				p.add(file, Line{'@', foreign.Text(line)})
			}
		case strings.HasPrefix(line, "Binary files "):
			file.Note = "not text, or too large to show"
		case strings.HasPrefix(line, "new mode "):
			p.add(file, Line{'@', foreign.Text("its mode is now " + strings.TrimPrefix(line, "new mode "))})
		case strings.HasPrefix(line, `\`):
			p.take(file, line)
		}
	}
	return p
}

func number(s string) int {
	if s == "" {
		return 1
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// begin is the file of a name. One that became another kind of file comes twice.
func (p *parsed) begin(name string) *File {
	if p.files[name] == nil {
		p.files[name] = &File{}
	}
	return p.files[name]
}

// take takes a line of a file's content, or what git says of its end.
func (p *parsed) take(file *File, line string) {
	kind, text := byte(' '), line
	if line != "" {
		kind, text = line[0], line[1:]
	}
	switch kind {
	case '+':
		file.Added++
	case '-':
		file.Deleted++
	case '\\':
		kind, text = '@', "no line break at its end"
	}
	p.add(file, Line{kind, foreign.Text(text)})
}

func (p *parsed) add(file *File, l Line) {
	if p.lines++; p.lines > mostLines {
		p.cut = true
		return
	}
	if over := len(l.Text) - mostWide; over > 0 {
		l.Text = foreign.Text(strings.ToValidUTF8(string(l.Text[:mostWide]), "")) + foreign.Text(fmt.Sprintf("… (%d bytes more)", over))
	}
	file.Lines = append(file.Lines, l)
}

// nameOf is the name in "a/NAME b/NAME": both are the same, as renames are not looked for.
// Git quotes names with characters that act.
func nameOf(both string) string {
	half := (len(both) - 1) / 2
	if half < 2 {
		return ""
	}
	name := both[:half]
	if strings.HasPrefix(name, `"`) {
		name = unquote(name)
	}
	return strings.TrimPrefix(name, "a/")
}

// unquote undoes git's quoting, which is C's.
func unquote(quoted string) string {
	quoted = strings.TrimSuffix(strings.TrimPrefix(quoted, `"`), `"`)
	escapes := map[byte]byte{'a': '\a', 'b': '\b', 't': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', '"': '"', '\\': '\\'}
	var b []byte
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' || i+1 == len(quoted) {
			b = append(b, quoted[i])
			continue
		}
		i++
		if c, is := escapes[quoted[i]]; is {
			b = append(b, c)
			continue
		}
		if i+3 <= len(quoted) {
			if n, err := strconv.ParseUint(quoted[i:i+3], 8, 8); err == nil {
				b = append(b, byte(n))
				i += 2
				continue
			}
		}
		b = append(b, quoted[i])
	}
	return string(b)
}
