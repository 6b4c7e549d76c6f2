package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heartbeat/config"
	"heartbeat/hook/flock"
)

// unwire takes back what was applied for the names.
func (b *bench) unwire(names ...string) []*Plan {
	b.t.Helper()
	plans, err := Unwire(&config.Fleet{Agents: []*config.Agent{b.agent}}, b.state, nil, names...)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, p := range plans {
		if err := p.Unapply(); err != nil {
			b.t.Fatal(err)
		}
	}
	return plans
}

// contents lists files with their modes and bytes.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(path + " " + info.Mode().String() + "\n")
		if d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		b.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestUnwireGivesTheOriginalBack for every file of the corpus, as project and
// as local settings, also after the declaration has changed in between.
func TestUnwireGivesTheOriginalBack(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../hook/settings/testdata/*.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file) == "moved.json" {
			continue // has entries of ours already: see TestLostStateDirectory
		}
		for target, name := range map[config.SettingsTarget]string{
			config.SettingsProject: ".claude/settings.json", config.SettingsLocal: ".claude/settings.local.json",
		} {
			t.Run(filepath.Base(file)+" "+string(target), func(t *testing.T) {
				t.Parallel()
				original, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				b := newBench(t)
				b.agent.Settings = target
				b.put(name, string(original))
				before := contents(t, b.agent.Dir)
				b.apply()
				if b.get(name) == string(original) {
					t.Fatal("applying changed nothing")
				}
				b.agent.Permissions.Allow = []string{"Edit", "Bash(make *)"}
				b.apply()
				b.unwire()
				if diff := cmp.Diff(before, contents(t, b.agent.Dir)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestUnwireRemovesWhatApplyingMade(t *testing.T) {
	t.Parallel()
	for _, target := range []config.SettingsTarget{config.SettingsProject, config.SettingsLocal, config.SettingsFlag} {
		t.Run(string(target), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put("README", "mine")
			before := contents(t, b.agent.Dir)
			b.apply()
			b.agent.Settings = target
			b.apply()
			b.unwire("triage")
			if diff := cmp.Diff(before, contents(t, b.agent.Dir)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, left := range []string{"applied", "settings"} {
				entries, err := os.ReadDir(filepath.Join(b.state, left))
				if err != nil && !errors.Is(err, fs.ErrNotExist) || len(entries) > 0 {
					t.Errorf("in the state directory: %s: %v, %v", left, entries, err)
				}
			}
			if plans := b.unwire(); len(plans) != 1 || len(plans[0].Items) != 0 {
				t.Errorf("unwiring again: %+v", plans)
			}
		})
	}
}

func TestUnwireKeepsTheQueueAndWhatThePersonAdded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply()
	b.put(".heartbeat/inbox.jsonl", "a prompt\n")
	b.put(".claude/commands/x.md", "mine")
	settings := b.get(".claude/settings.json")
	b.put(".claude/settings.json", strings.Replace(settings, "{", `{"model": "opus",`, 1))
	b.unwire()
	if got := b.get(".claude/settings.json"); !strings.Contains(got, `"model": "opus"`) || strings.Contains(got, "heartbeat") {
		t.Errorf("settings: %s", got)
	}
	if b.get(".heartbeat/inbox.jsonl") != "a prompt\n" || b.get(".claude/commands/x.md") != "mine" {
		t.Error("something of the person's is gone")
	}
}

func TestDroppedAgentsAreUnwired(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(".claude/settings.json", `{"model":"opus"}`)
	b.apply()
	other := *b.agent
	other.Name, other.Dir = "other", filepath.Join(filepath.Dir(b.agent.Dir), "other")
	other.Home = filepath.Join(other.Dir, ".heartbeat")
	other.Inbox = filepath.Join(other.Home, "inbox.jsonl")
	other.Settings = config.SettingsFlag
	if _, err := Apply(&other, b.state, b.hook); err != nil {
		t.Fatal(err)
	}
	if plans, err := Dropped(&config.Fleet{Agents: []*config.Agent{b.agent, &other}}, b.state); err != nil || len(plans) != 0 {
		t.Fatalf("nothing was dropped: %v, %v", plans, err)
	}
	renamed := *b.agent
	renamed.Name = "renamed"
	if plans, err := Dropped(&config.Fleet{Agents: []*config.Agent{&renamed, &other}}, b.state); err != nil || len(plans) != 0 {
		t.Fatalf("a new name is no other directory: %v, %v", plans, err)
	}
	plans, err := Dropped(&config.Fleet{Agents: nil}, b.state)
	if err != nil || len(plans) != 2 {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
	if got := b.get(".claude/settings.json"); got == `{"model":"opus"}` {
		t.Error("planning has changed the file")
	}
	unlock, err := flock.TryLock(b.agent.Dir)
	if err != nil {
		t.Fatal(err)
	}
	running, ok := errors.AsType[*RunningError](plans[0].Unapply())
	if !ok || running.Agent != "triage" {
		t.Errorf("while a scheduler runs: %v", running)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		if err := p.Unapply(); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.get(".claude/settings.json"); got != `{"model":"opus"}` {
		t.Errorf("settings: %s", got)
	}
	if _, err := os.Stat(filepath.Join(b.state, "settings/other.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the generated file: %v", err)
	}
}

func TestUnwireOfADirectoryThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply()
	if err := os.RemoveAll(b.agent.Dir); err != nil {
		t.Fatal(err)
	}
	plans, err := Dropped(&config.Fleet{Agents: nil}, b.state)
	if err != nil || len(plans) != 1 || plans[0].Unapply() != nil {
		t.Fatalf("%v, %v", plans, err)
	}
	if plans, err := Dropped(&config.Fleet{Agents: nil}, b.state); err != nil || len(plans) != 0 {
		t.Errorf("it is remembered: %v, %v", plans, err)
	}
	if _, err := os.Stat(b.agent.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
}

func TestUnwireOfNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := Unwire(&config.Fleet{Agents: []*config.Agent{b.agent}}, b.state, nil, "nobody")
	if unknown, ok := errors.AsType[*UnknownError](err); !ok || unknown.Agent != "nobody" {
		t.Errorf("%v", err)
	}
}

// TestParallelApplies want the same, and one of two things, at the same time:
// each ends well, and the file is one of the two results.
func TestParallelApplies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(".claude/settings.json", "{\n\t\"model\": \"opus\"\n}\n")
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			a := *b.agent
			a.Permissions.Allow = [][]string{{"Read"}, {"Edit", "Bash(make *)"}}[i%2]
			if _, err := Apply(&a, b.state, b.hook); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	r := b.hooks(".claude/settings.json")
	if got := strings.Join(r.Allow, " "); got != "Read "+sign && got != "Edit Bash(make *) "+sign {
		t.Errorf("rules of both: %s", got)
	}
	b.unwire()
	if got := b.get(".claude/settings.json"); got != "{\n\t\"model\": \"opus\"\n}\n" {
		t.Errorf("the original is %q", got)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.agent.Permissions.Allow = nil
	b.put(".claude/settings.json", "{\n  \"model\": \"opus\"\n}\n")
	got := strings.ReplaceAll(b.plan().Diff(), b.agent.Dir, "DIR")
	for _, want := range []string{
		"--- /dev/null\n+++ DIR/.heartbeat/.gitignore\n@@ -0,0 +1 @@\n+*\n",
		"--- DIR/.claude/settings.json\n+++ DIR/.claude/settings.json\n@@ -1,3 +1,",
		"-  \"model\": \"opus\"\n+  \"model\": \"opus\",\n+  \"hooks\": {\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	b.apply()
	if got := b.plan().Diff(); got != "" {
		t.Errorf("after applying: %s", got)
	}
	plans, err := Unwire(&config.Fleet{Agents: nil}, b.state, nil)
	if err != nil || len(plans) != 1 {
		t.Fatal(plans, err)
	}
	if got := plans[0].Diff(); !strings.Contains(got, "-  \"model\": \"opus\",\n") || !strings.Contains(got, "+++ /dev/null") {
		t.Errorf("of unwiring: %s", got)
	}
}

// TestTheOriginalIsFoundAfterAMove: records go by paths, and a fleet that was
// moved with its state gets the originals back all the same.
func TestTheOriginalIsFoundAfterAMove(t *testing.T) {
	t.Parallel()
	for _, between := range []string{"", "apply", "apply and drop", "another directory"} {
		t.Run(between, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			const original = "{\n\t\"permissions\": {\"allow\": [\"Read\", \"Grep\"]}\n}\n"
			b.put(".claude/settings.json", original)
			b.apply()
			b.agent.Permissions.Allow = []string{"Edit"}
			to := b.agent.Dir + "-moved"
			if err := os.Rename(b.agent.Dir, to); err != nil {
				t.Fatal(err)
			}
			b.agent.Dir, b.agent.Home = to, filepath.Join(to, ".heartbeat")
			b.agent.Inbox = filepath.Join(b.agent.Home, "inbox.jsonl")
			want := original
			switch between {
			case "apply", "apply and drop":
				b.apply()
			case "another directory": // its settings were never ours
				want = `{"model":"opus"}`
				b.put(".claude/settings.json", want)
				b.apply()
			}
			if between == "apply and drop" {
				plans, err := Dropped(&config.Fleet{Agents: []*config.Agent{b.agent}}, b.state)
				if err != nil || len(plans) != 0 { // apply has taken the record in
					t.Fatal(plans, err)
				}
			}
			for _, p := range b.unwire() {
				if len(p.Notes) > 0 {
					t.Errorf("notes: %q", p.Notes)
				}
			}
			if got := b.get(".claude/settings.json"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if left, err := filepath.Glob(filepath.Join(b.state, "applied", "*")); err != nil || len(left) > 0 {
				t.Errorf("records are left: %q, %v", left, err)
			}
		})
	}
}
