package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSettingsTargets: wherever our hooks are written to, the client runs
// them, and nowhere else is anything written.
func TestSettingsTargets(t *testing.T) {
	t.Parallel()
	for target, file := range map[string]string{
		"project": ".claude/settings.json", "local": ".claude/settings.local.json", "flag": "",
	} {
		t.Run(target, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, []string{"settings: " + target})
				f.teach(behaviour{match: "use a tool", bash: "echo allowed > out.txt", reply: "done"})
				f.send("use a tool") // the rule that allows it comes by the same file
				f.send("second")
				f.must("", "run", "--once")
				f.gone()
				if done := f.outbox(); len(done) != 2 {
					t.Errorf("%d entries acknowledged, want 2\n%s", len(done), f.hookLog())
				}
				if _, err := os.Stat(filepath.Join(f.Work, "out.txt")); err != nil {
					t.Error(err)
				}
				for _, other := range []string{".claude/settings.json", ".claude/settings.local.json"} {
					_, err := os.Stat(filepath.Join(f.Work, other))
					if there := err == nil; there != (other == file) {
						t.Errorf("%s: %v", other, err)
					}
				}
			})
		})
	}
}

// TestSettingsOfTheCommand: what a person passes to the client holds beside
// ours, also where ours come by the same flag, and as it is at each start.
func TestSettingsOfTheCommand(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"project", "flag"} {
		t.Run(target, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, []string{"settings: " + target})
				yaml, err := os.ReadFile(f.file)
				if err != nil {
					t.Fatal(err)
				}
				f.write(f.file, strings.Replace(string(yaml), "]\n", `, --settings, "`+filepath.Join(f.Dir, "mine.json")+`"]`+"\n", 1))
				mine := func(name string) {
					f.WriteJSON(filepath.Join(f.Dir, "mine.json"), map[string]any{
						"env":   map[string]any{"MADE_UP": name},
						"hooks": map[string]any{"SessionStart": []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": "touch hook-of-" + name}}}}},
					})
				}
				f.teach(behaviour{match: "use a tool", bash: "echo $MADE_UP >> env.txt", reply: "done"})
				for _, name := range []string{"first", "second"} {
					mine(name)
					f.send("use a tool")
					f.must("", "run", "--once")
					f.gone()
					if _, err := os.Stat(filepath.Join(f.Work, "hook-of-"+name)); err != nil {
						t.Error(err)
					}
				}
				if got, err := os.ReadFile(filepath.Join(f.Work, "env.txt")); string(got) != "first\nsecond\n" {
					t.Errorf("the tool saw %q, %v", got, err)
				}
				if done := f.outbox(); len(done) != 2 {
					t.Errorf("%d entries acknowledged, want 2\n%s", len(done), f.hookLog())
				}
			})
		})
	}
}

// TestApplyTrustAnswersTheDialog: with it a session starts in a folder that
// nobody has trusted, also in one with a repository of its own; the client goes
// on with its file as if it had written the answer itself.
func TestApplyTrustAnswersTheDialog(t *testing.T) {
	t.Parallel()
	for _, repository := range []bool{false, true} {
		t.Run(map[bool]string{false: "folder", true: "repository"}[repository], func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, realClient(t), []string{"max-restarts: 0"})
			f.teach()
			f.Trust() // nothing
			if repository {
				if out, err := exec.Command("git", "init", "-q", f.Work).CombinedOutput(); err != nil {
					t.Skipf("git: %v: %s", err, out)
				}
			}
			before := f.clientFile()
			f.must("", "apply", "--trust")
			lock := filepath.Join(f.Home, ".claude.json.lock")
			if _, err := os.Lstat(lock); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a lock is left: %v", err)
			}
			after := f.clientFile()
			projects, _ := after["projects"].(map[string]any)
			if mine, _ := projects[f.Work].(map[string]any); mine["hasTrustDialogAccepted"] != true || len(projects) != 1 {
				t.Fatalf("projects: %v", projects)
			}
			for key := range before {
				if key != "projects" && !equalJSON(before[key], after[key]) {
					t.Errorf("%s has changed", key)
				}
			}
			if err := os.Mkdir(lock, 0o700); err != nil { // as a client leaves it that is killed while it writes
				t.Fatal(err)
			}
			f.send("hello")
			f.must("", "run", "--once")
			if done := f.outbox(); len(done) != 1 {
				t.Errorf("%d entries acknowledged, want 1", len(done))
			}
			projects, _ = f.clientFile()["projects"].(map[string]any)
			if mine, _ := projects[f.Work].(map[string]any); mine["hasTrustDialogAccepted"] != true {
				t.Errorf("the client has taken it back: %v", projects)
			}
		})
	}
}

func equalJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// clientFile is the client's own file.
func (f *fleet) clientFile() map[string]any {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.Home, ".claude.json"))
	if err != nil {
		f.t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		f.t.Fatal(err)
	}
	return v
}

// TestContextResume: each session goes on with the conversation of the one
// before; when the client has lost it, a new one begins and no entry is lost.
func TestContextResume(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"context: resume"})
		f.teach()
		var ids []string
		once := func(text string) {
			t.Helper()
			f.send(text)
			f.must("", "run", "--once")
			f.gone()
			ids = append(ids, f.conversation())
		}
		once("the first")
		once("the second")
		if ids[0] == "" || ids[0] != ids[1] {
			t.Fatalf("conversations %q", ids)
		}
		if c.real {
			requests := f.API.Requests()
			last := requests[len(requests)-1]
			if last.Copies("the first") == 0 {
				t.Error("the second session does not know the first one's prompt")
			}
		}
		// The client forgets: its transcripts are gone.
		lost := 0
		err := filepath.WalkDir(f.Home, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasPrefix(d.Name(), ids[0]) {
				lost++
				return os.Remove(path)
			}
			return err
		})
		if err != nil || lost == 0 {
			t.Fatalf("%d transcripts removed: %v", lost, err)
		}
		once("the third")
		if ids[2] == ids[0] || ids[2] == "" {
			t.Errorf("conversations %q", ids)
		}
		once("the fourth")
		if ids[3] != ids[2] {
			t.Errorf("conversations %q", ids)
		}
		var got []string
		for _, p := range f.prompts() {
			first, _, _ := strings.Cut(p, "\n") // the third is marked as offered before
			got = append(got, first)
		}
		if !slices.Equal(got, []string{"the first", "the second", "the third", "the fourth"}) {
			t.Errorf("prompts %q", got)
		}
		if done := f.outbox(); len(done) != 4 {
			t.Errorf("%d entries acknowledged, want 4", len(done))
		}
	})
}
