package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Whatever the cells are, a table is as wide as the terminal at most, and its columns
// stand under each other, or each row stands on lines of its own.
func TestTablesKnowTheTerminalsWidth(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "-", "triage", "running 3m", "2026-03-01 12:00:00", "d2b8356851ff", "你好吗 你好", "e\u0301e\u0301", strings.Repeat("why ", 40), "\x1b[31mred\nlines"}
	for range 2000 {
		header := []string{"AGENT", "STATE", "QUEUED", "IN FLIGHT", "DEAD", "NEXT", "LAST SESSION"}[:1+random.IntN(7)]
		var rows [][]cell
		for range 1 + random.IntN(4) {
			var row []cell
			for range header {
				row = append(row, cell{text: texts[random.IntN(len(texts))]})
			}
			rows = append(rows, row)
		}
		columns := []int{0, 200, 80, 60, 40, 20}[random.IntN(6)]
		p := page{columns: columns}
		p.table(header, rows)
		lines := strings.Split(strings.TrimSuffix(p.buf.String(), "\n"), "\n")
		for _, line := range lines {
			if columns > 0 && width(line) > columns {
				t.Fatalf("%d columns on %d: %q", width(line), columns, line)
			}
		}
		if len(header) == 1 || !strings.Contains(lines[0], "  "+header[1]) {
			continue // rows on lines of their own
		}
		for _, h := range header[1:] {
			at := strings.Index(lines[0], "  "+h)
			if says := slices.ContainsFunc(rows, func(row []cell) bool { return says(row[slices.Index(header, h)].text) }); at < 0 && !says {
				continue // it says nothing, and there was no room for it
			}
			if at < 0 {
				t.Fatalf("on %d columns %s is not in %q", columns, h, lines[0])
			}
			for _, line := range lines[1:] {
				if gap := columnsFrom(line, at, 2); strings.TrimSpace(gap) != "" {
					t.Fatalf("on %d columns the columns before %s are broken by %q:\n%s", columns, h, gap, strings.Join(lines, "\n"))
				}
			}
		}
	}
}

// columnsFrom is what stands in n columns of a line.
func columnsFrom(line string, from, n int) string {
	at, text := 0, ""
	for _, r := range line {
		if at >= from && at < from+n && runeWidth(r) > 0 {
			text += string(r)
		}
		at += runeWidth(r)
	}
	return text
}

func TestNarrowTables(t *testing.T) {
	t.Parallel()
	header := []string{"AGENT", "ID", "WHY"}
	rows := func() [][]cell {
		return [][]cell{plain("triage", "d2b8356851ff", "the client ended before it had called a hook"), plain("builder", "a", "")}
	}
	for columns, want := range map[int]string{
		0: `AGENT    ID            WHY
triage   d2b8356851ff  the client ended before it had called a hook
builder  a
`,
		40: `AGENT    ID            WHY
triage   d2b8356851ff  the client ended…
builder  a
`,
		20: `AGENT  triage
ID     d2b8356851ff
WHY    the client e…

AGENT  builder
ID     a
`,
	} {
		p := page{columns: columns}
		p.table(header, rows())
		if got := p.buf.String(); got != want {
			t.Errorf("on %d columns:\n%s", columns, got)
		}
	}
}

// TestWhatIsTypedNextIsNotCut: at 80 columns a list of dead letters cut the ids that it
// says to type, and beside them stood dates and prompts.
func TestWhatIsTypedNextIsNotCut(t *testing.T) {
	t.Parallel()
	id, reason, text := "10aa091f1d757f28", "iteration-too-fast", strings.Repeat("look ", 40)
	for _, header := range [][]string{
		{"AGENT", "ID", "REASON", "GIVEN", "AT", "PROMPT"},
		{"ID", "AGENT", "STATE", "ASKED", "FOR", "QUESTION"},
		{"TIME", "AGENT", "WHAT", "TOOK", "DONE", "ID", "WHY"},
		{"ID", "REASON", "GIVEN", "AT", "PROMPT"},
		{"AGENT", "ID", "STATE", "SOURCE", "PROMPT"},
	} {
		fields := map[string]string{"ID": id, "REASON": reason, "PROMPT": text, "QUESTION": text, "WHY": text, "AT": "2026-03-01 12:00", "ASKED": "2026-03-01 12:00", "TIME": "2026-03-01 12:00:00"}
		row := make([]string, len(header))
		for i, h := range header {
			row[i] = cmp.Or(fields[h], "triage")
		}
		for columns := 32; columns < 140; columns++ {
			p := page{columns: columns}
			p.table(header, [][]cell{plain(row...)})
			out := p.buf.String()
			if !strings.Contains(out, id) || slices.Contains(header, "REASON") && !strings.Contains(out, reason) {
				t.Fatalf("on %d columns:\n%s", columns, out)
			}
			if columns >= 80 && slices.Contains(header, "PROMPT") && strings.Contains(out, "AT ") && !strings.Contains(out, "2026-03-01 12:00") {
				t.Fatalf("on %d columns a date was cut, and a prompt was not:\n%s", columns, out)
			}
		}
	}
}

