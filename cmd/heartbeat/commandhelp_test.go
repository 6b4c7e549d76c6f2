package main

import (
	"os"
	"strings"
	"testing"
)

// Each command's help fits a terminal of 80 columns, and shows how it is used.
func TestTheHelpOfCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, err := newParser(&cli{}, stdio{os.Stdin, os.Stdout, os.Stderr}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	helps := map[string]string{"heartbeat": w.ok("--help")}
	for _, c := range leaves(p.Model.Node) {
		if !c.Hidden {
			helps[c.Path()] = w.ok(append(strings.Fields(c.Path()), "--help")...)
		}
	}
	for command, help := range helps {
		for line := range strings.Lines(help) {
			if line = strings.TrimSuffix(line, "\n"); width(line) > pageColumns {
				t.Errorf("%s: %d columns: %s", command, width(line), line)
			}
		}
		_, examples, found := strings.Cut(help, "\nExamples:\n\n")
		if command != "heartbeat" && (!found || !strings.HasPrefix(strings.TrimLeft(examples, " "), "heartbeat "+command) && !strings.Contains(examples, "heartbeat "+command)) {
			t.Errorf("%s: no examples:\n%s", command, help)
		}
	}
}

// Each flag that takes a value may stand before the command.
func TestFlagsBeforeTheCommand(t *testing.T) {
	t.Parallel()
	p, err := newParser(&cli{}, stdio{os.Stdin, os.Stdout, os.Stderr}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Model.Flags {
		if takesValue(f) && commandAt([]string{"--" + f.Name, "value", "events"}) != 2 {
			t.Errorf("--%s: its value is taken for the command", f.Name)
		}
	}
}
