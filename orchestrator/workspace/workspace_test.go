package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/preflight"
)

// bench is a directory of an agent and a state directory.
type bench struct {
	t     *testing.T
	agent *config.Agent
	state string
	hook  *Hook
}

func newBench(t *testing.T) *bench {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "work")
	home := filepath.Join(dir, ".heartbeat")
	b := &bench{
		t: t, state: filepath.Join(root, "state"),
		hook: &Hook{Command: "/opt/heartbeat hook", binary: "/opt/heartbeat"},
		agent: &config.Agent{
			Name: "triage", Dir: dir, Home: home, Inbox: filepath.Join(home, "inbox.jsonl"),
			Settings: config.SettingsProject, Mode: hook.Drain,
			Permissions: config.Permissions{Mode: "dontAsk", Allow: []string{"Read"}},
			// Nobody's real settings are looked at.
			Env: map[string]string{"HOME": filepath.Join(root, "nobody"), "CLAUDE_CONFIG_DIR": filepath.Join(root, "claude")},
		},
	}
	if err := os.Mkdir(b.state, 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.agent.Dir, name) }

func (b *bench) put(name, text string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bench) plan() *Plan {
	b.t.Helper()
	p, err := New(b.agent, b.state, b.hook)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *bench) apply() *Plan {
	b.t.Helper()
	p, err := Apply(b.agent, b.state, b.hook)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// changes are a plan's changes by the path below the agent's directory.
func (b *bench) changes(p *Plan) map[string]Change {
	got := map[string]Change{}
	for _, i := range p.Items {
		rel, err := filepath.Rel(b.agent.Dir, i.Path)
		if err != nil {
			b.t.Fatal(err)
		}
		got[rel] = i.Change
	}
	return got
}

func (b *bench) hooks(name string) *settings.Report {
	b.t.Helper()
	r, err := settings.Inspect([]byte(b.get(name)), b.hook.Command)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func TestApplyWiresAnEmptyDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.apply()
	if got := b.changes(p); got[".heartbeat"] != Created || got[".claude/settings.json"] != Created || len(got) != 2 {
		t.Errorf("changes: %v", got)
	}
	info, err := os.Stat(b.agent.Home)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf(".heartbeat: %v, %v; want mode 700", info, err)
	}
	if got := b.get(".heartbeat/.gitignore"); got != "*\n" {
		t.Errorf(".gitignore: %q", got)
	}
	r := b.hooks(".claude/settings.json")
	if len(r.Hooks) != len(client.Claude.Hooks.Installed) {
		t.Errorf("hooks: %+v", r.Hooks)
	}
	if !json.Valid([]byte(b.get(".claude/settings.json"))) {
		t.Error("the settings are no JSON")
	}
}

func TestApplyTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(".claude/settings.json", "{\n\t\"model\": \"opus\"\n}\n")
	b.apply()
	before := snapshot(t, filepath.Dir(b.agent.Dir))
	p := b.apply()
	if p.Changes() {
		t.Errorf("the second time: %v", b.changes(p))
	}
	if after := snapshot(t, filepath.Dir(b.agent.Dir)); after != before {
		t.Errorf("the second apply wrote something:\n%s\nbefore:\n%s", after, before)
	}
}

