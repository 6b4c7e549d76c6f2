package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/internal/simulate/script"
)

// signs are command lines that sessions may give a sign of life by, and that they must
// not be able to abuse: each of these would leave the file "abused".
var signs = map[bool][]string{
	true: {
		"heartbeat alive", "heartbeat alive compiling", "heartbeat alive 'half of the tests; 50% (3 of 6)'",
		`heartbeat alive "two words"`, "heartbeat alive --host evil", "heartbeat alive -o json", "heartbeat alive last",
	},
	false: {
		"heartbeat alive $(touch abused)", "heartbeat alive `touch abused`", `heartbeat alive "$(touch abused)"`,
		"heartbeat alive x; touch abused", "heartbeat alive x && touch abused", "heartbeat alive x | touch abused",
		"heartbeat alive x > abused", "heartbeat alive x >> abused", "heartbeat alive x 2> abused", "heartbeat alive x & touch abused",
		"heartbeat alive x\ntouch abused", "heartbeat alive <(touch abused)", "heartbeat alive ${x:=$(touch abused)}",
		"heartbeat pause a", "heartbeat aliveX", "touch abused",
	},
}

// TestASessionMaySayThatItLives, by the rules that apply gives it, and by these nothing
// else: neither another command of ours, nor one of the shell's.
func TestASessionMaySayThatItLives(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, nil)
		text, err := os.ReadFile(f.file)
		if err != nil {
			t.Fatal(err)
		}
		f.write(f.file, strings.Replace(string(text), "allow: [Bash]", "allow: [Read]", 1))
		bin, ran := filepath.Join(f.Dir, "bin"), filepath.Join(f.Dir, "ran")
		if err := os.Mkdir(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		wrapper := "#!/bin/sh\necho \"$@\" >>" + ran + "\nexec " + filepath.Join(f.bin, "heartbeat") + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(bin, "heartbeat"), []byte(wrapper), 0o700); err != nil {
			t.Fatal(err)
		}
		f.Setenv("PATH=" + bin + ":" + os.Getenv("PATH"))
		var steps []script.Step
		for _, may := range []bool{false, true} {
			for _, command := range signs[may] {
				steps = append(steps, bash(command))
			}
		}
		f.turns(turn{match: "long work", steps: append(steps, say("done"))})
		f.send("long work")
		f.must("", "run", "--once")
		if _, err := os.Stat(filepath.Join(f.Work, "abused")); err == nil {
			t.Error("a sign of life was another command")
		}
		data, err := os.ReadFile(ran)
		var got []string
		for line := range strings.Lines(string(data)) {
			if !strings.HasPrefix(line, "simulate") {
				got = append(got, "heartbeat "+strings.TrimSpace(line))
			}
		}
		want := strings.NewReplacer("'", "", `"`, "").Replace(strings.Join(signs[true], "\n"))
		if err != nil || strings.Join(got, "\n") != want {
			t.Errorf("%v; what ran:\n%s\nwant:\n%s", err, strings.Join(got, "\n"), want)
		}
		if events := f.must("", "events", "a"); !strings.Contains(events, " a alive\n    ") {
			t.Errorf("events:\n%s", events)
		}
	})
}
