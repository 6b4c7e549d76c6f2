package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

func TestHelpTopics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := w.ok("help")
	var data []topic
	w.into(&data, "help")
	if len(data) < 8 || data[0].Text != "" {
		t.Fatalf("topics: %+v", data)
	}
	for _, one := range data {
		text := w.ok("help", one.Name)
		if !strings.Contains(list, "\n  "+one.Name+" ") || one.Summary == "" || !strings.HasPrefix(text, "# "+one.Name+": "+one.Summary+"\n") {
			t.Errorf("%+v is listed as\n%s\nand printed as\n%s", one, list, text)
		}
		for line := range strings.Lines(text) {
			if len([]rune(line)) > 81 {
				t.Errorf("%s: a line is too long for a terminal: %s", one.Name, line)
			}
		}
	}
	if out := w.ok("help", "dead-letter"); !strings.Contains(out, "Usage: heartbeat dead-letter") {
		t.Errorf("help COMMAND printed:\n%s", out)
	}
	if o := w.run("help", "nothing"); o.status != exitUsage || !strings.Contains(o.stderr, "heartbeat help lists the topics") {
		t.Errorf("%+v", o)
	}
	if out := w.ok("__complete", "help", "or"); !strings.HasPrefix(out, "orphans\t") {
		t.Errorf("TAB offers %q", out)
	}
}

var (
	exampleFile = regexp.MustCompile(`\nExample: (examples/[a-z]+/heartbeat\.yaml)`)
	exampleLine = regexp.MustCompile(`(?m)^    heartbeat (.* -f examples/.*)$`)
)

// TestTheTopicsExamplesRun runs each command line of topics, of every third by the sample,
// on a copy of the example that the topic names.
func TestTheTopicsExamplesRun(t *testing.T) {
	t.Parallel()
	all, err := readTopics()
	if err != nil || len(all) < 8 {
		t.Fatal(len(all), err)
	}
	for _, one := range testbed.SampleOf(t, all, 3) {
		t.Run(one.Name, func(t *testing.T) {
			t.Parallel()
			file := exampleFile.FindStringSubmatch(one.Text)
			lines := exampleLine.FindAllStringSubmatch(one.Text, -1)
			if file == nil || len(lines) < 2 || !strings.HasPrefix(lines[0][1], "validate -f "+file[1]) {
				t.Fatalf("it names the example %q with %q", file, lines)
			}
			w := newWorld(t)
			copyExample(t, filepath.Dir(file[1]), w.dir)
			if strings.HasPrefix(file[1], "examples/triggers/") { // a file to be found
				w.put("examples/triggers/agents/worker/incoming/mail.txt", "hello")
			}
			for _, line := range lines {
				args := strings.Fields(line[1])
				want := []int{exitOK}
				switch {
				case args[0] == "diff":
					want = []int{exitOK, exitError}
				case one.Name == "approvals" && args[0] == "run": // its agent waits, where its session finds heartbeat on the PATH
					want = []int{exitOK, exitError}
				case one.Name == "orphans" && args[0] == "run": // a prompt is given up, as it says
					want = []int{exitError}
				}
				if o := w.run(args...); !slices.Contains(want, o.status) {
					t.Errorf("heartbeat %s: %+v, want the status to be one of %v", line[1], o, want)
				}
			}
			if one.Name == "orphans" {
				if out := w.ok("dead-letter", "-f", file[1], "careful"); !strings.Contains(out, "interrupted") {
					t.Errorf("the dead letter is not there: %s", out)
				}
			}
		})
	}
}

// copyExample copies an example without what a run in the checkout has left.
func copyExample(t *testing.T, example, to string) {
	t.Helper()
	from := filepath.Join("../..", example)
	if err := os.CopyFS(filepath.Join(to, example), os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{".heartbeat", ".claude", ".home"} {
		paths, _ := filepath.Glob(filepath.Join(to, example, "agents", "*", left))
		for _, p := range paths {
			if err := os.RemoveAll(p); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestHelpOfACommandBehindFlags: what every command takes may stand before and behind help.
func TestHelpOfACommandBehindFlags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, args := range [][]string{{"-f", "x", "help", "status"}, {"help", "-f", "x", "status"}, {"help", "status", "-o", "json"}} {
		if o := w.run(args...); o.status != 0 || !strings.HasPrefix(o.stdout, "Usage: heartbeat status ") {
			t.Errorf("%q: %+v", args, o)
		}
	}
}