// snapshot lists files with their modification times, which a replaced file
// does not keep.
func snapshot(t *testing.T, dir string) string {
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
		b.WriteString(path + " " + info.ModTime().Format(time.RFC3339Nano) + " " + info.Mode().String() + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPlanWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.plan()
	if !p.Changes() {
		t.Error("nothing is planned for an empty directory")
	}
	if _, err := os.Stat(b.agent.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
	if left, err := os.ReadDir(b.state); err != nil || len(left) != 0 {
		t.Errorf("the state directory has %v, %v", left, err)
	}
}

func TestApplyKeepsTheOriginalAndItsMode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	original := "{\r\n  \"env\": {\"A\": \"1\"}\r\n}"
	b.put(".claude/settings.json", original)
	p := b.apply()
	if got := b.changes(p)[".claude/settings.json"]; got != Changed {
		t.Errorf("change: %s", got)
	}
	b.agent.Permissions.Allow = []string{"Read", "Edit"}
	b.apply()
	kept, err := filepath.Glob(filepath.Join(b.state, "applied", "*", "original.json"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("originals: %v, %v", kept, err)
	}
	data, err := os.ReadFile(kept[0])
	if err != nil || string(data) != original {
		t.Errorf("the original: %q, %v", data, err)
	}
	info, err := os.Stat(b.path(".claude/settings.json"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode: %v, %v; want 644 as before", info.Mode(), err)
	}
}

func TestApplyFollowsTheDeclaration(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.agent.Permissions.Allow = []string{"Read", "Bash(git *)"}
	b.apply()
	b.agent.Permissions.Allow = []string{"Read", "Edit"}
	b.agent.Mode, b.agent.IdleInterval = hook.Persist, 30*time.Minute
	b.hook = &Hook{Command: "/usr/bin/heartbeat-stop hook", binary: "/usr/bin/heartbeat-stop"}
	b.apply()
	r := b.hooks(".claude/settings.json")
	if strings.Join(r.Allow, " ") != "Read Edit "+sign {
		t.Errorf("allow: %v, want the declared rules and no older one", r.Allow)
	}
	if len(r.Hooks) != len(client.Claude.Hooks.Installed) {
		t.Errorf("%d hooks, want %d", len(r.Hooks), len(client.Claude.Hooks.Installed))
	}
	for _, h := range r.Hooks {
		if h.Command != b.hook.Command {
			t.Errorf("%s runs %q", h.Event, h.Command)
		}
		if want := b.agent.Policy().StopTimeout().Seconds(); h.Event == "Stop" && h.Timeout != want {
			t.Errorf("the Stop hook's time-out is %v, want %v", h.Timeout, want)
		}
	}
}

// sign are the rules that each agent gets.
var sign = strings.Join(settings.Grants(), " ")

func TestRulesOfThePersonStay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(".claude/settings.json", `{"permissions":{"allow":["Read","WebFetch"],"deny":["Bash(rm *)"]}}`)
	b.apply()
	b.agent.Permissions.Allow = nil
	b.apply()
	r := b.hooks(".claude/settings.json")
	if strings.Join(r.Allow, " ") != "Read WebFetch "+sign || r.Deny[0] != "Bash(rm *)" {
		t.Errorf("allow %v, deny %v", r.Allow, r.Deny)
	}
}

func TestChangingTheTargetTakesTheOldOneBack(t *testing.T) {
	t.Parallel()
	original := `{"model": "opus"}`
	for _, to := range []config.SettingsTarget{config.SettingsLocal, config.SettingsFlag} {
		t.Run(string(to), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put(".claude/settings.json", original)
			b.apply()
			b.agent.Settings = to
			p := b.apply()
			if got := b.get(".claude/settings.json"); got != original {
				t.Errorf("the old target: %q, want the original", got)
			}
			if (p.SettingsFile != "") != (to == config.SettingsFlag) {
				t.Errorf("settings file to pass: %q", p.SettingsFile)
			}
			if p := b.plan(); p.Changes() {
				t.Errorf("the second time: %v", b.changes(p))
			}
		})
	}
}

func TestAFileThatWasOursGoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply()
	b.agent.Settings = config.SettingsLocal
	p := b.apply()
	if got := b.changes(p)[".claude/settings.json"]; got != Removed {
		t.Errorf("change: %q", got)
	}
	if _, err := os.Stat(b.path(".claude/settings.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// The state directory may be lost: what is then found must not be taken for
// the original with our hooks in it.
func TestLostStateDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(".claude/settings.json", `{"model": "opus"}`)
	b.apply()
	if err := os.RemoveAll(filepath.Join(b.state, "applied")); err != nil {
		t.Fatal(err)
	}
	b.apply()
	b.agent.Settings = config.SettingsLocal
	b.apply()
	if r := b.hooks(".claude/settings.json"); len(r.Hooks) != 0 {
		t.Errorf("our hooks are still there: %+v", r.Hooks)
	}
}

func TestLinksOutOfTheDirectoryAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]func(b *bench, outside string) error{
		"settings file": func(b *bench, outside string) error {
			return errors.Join(os.MkdirAll(b.path(".claude"), 0o755), os.Symlink(filepath.Join(outside, "victim"), b.path(".claude/settings.json")))
		},
		"settings folder": func(b *bench, outside string) error {
			return errors.Join(os.MkdirAll(b.agent.Dir, 0o755), os.Symlink(outside, b.path(".claude")))
		},
		"our folder": func(b *bench, outside string) error {
			return errors.Join(os.MkdirAll(b.agent.Dir, 0o755), os.Symlink(outside, b.path(".heartbeat")))
		},
	}
	for name, plant := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, outside := newBench(t), t.TempDir()
			victim := filepath.Join(outside, "victim")
			if err := errors.Join(os.WriteFile(victim, []byte("{}"), 0o600), plant(b, outside)); err != nil {
				t.Fatal(err)
			}
			p, err := New(b.agent, b.state, b.hook)
			if err == nil {
				err = p.run()
			}
			var link *linkError
			if !errors.As(err, &link) || link.Hint() == "" {
				t.Errorf("got %v, want a refusal with a hint", err)
			}
			data, readErr := os.ReadFile(victim)
			names, dirErr := os.ReadDir(outside)
			if string(data) != "{}" || readErr != nil || len(names) != 1 || dirErr != nil {
				t.Errorf("outside was touched: %q %v %v", data, readErr, names)
			}
		})
	}
}

func TestBrokenSettingsAreNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(".claude/settings.json", "{\n  // mine\n}")
	_, err := New(b.agent, b.state, b.hook)
	if err == nil || !strings.Contains(err.Error(), `cannot wire agent "triage"`) || !strings.Contains(err.Error(), "settings.json") {
		t.Errorf("got %v", err)
	}
	if got := b.get(".claude/settings.json"); got != "{\n  // mine\n}" {
		t.Errorf("the file was touched: %q", got)
	}
}

func TestAFileChangedMeanwhileIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put(".claude/settings.json", `{"model": "opus"}`)
	p := b.plan()
	b.put(".claude/settings.json", `{"model": "sonnet"}`)
	if err := p.run(); err == nil {
		t.Error("a change by somebody else was overwritten")
	}
	if got := b.get(".claude/settings.json"); got != `{"model": "sonnet"}` {
		t.Errorf("the file: %q", got)
	}
	b.apply() // planning again goes on
	if r := b.hooks(".claude/settings.json"); len(r.Hooks) != len(client.Claude.Hooks.Installed) {
		t.Errorf("%d hooks after planning again", len(r.Hooks))
	}
}

// TestTwoFleetsApplyAtOnce: an apply failed when the scheduler of another fleet, which was
// the same file under its name of before, wired the directory for a session.
func TestTwoFleetsApplyAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply()
	var fleets sync.WaitGroup
	for _, name := range []string{"one", "two", "three"} {
		state := filepath.Join(filepath.Dir(b.state), name)
		if err := os.Mkdir(state, 0o700); err != nil {
			t.Fatal(err)
		}
		fleets.Go(func() {
			for n := range 20 {
				a := *b.agent
				a.Permissions.Allow = []string{fmt.Sprintf("Bash(%s %d *)", name, n)}
				if _, err := Apply(&a, state, b.hook); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	fleets.Wait()
	b.apply()
	r := b.hooks(".claude/settings.json")
	if got := strings.Join(r.Allow, " "); got != "Read "+sign || len(r.Hooks) != len(client.Claude.Hooks.Installed) {
		t.Errorf("what the last one alone applies: %d hooks, allowed %s", len(r.Hooks), got)
	}
}

// TestWhatAnotherFleetWritesMeanwhileStaysOnRecord, also where this fleet finds nothing to
// write: what the other had been allowed stayed in the file for good.
func TestWhatAnotherFleetWritesMeanwhileStaysOnRecord(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} {
		t.Run(fmt.Sprint("this fleet leaves the file: ", leaves), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			other := *b
			other.state = filepath.Join(filepath.Dir(b.state), "other")
			if err := os.Mkdir(other.state, 0o700); err != nil {
				t.Fatal(err)
			}
			other.apply()
			this, more := *b.agent, *b.agent
			if leaves {
				this.Settings = config.SettingsLocal
				if err := os.Remove(b.path(".claude/settings.json")); err != nil {
					t.Fatal(err)
				}
			}
			p, err := New(&this, b.state, b.hook)
			if err != nil {
				t.Fatal(err)
			}
			more.Permissions.Allow = []string{"Bash(make *)"}
			other.agent = &more
			other.apply()
			err = p.run()
			if _, changed := errors.AsType[*durable.ChangedError](err); !changed {
				t.Errorf("what was planned for the file of before: %v", err)
			}
			b.apply()
			if got := strings.Join(b.hooks(".claude/settings.json").Allow, " "); strings.Contains(got, "make") {
				t.Errorf("this fleet alone allows %s", got)
			}
		})
	}
}

func TestForeignHooksAndDisabledHooks(t *testing.T) {
	t.Parallel()
	stop := `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"lint"}]}]}}`
	tests := []struct {
		name, file, text string
		foreign, blocked bool
	}{
		{"nothing", ".claude/settings.json", `{}`, false, false},
		{"project", ".claude/settings.json", stop, true, false},
		{"local", ".claude/settings.local.json", stop, true, false},
		{"user", "../claude/settings.json", stop, true, false},
		{"user file that cannot be read", "../claude/settings.json", `{`, true, true},
		{"disabled", ".claude/settings.local.json", `{"disableAllHooks": true}`, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put(tt.file, tt.text)
			p := b.apply()
			if _, err := Blocked(b.agent, b.state, b.hook, ""); p.Others.Any() != tt.foreign || (err != nil) != tt.blocked {
				t.Errorf("foreign %v, blocked %v; want %v, %v", p.Others, err, tt.foreign, tt.blocked)
			}
		})
	}
}

