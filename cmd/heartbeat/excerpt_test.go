package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Whoever loads the file shows its line under what is wrong, with a caret.
func TestAProblemShowsItsLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	r := w.background()
	w.put("heartbeat.yaml", strings.Replace(simulated, "    dir: agents/triage", "    dir: agents/triage\n    env: {A: [secret]}\n    colour: träge", 1))
	const want = `heartbeat: cannot use "heartbeat.yaml": 2 problems
heartbeat.yaml:6:14: agents.triage.env.A: must be a single value, not a list
heartbeat.yaml:7:5: agents.triage.colour: unknown key (known keys: `
	for _, args := range [][]string{{"validate"}, {"run"}, {"apply"}, {"diff"}, {"reload"}} {
		o := w.run(args...)
		if o.status != exitConfig || !strings.HasPrefix(o.stderr, want) || !strings.HasSuffix(o.stderr, "\n  7 |     colour: träge\n    |     ^\n") || strings.Contains(o.stderr, "secret") {
			t.Errorf("%q: %+v", args, o)
		}
	}
	w.put("heartbeat.yaml", simulated)
	r.stop()
}

func TestTheCaretStandsUnderTheColumn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text   string
		column int
		under  string // what begins above the caret
	}{
		"the beginning":      {"directory: x", 1, "d"},
		"behind tabs":        {"\t\tdirectory: x", 3, "d"},
		"behind wide ones":   {"你好: 好 x", 7, "x"},
		"behind combined":    {"e\u0301: x", 5, "x"},
		"behind an escape":   {"\x1b[31m: x", 8, "x"},
		"the end":            {"dir", 4, ""},
		"behind the end":     {"dir", 99, ""},
		"a long line":        {strings.Repeat("long ", 50) + "tz: x", 251, "t"},
		"long and wide":      {strings.Repeat("你", 200) + "tz: x", 201, "t"},
		"the end of a long":  {strings.Repeat("long ", 50), 251, ""},
		"before a long rest": {"tz: " + strings.Repeat("long ", 50), 1, "t"},
	} {
		for _, columns := range []int{0, 80, 30, 20, 5} {
			p := page{columns: columns}
			p.excerpt(12, tt.column, tt.text)
			lines := strings.Split(p.buf.String(), "\n")
			if len(lines) != 3 || lines[2] != "" || strings.ContainsRune(lines[0], '\x1b') {
				t.Fatalf("%s at %d: %q", name, columns, lines)
			}
			most := max(columns, len("  12 | ")+leastColumns)
			if columns == 0 {
				most = pageColumns
			}
			above, left := lines[0], width(strings.TrimSuffix(lines[1], "^"))
			for width(above) > 0 && width(lines[0])-width(above) < left {
				_, n := utf8.DecodeRuneInString(above)
				above = above[n:]
			}
			if !strings.HasPrefix(above, tt.under) || tt.under == "" && strings.TrimSpace(above) != "" || width(lines[0]) > most || width(lines[1]) > most {
				t.Errorf("%s at %d columns: the caret is under %q\n%s\n%s", name, columns, above, lines[0], lines[1])
			}
		}
	}
}
