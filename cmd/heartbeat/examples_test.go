package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// envRecord makes the test binary write its arguments into this file, a JSON
// array a line, and do nothing else.
const envRecord = "HEARTBEAT_TEST_RECORD"

func record(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return json.NewEncoder(f).Encode(os.Args[1:])
}

// anExample is a line that runs heartbeat, in the form in which a shell takes it.
var (
	anExample   = regexp.MustCompile(`(^|[|;&(] *)heartbeat `)
	aComment    = regexp.MustCompile(`(^| )#( .*)?$`)
	aRedirect   = regexp.MustCompile(` (>+|<) *[^\s(]+( *$)`)
	aShellBlock = regexp.MustCompile("(?ms)^ *```(?:sh|bash)\n(.*?)^ *```")
)

// examples are the command lines of the help texts, of the README and of docs, by
// where they stand.
func examples(t *testing.T) map[string][]string {
	t.Helper()
	parser, err := newParser(&cli{}, stdio{out: os.Stdout, err: os.Stderr}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	add := func(where, text string) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(strings.Replace(line, "go run ./cmd/heartbeat ", "heartbeat ", 1))
			line = aRedirect.ReplaceAllString(aComment.ReplaceAllString(line, ""), "")
			if anExample.MatchString(line) {
				found[where] = append(found[where], line)
			}
		}
	}
	err = kong.Visit(parser.Model.Node, func(v kong.Visitable, next kong.Next) error {
		node, ok := v.(*kong.Node)
		if !ok || node.Type != kong.CommandNode || node.Hidden {
			return next(nil)
		}
		if _, block, ok := strings.Cut(node.Detail, "Example"); ok {
			add(node.Path(), block)
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatal(documents, err)
	}
	for _, file := range append(documents, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range aShellBlock.FindAllStringSubmatch(string(text), -1) {
			add(filepath.Base(file), block[1])
		}
	}
	return found
}

// argsOf lets bash read a line and returns what each heartbeat in it is given.
func argsOf(t *testing.T, line string) [][]string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "heartbeat")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "record")
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=" + dir, envRecord + "=" + file}
	_, _ = cmd.CombinedOutput() // what stands behind a pipe need not be there
	data, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%s: heartbeat is not run: %v", line, err)
	}
	var all [][]string
	for record := range strings.Lines(string(data)) {
		var args []string
		if err := json.Unmarshal([]byte(record), &args); err != nil {
			t.Fatal(err)
		}
		all = append(all, args)
	}
	return all
}

// safe are commands that can be run offline, to their end, on a fresh fleet.
var safe = []string{"init", "validate", "apply", "diff", "unapply", "status", "send", "schema", "completion", "version", "next", "service"}

// TestExamplesAreTrue: every command line that --help, the README and docs show is
// one that is understood, and those that can be run do not fail.
func TestExamplesAreTrue(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	found := examples(t)
	if len(found) < 12 || len(found["README.md"]) < 4 {
		t.Fatalf("found only %q", found)
	}
	ran := 0
	for where, lines := range found {
		for _, line := range lines {
			for _, args := range argsOf(t, line) {
				if len(args) > 0 && args[0] == "__complete" {
					continue
				}
				null, err := os.Open(os.DevNull)
				if err != nil {
					t.Fatal(err)
				}
				_, err = parse(args, stdio{in: null, out: null, err: null})
				if err != nil {
					t.Errorf("%s: %s: %v", where, line, err)
				}
				null.Close()
				if err == nil && len(args) > 0 && slices.Contains(safe, args[0]) && (args[0] != "service" || args[1] == "print") {
					ran++
					runExample(t, where, line, args)
				}
			}
		}
	}
	if ran < 15 {
		t.Errorf("only %d examples were run", ran)
	}
}

// runExample runs a command line on a fleet that has what examples name.
func runExample(t *testing.T, where, line string, args []string) {
	t.Helper()
	if slices.Contains(args, "--wait") || slices.Contains(args, "--watch") || slices.Contains(args, "--user") {
		return // ends when a scheduler has done something, or asks for a user of this machine
	}
	w := newWorld(t)
	if args[0] != "init" {
		fleet := "version: 1\nnotify: {phone: {command: [cat]}}\nagents:\n  triage: {dir: agents/triage}\n  builder: {dir: agents/builder}\n"
		for _, name := range []string{"heartbeat.yaml", "other.yaml"} {
			w.put(name, fleet)
		}
	} else {
		w.put("fleet/x", "")
	}
	if args[0] == "send" { // the README applies first
		w.put("agents/triage/x", "")
		w.put("agents/builder/x", "")
		if i := slices.Index(args, "--cancel"); i > 0 && i+1 < len(args) {
			w.ok("send", "triage", "--in", "1h", "--id", args[i+1], "what is taken back")
		}
	}
	w.put("home/.claude.json", "{}")
	w.put("home/claude.json", "")
	o := w.feed("a prompt", args...)
	if o.status != 0 && (args[0] != "diff" || o.status != 1 || o.stderr != "") {
		t.Errorf("%s: %s: %+v", where, line, o)
	}
}