// TestNamesAndTimesAreNotCut: at 80 columns the rows of thirty agents looked the same, as
// their names were cut, while columns without anything in them stood whole; and times lost
// their minutes.
func TestNamesAndTimesAreNotCut(t *testing.T) {
	t.Parallel()
	agent, id, at, local := "agent-with-name-12", "10c753bdb16f2a41", "2026-11-27 20:31:07", "Sat 2026-11-28 09:00:00 CET"
	long := strings.Repeat("it goes on ", 10)
	for _, table := range []struct {
		header []string
		row    []string
		whole  []string
	}{
		{[]string{"AGENT", "STATE", "QUEUED", "IN FLIGHT", "DEAD", "NEXT", "LAST SESSION"}, []string{agent, "stopped", "0", "-", "0", "in 13h (09:00 CET)", "hooks-do-not-run, 0 done"}, []string{agent, "stopped", "in 13h (09:00 CET)"}},
		{[]string{"TIME", "AGENT", "WHAT", "TOOK", "DONE", "ID", "WHY"}, []string{at, agent, "session", "1h2m", "3", id, "drained"}, []string{at, agent, id}},
		{[]string{"AGENT", "TRIGGER", "LOCAL TIME", "UTC", "DUE"}, []string{agent, "every-morning", local, "2026-11-28 08:00:00Z", "in 12h30m"}, []string{agent, "every-morning", local, "in 12h30m"}},
		{[]string{"TIME", "AGENT", "ENTRY", "TURNS", "CALLS", "IN", "OUT", "READ", "WRITTEN", "COST"}, []string{at, agent, id, "1", "2", "3k", "4k", "5k", "6k", "$0.12"}, []string{at, agent, id, "$0.12"}},
		{[]string{"TRIGGER", "QUEUED", "WHY"}, []string{"morning-of-the-week", "0", long}, []string{"morning-of-the-week"}},
		{[]string{"TIME", "TARGET", "OUTCOME", "TRY", "WHAT"}, []string{at, "the-people-on-call", "sent", "1", long}, []string{at, "the-people-on-call"}},
	} {
		for columns := 20; columns < 200; columns++ {
			p := page{columns: columns}
			p.table(table.header, [][]cell{plain(table.row...), plain(table.row...)})
			out := p.buf.String()
			for _, field := range table.whole {
				lines := out
				if strings.Contains(field, " ") && columns < 60 {
					lines = strings.Join(strings.Fields(out), " ") // wrapped between its words
				}
				if !strings.Contains(lines, field) {
					t.Fatalf("%q is cut on %d columns:\n%s", field, columns, out)
				}
			}
		}
	}
}

// TestColumnsThatSayNothingGoFirst: what is in no row makes room for what is.
func TestColumnsThatSayNothingGoFirst(t *testing.T) {
	t.Parallel()
	header := []string{"AGENT", "STATE", "QUEUED", "IN FLIGHT", "DEAD", "NEXT", "LAST SESSION"}
	rows := [][]cell{plain("agent-with-name-1", "stopped", "0", "-", "0", "in 3m", "1 done"), plain("agent-with-name-2", "running 3m", "0", "-", "0", "-", "-")}
	for columns, want := range map[int]string{
		80: `AGENT              STATE       QUEUED  IN FLIGHT  DEAD  NEXT   LAST SESSION
agent-with-name-1  stopped     0       -          0     in 3m  1 done
agent-with-name-2  running 3m  0       -          0     -      -
`,
		60: `AGENT              STATE       NEXT   LAST SESSION
agent-with-name-1  stopped     in 3m  1 done
agent-with-name-2  running 3m  -      -
`,
	} {
		p := page{columns: columns}
		p.table(header, rows)
		if got := p.buf.String(); got != want {
			t.Errorf("on %d columns:\n%s", columns, got)
		}
	}
}