func TestPreparer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	self := filepath.Join(t.TempDir(), "heartbeat")
	if err := os.WriteFile(self, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	preparer, err := NewPreparer(b.state, self, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		p, err := preparer.Prepare(b.agent)
		if err != nil || p.Changed != want {
			t.Errorf("call %d: %+v, %v; want changed %v", i, p, err, want)
		}
	}
	b.put(".claude/settings.local.json", `{"disableAllHooks": true}`)
	if _, err := preparer.Prepare(b.agent); err == nil {
		t.Error("a session would start in which no hook runs")
	}
}

// TestEachSessionIsShutBesideItsPrompt: wherever our hooks are, the client is passed what
// closes its tools beside the prompt, but for those that the agent's rules name; the
// directory's settings are not changed for it.
func TestEachSessionIsShutBesideItsPrompt(t *testing.T) {
	t.Parallel()
	for _, target := range []config.SettingsTarget{config.SettingsProject, config.SettingsLocal, config.SettingsFlag, config.SettingsOnly} {
		for _, allow := range [][]string{nil, {"CronCreate"}} {
			b := newBench(t)
			b.agent.Settings, b.agent.Permissions.Allow = target, allow
			self := filepath.Join(t.TempDir(), "heartbeat")
			if err := os.WriteFile(self, []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			preparer, err := NewPreparer(b.state, self, "")
			if err != nil {
				t.Fatal(err)
			}
			p, err := preparer.Prepare(b.agent)
			if err != nil {
				t.Fatal(err)
			}
			var passed struct {
				Permissions struct{ Deny []string }
				Env         map[string]string
			}
			if err := json.Unmarshal(p.Settings, &passed); err != nil {
				t.Fatal(err)
			}
			for _, tool := range client.Claude.Beside {
				if slices.Contains(passed.Permissions.Deny, tool.Tool) == slices.Contains(allow, tool.Tool) {
					t.Errorf("%s, allow %q: %s: %q", target, allow, tool.Tool, passed.Permissions.Deny)
				}
			}
			if (passed.Env["CLAUDE_CODE_DISABLE_CRON"] == "1") != (allow == nil) {
				t.Errorf("%s, allow %q: %q", target, allow, passed.Env)
			}
			if theirs, err := os.ReadFile(filepath.Join(b.agent.Dir, ".claude", "settings.json")); strings.Contains(string(theirs), "EnterPlanMode") {
				t.Errorf("%s: %s, %v", target, theirs, err)
			}
		}
	}
}

// TestNoSessionStartsForAPromptThatItCannotBeGiven: each was paid for, and only hook.log
// said why it got nothing. It starts once the file can be written.
func TestNoSessionStartsForAPromptThatItCannotBeGiven(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	self := filepath.Join(t.TempDir(), "heartbeat")
	if err := os.WriteFile(self, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	preparer, err := NewPreparer(b.state, self, "")
	if err == nil {
		_, err = preparer.Prepare(b.agent)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.put(".heartbeat/inbox.jsonl", strings.Repeat("x", 200<<10)+"\n")
	b.put(".heartbeat/.prompt-try/in-the-way", "")
	_, err = preparer.Prepare(b.agent)
	blocked, is := errors.AsType[*preflight.BlockedError](err)
	if !is || blocked.Obstacles[0].Code != preflight.PromptFile || !strings.Contains(blocked.Hint(), b.agent.Home) {
		t.Errorf("a session would start: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(b.agent.Home, ".prompt-try")); err != nil {
		t.Fatal(err)
	}
	if _, err := preparer.Prepare(b.agent); err != nil {
		t.Errorf("none starts: %v", err)
	}
}

// TestARevokedPermissionGoesAfterApplysThatFailed: the record said what was
// wanted, not what stood in the file, so that the next apply did not find it.
func TestARevokedPermissionGoesAfterApplysThatFailed(t *testing.T) {
	t.Parallel()
	for _, fails := range []int{1, 2, 5} {
		b := newBench(t)
		b.put(".claude/settings.json", `{"permissions":{"allow":["WebFetch"]}}`)
		b.agent.Permissions.Allow = []string{"Read", "Edit", "Glob"}
		b.apply()
		for n := range fails {
			b.agent.Permissions.Allow = []string{"Read", "Bash(" + strings.Repeat("x", n) + " *)"}
			p := b.plan()
			before := b.get(".claude/settings.json")
			b.put(".claude/settings.json", before+"\n") // meanwhile
			if err := p.run(); err == nil {
				t.Fatal("it was written although somebody else did, too")
			}
		}
		b.agent.Permissions.Allow = []string{"Read"}
		b.apply()
		if got := strings.Join(b.hooks(".claude/settings.json").Allow, " "); got != "WebFetch Read "+sign {
			t.Errorf("after %d that failed: allowed %s", fails, got)
		}
		if p := b.plan(); p.Changes() || len(p.steps) > 0 {
			t.Errorf("after %d that failed: %d steps are left", fails, len(p.steps))
		}
		b.unwire()
		if got := strings.TrimSpace(b.get(".claude/settings.json")); got != `{"permissions":{"allow":["WebFetch"]}}` {
			t.Errorf("after %d that failed: the original is %s", fails, got)
		}
	}
}
