package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheREADMEShowsWhatIsPrinted: the session at its top is the quickstart's, and it is
// short enough to be read.
func TestTheREADMEShowsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(data), "\n"); lines > 200 {
		t.Errorf("the README has %d lines; 200 are what somebody reads", lines)
	}
	_, shown, _ := strings.Cut(string(data), "\n```\n$ heartbeat run --once --fire\n")
	shown, _, found := strings.Cut(shown, "\n```\n")
	ran, replies, both := strings.Cut(shown, "\n\n$ heartbeat replies clerk\n")
	if !found || !both {
		t.Fatal("the README shows no session")
	}
	w := newWorld(t)
	copyExample(t, "examples/quickstart", w.dir)
	w.dir = filepath.Join(w.dir, "examples/quickstart")
	screen, ended := w.onTerminal("--once", "--fire")
	<-ended
	if got, want := sessionLines(screen.String()), sessionLines(ran); !slices.Equal(got, want) {
		t.Errorf("the README shows\n%s\nand run prints\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
	times := regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d clerk cron-1, \d+s`)
	if got, want := times.ReplaceAllString(w.ok("replies", "clerk"), ""), times.ReplaceAllString(replies, ""); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("the README shows\n%s\nand replies prints\n%s", want, got)
	}
}

// sessionLines are the lines that run prints for people, without times and in an order
// that does not depend on which agent was faster.
func sessionLines(text string) []string {
	line := regexp.MustCompile(`(?:^|\x1b\[K)(?:\d\d:\d\d:\d\d  )?((?:clerk|reviewer|fixer)  .*|heartbeat (?:runs|stopped) .*)$`)
	number := regexp.MustCompile(`\d+m?s\b|\$[0-9.]+`)
	cut := regexp.MustCompile(`^(.{60}).*….*$`) // where depends on how long the numbers behind it are
	var all []string
	for l := range strings.Lines(strings.ReplaceAll(text, "\r", "")) {
		if m := line.FindStringSubmatch(strings.TrimRight(l, "\n")); m != nil && !strings.Contains(m[1], "idle ") {
			all = append(all, cut.ReplaceAllString(number.ReplaceAllString(m[1], "N"), "$1…"))
		}
	}
	slices.Sort(all)
	return all
}