// TestATextGoesBelowItsRow: a row of history on 80 columns would be seven lines.
func TestATextGoesBelowItsRow(t *testing.T) {
	t.Parallel()
	p := page{columns: 80}
	p.table([]string{"TIME", "AGENT", "WHAT", "TOOK", "DONE", "ID", "WHY"}, [][]cell{
		plain("2026-11-27 20:31:07", "agent-with-name-1", "session", "1h2m", "3", "fcfd6c6e", "start-timeout (the client did not begin within 30s; the client asks whether the folder is trusted)"),
		plain("2026-11-27 20:31:08", "agent-with-name-2", "dead-letter", "-", "-", "10c753bdb16f", "dropped"),
		plain("2026-11-27 20:31:09", "agent-with-name-2", "session", "1s", "1", "10c753bd", ""),
	})
	if got, want := p.buf.String(), `TIME                 AGENT              WHAT         TOOK  DONE  ID
2026-11-27 20:31:07  agent-with-name-1  session      1h2m  3     fcfd6c6e
    start-timeout (the client did not begin within 30s; the client asks whether…
2026-11-27 20:31:08  agent-with-name-2  dead-letter  -     -     10c753bdb16f
    dropped
2026-11-27 20:31:09  agent-with-name-2  session      1s    1     10c753bd
`; got != want {
		t.Errorf("%s", got)
	}
}

// TestARowOfLinesHasWholeIDs: on 20 columns an id that was to be typed was cut.
func TestARowOfLinesHasWholeIDs(t *testing.T) {
	t.Parallel()
	p := page{columns: 20}
	p.table([]string{"ID", "REASON", "GIVEN", "AT", "PROMPT"}, [][]cell{plain("10c753bdb16f2a41", "dropped", "0", "2026-03-01 12:00", "look at it again"), plain(strings.Repeat("long-id/", 3), "dropped", "0", "2026-03-01 12:00", "")})
	if got, want := p.buf.String(), `ID
10c753bdb16f2a41
REASON  dropped
GIVEN   0
AT      2026-03-01
        12:00
PROMPT  look at it …

ID
long-id/long-id/long
-id/
REASON  dropped
GIVEN   0
AT      2026-03-01
        12:00
`; got != want {
		t.Errorf("%s", got)
	}
}

// The commands that people look at keep to the terminal's width: their tables, and
// what doctor and explain say.
func TestCommandsKnowTheTerminalsWidth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "NO_COLOR=1")
	w.put("heartbeat.yaml", simulated+`  an-agent-with-a-long-name:
    dir: agents/builder
    command: [heartbeat, simulate]
    trigger: {poll: [sh, -c, "true"]}
`)
	w.ok("apply")
	long := strings.Repeat("look through all mails ", 20)
	w.ok("send", "triage", long)
	w.ok("send", "an-agent-with-a-long-name", "--id", "a-rather-long-id-of-a-ticket", long)
	w.run("run", "--once")
	w.ok("send", "triage", "--id", "given-up", long)
	w.ok("inbox", "drop", "given-up")
	w.ok("send", "triage", long)
	for _, columns := range []int{80, 60, 20} {
		for _, args := range [][]string{{"status"}, {"history"}, {"explain"}, {"explain", "held"}, {"doctor"}, {"dead-letter"}, {"inbox"}, {"inbox", "triage"}, {"next"}, {"events"}, {"validate"}} {
			o := w.run(slices.Concat([]string{"launch", "--rows", "40", "--cols", strconv.Itoa(columns), "--", w.command().Path}, args)...)
			out := wiped.ReplaceAllString(strings.ReplaceAll(o.stdout, "\r\n", "\n"), "")
			if out == "" || o.status > 1 {
				t.Fatalf("%q: %+v", args, o)
			}
			for line := range strings.Lines(out) {
				line = strings.TrimSuffix(line, "\n")
				if text := strings.TrimSpace(line); width(line) > columns && !prose(args[0], text) {
					t.Errorf("%q has %d columns on %d: %s", args, width(line), columns, line)
				}
			}
			if testing.Verbose() {
				t.Log(fmt.Sprintf("%q on %d columns:\n", args, columns) + out)
			}
		}
	}
}

// wiped is what is wiped off the terminal again.
var wiped = regexp.MustCompile(`(?:\r\x1b\[K[^\r\n]*)*\r\x1b\[K`)

// prose reports whether a line is text that the terminal wraps, or a command to copy.
func prose(command, line string) bool {
	switch command {
	case "status":
		return strings.HasPrefix(line, "!") || strings.Contains(line, ": ") || strings.HasPrefix(line, "do  ") || strings.HasPrefix(line, "then  ") || strings.HasPrefix(line, "also  ") || strings.Contains(line, " prompt")
	case "doctor":
		return strings.HasPrefix(line, "fix ") || strings.HasPrefix(line, "error ") || strings.HasPrefix(line, "warning ") || !strings.Contains(line, " ") || strings.Contains(line, " agents: ") || strings.HasPrefix(line, "hint:") || strings.HasPrefix(line, "heartbeat:") || strings.HasPrefix(line, "seen ") || strings.HasPrefix(line, "why ") || strings.HasPrefix(line, "2 agents")
	case "events", "next", "explain", "validate":
		return !strings.Contains(line, "  ")
	}
	return false
}
