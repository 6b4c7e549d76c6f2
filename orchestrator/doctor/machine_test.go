package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/lastrun"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/resources"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/state"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/volume"
	"heartbeat/ptyrun"
	"heartbeat/sources"
)

func self(t *testing.T) hook.Process {
	t.Helper()
	start, err := ptyrun.StartTimeOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return hook.Process{PID: os.Getpid(), Start: start}
}

// made is a fixture of facts about the machine, which no test can bring about.
type made struct {
	code         string
	severity     Severity
	broken, fine func(f *Facts)
}

func machineFixtures() []made {
	volume := func(change func(v *Volume)) func(f *Facts) {
		return func(f *Facts) { change(&f.Agents[0].Volume) }
	}
	cron := func(zone *time.Location) func(f *Facts) {
		return func(f *Facts) {
			s, err := sources.ParseSchedule("0 9 * * *", zone)
			if err != nil {
				panic(err)
			}
			f.LocalZone = false
			f.Agents[0].Config.Triggers = []config.Trigger{{Cron: &config.CronTrigger{Schedule: s}}}
		}
	}
	inotify := func(in Inotify) func(f *Facts) { return func(f *Facts) { in.Known = true; f.Inotify = in } }
	none := func(*Facts) {}
	ended := func(p lastrun.Past) func(f *Facts) { return func(f *Facts) { f.LastRun = &p } }
	warned := func(key string) func(f *Facts) {
		return func(f *Facts) {
			f.FileWarnings = []config.Problem{{File: "heartbeat.yaml", Line: 7, Column: 22, Key: key, Message: "./nope.sh is not there"}}
		}
	}
	terminals := func(t Terminals) func(f *Facts) { return func(f *Facts) { f.Terminals = t } }
	return []made{
		{"scheduler-ended", Error, ended(lastrun.Past{How: lastrun.Killed}), ended(lastrun.Past{How: lastrun.Stopped, Why: lastrun.BySignal})},
		{"scheduler-ended", Error, ended(lastrun.Past{How: lastrun.Failed}), none},
		{"scheduler-ended", Warning, ended(lastrun.Past{How: lastrun.Killed, Once: true}), ended(lastrun.Past{How: lastrun.Finished, Once: true})},
		{"other-version", Warning, func(f *Facts) { f.Scheduler = &Scheduler{OtherProgram: "the scheduler is heartbeat v1"} }, func(f *Facts) { f.Scheduler = &Scheduler{} }},
		{"file-warning", Warning, warned("agents.a.trigger.poll[0]"), warned("agents.another.trigger.poll[0]")},
		{"file-warning", Warning, warned("defaults.command"), none},
		{"no-terminal", Error, terminals(Terminals{None: ptyrun.ErrPTY}), terminals(Terminals{Used: 3, Max: 8, Need: 5})},
		{"no-terminal", Error, terminals(Terminals{None: ptyrun.ErrPTY, Used: 8, Max: 8}), none},
		{"no-terminal", Warning, terminals(Terminals{Used: 4, Max: 8, Need: 5}), none},
		{"network-file-system", Error, volume(func(v *Volume) { v.Network = "NFS" }), none},
		{"network-file-system", Warning, volume(func(v *Volume) { v.Fuse = true }), none},
		{"network-file-system", Error, func(f *Facts) { f.State.Network = "SMB" }, none},
		{"network-file-system", Error, func(f *Facts) { f.State.Fuse = true }, none}, // no run begins there
		{"network-file-system", Error, func(f *Facts) { f.State.Network, f.Agents[0].Volume = "NFS", f.State }, none},
		{"not-writable", Error, volume(func(v *Volume) { v.ReadOnly = true }), none},
		{"not-writable", Error, volume(func(v *Volume) { v.Unwritable = "permission denied" }), none},
		{"disk-space", Error, volume(func(v *Volume) { v.Free = noSpace - 1 }), volume(func(v *Volume) { v.Free = littleSpace })},
		{"disk-space", Warning, volume(func(v *Volume) { v.Free = littleSpace - 1 }), volume(func(v *Volume) { v.Known, v.Free = false, 0 })},
		{"disk-inodes", Error, volume(func(v *Volume) { v.FreeFiles = 10 }), volume(func(v *Volume) { v.FreeFiles, v.Files = 0, 0 })},
		{"disk-inodes", Warning, volume(func(v *Volume) { v.FreeFiles = 5000 }), volume(func(v *Volume) { v.FreeFiles, v.Files = 900, 1000 })},
		{
			"clock", Error, func(f *Facts) { f.Now = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC) },
			func(f *Facts) { f.Now = f.Self.Built },
		},
		{
			"clock", Error, func(f *Facts) { f.Now = f.Self.Built.Add(-48 * time.Hour) },
			func(f *Facts) { f.Now, f.Self.Built = firstYear, time.Time{} },
		},
		{
			"not-listening", Error, func(f *Facts) { f.Doors = []status.Door{{Address: ":1", Problem: "cannot listen on :1: it is in use"}} },
			func(f *Facts) { f.Doors = []status.Door{{Address: ":1"}} },
		},
		{
			"secret-unreadable", Error, func(f *Facts) {
				f.Agents[0].SecretProblems = []SecretProblem{{Trigger: "t", File: "/x/it's", Err: errors.New("cannot read its secret")}}
			}, none,
		},
		{"watches-nothing", Warning, func(f *Facts) { f.Agents[0].WatchesNothing = map[string]string{"t": "incomming"} }, none},
		{"store-fails", Error, func(f *Facts) { f.Store = []store.Trouble{{Kind: store.Damaged, Text: "x", Do: "y"}} }, none},
		{"store-fails", Warning, func(f *Facts) { f.Store = []store.Trouble{{Kind: store.Long, Text: "x", Do: "y"}} }, none},
		{"store-fails", Warning, func(f *Facts) { f.Store = []store.Trouble{{Kind: store.Cloned, Text: "x", Do: "y"}} }, none},
		{"no-answer", Error, func(f *Facts) { f.Mute = &status.Mute{PID: 7, State: "T"} }, none},
		{"target-fails", Warning, func(f *Facts) { f.Untold = []status.Untold{{Target: "phone", Why: "it answers 500"}} }, none},
		{"ping-fails", Warning, func(f *Facts) { f.Unpinged = &status.Unpinged{Why: "it answers 500"} }, none},
		{"old-queue", Warning, func(f *Facts) { f.OldQueues = []status.OldQueue{{Agent: "a", Inbox: "/x/inbox.jsonl", Prompts: 1}} }, none},
		{"login-ends", Warning, func(f *Facts) { f.Logins = []preflight.Ending{{File: "/x", At: f.Now, Fix: "run claude"}} }, none},
		{"not-watched", Info, func(f *Facts) { f.Unwatched = true }, none},
		{"time-zone", Warning, func(f *Facts) { f.TZ, f.BadTZ = "Europe/Rom", "unknown" }, func(f *Facts) { f.TZ = "Europe/Rome" }},
		{"time-zone", Warning, cron(time.Local), cron(time.UTC)},
		{
			"inotify-limit", Warning, inotify(Inotify{MaxInstances: 128, UsedInstances: 120, NeedInstances: 9, MaxWatches: 9}),
			inotify(Inotify{MaxInstances: 128, UsedInstances: 120, NeedInstances: 8, MaxWatches: 9}),
		},
		{
			"inotify-limit", Warning, inotify(Inotify{MaxInstances: 1, MaxWatches: 100, UsedWatches: 1, NeedWatches: 100}),
			inotify(Inotify{MaxInstances: 0, UsedInstances: 5, MaxWatches: 0, UsedWatches: 5}),
		},
		{
			"no-limits", Warning, func(f *Facts) {
				f.Limits = []resources.Lack{{Why: &ptyrun.NoLimitsError{Why: "x", Cure: "y"}, Agents: []string{"a"}}}
			}, none,
		},
		{
			"no-limits", Error, func(f *Facts) {
				f.Limits = []resources.Lack{{Why: &ptyrun.NoLimitsError{Why: "x", Cure: "y"}, Required: []string{"a"}}}
			}, none,
		},
		{
			"ends-scheduler", Error, func(f *Facts) {
				f.Attempts = []attempts.Note{{Work: attempts.Work{Kind: attempts.Check, Agent: "a"}, Times: 5, Last: f.Now}}
			}, func(f *Facts) { // it runs now, and has killed none
				f.Attempts = []attempts.Note{{Work: attempts.Work{Kind: attempts.Poll, Agent: "a"}, Times: 1, Last: f.Now}}
				f.Scheduler = &Scheduler{}
			},
		},
		{
			"leftover-session", Warning, func(f *Facts) { f.Leftovers = []Leftover{{Processes: []int{7}}} }, none,
		},
		{"nested-session", Info, func(f *Facts) { f.Markers = []string{"CLAUDECODE"} }, none},
		{
			"nested-session", Warning, func(f *Facts) { f.Agents[0].Config.Env = map[string]string{"CLAUDECODE": "1"} },
			func(f *Facts) { f.Agents[0].Config.Env = map[string]string{"CLAUDE_EFFORT": "high"} },
		},
		{"stale-files", Info, func(f *Facts) { f.StateTemps = []string{"/x/.a.tmp-0123456789abcdef"} }, none},
		{
			"state-left-behind", Warning,
			func(f *Facts) { f.Left = []owner.Left{{Agents: []string{"a"}}} }, none,
		},
		{"other-store", Warning, func(f *Facts) { f.Elsewhere = []owner.Elsewhere{{Agents: []string{"a"}}} }, none},
		{"copied-directory", Warning, func(f *Facts) { f.Elsewhere = []owner.Elsewhere{{Agents: []string{"a"}, Copied: "b"}} }, none},
		{
			"permission-denied", Error,
			func(f *Facts) { f.Agents[0].Denied = &Denied{Path: "/agents/a/.heartbeat", Mode: "dr-x------"} }, none,
		},
		{"name-taken", Error, func(f *Facts) { f.StateProblem = &owner.TakenError{Name: "a", Other: "/x"} }, none},
		{"state-directory", Error, func(f *Facts) { f.StateProblem = errors.New("cannot make directory") }, none},
		{"state-directory", Error, func(f *Facts) { f.StateDenied = &Denied{Path: "/state/owner.json", Own: true} }, none},
		{"broken-configuration", Error, func(f *Facts) { f.Broken = errors.New("line 7") }, none},
	}
}

func healthyFacts() *Facts {
	roomy := Volume{Path: "/agents/a", Known: true, Volume: volume.Volume{Free: 1 << 40, Total: 1 << 41, Files: 1 << 20, FreeFiles: 1 << 19}}
	stateVolume := roomy
	stateVolume.Path, stateVolume.Total = "/state", 1<<42
	return &Facts{
		Now: firstYear.AddDate(1, 0, 0), Self: Program{Built: firstYear.AddDate(0, 6, 0)}, LocalZone: true, State: stateVolume,
		Agents: []*Agent{{Config: &config.Agent{Name: "a", Dir: "/agents/a", Permissions: config.Permissions{Mode: "dontAsk"}}, Volume: roomy}},
	}
}

func TestMachineFindings(t *testing.T) {
	t.Parallel()
	if found := Examine(healthyFacts()); len(found) != 0 {
		t.Fatalf("findings on a healthy machine: %+v", found)
	}
	for _, m := range machineFixtures() {
		f := healthyFacts()
		m.broken(f)
		got := find(Examine(f), m.code)
		if got == nil || got.Severity != m.severity || got.Seen == "" || got.Why == "" || got.Fix == "" {
			t.Errorf("%s: found %+v, want a whole %s", m.code, got, m.severity)
		}
		f = healthyFacts()
		m.fine(f)
		if got := find(Examine(f), m.code); got != nil {
			t.Errorf("%s: found %+v where nothing is wrong", m.code, got)
		}
	}
}

// Every finding that the source can make has a fixture.
func TestEveryFindingHasAFixture(t *testing.T) {
	t.Parallel()
	have := map[string]bool{}
	for _, fx := range agentFixtures() {
		have[fx.code] = true
	}
	for _, m := range machineFixtures() {
		have[m.code] = true
	}
	paths, err := filepath.Glob("checks_*.go")
	if err != nil || len(paths) < 4 {
		t.Fatalf("the sources: %v, %v", paths, err)
	}
	code := regexp.MustCompile(`(?:Code: |add\((?:Error|Warning|Info), )"([a-z-]+)"`)
	seen := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range code.FindAllStringSubmatch(string(text), -1) {
			if seen++; !have[m[1]] {
				t.Errorf("%s: nothing causes %s", path, m[1])
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d findings stand in the sources", seen)
	}
}

func TestVolumeOfThisMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there, notYet := volumeOf(dir), volumeOf(filepath.Join(dir, "not", "yet"))
	if there.Unwritable != "" || there.ReadOnly {
		t.Errorf("a temporary folder: %+v", there)
	}
	if there.Known != notYet.Known && there.Total != notYet.Total {
		t.Errorf("a folder that is not there yet: %+v, its parent: %+v", notYet, there)
	}
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	got := markers([]string{"CLAUDECODE=1", "NOTIFY_SOCKET=/run/x", "TERM=dumb", "COLUMNS=3", "ANTHROPIC_BASE_URL=x", "CLAUDE_PID=4", "X"})
	if want := []string{"CLAUDECODE", "CLAUDE_PID"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestZones(t *testing.T) {
	t.Parallel()
	for tz, bad := range map[string]bool{"Europe/Rome": false, ":UTC": false, "": false, "Europe/Rom": true, "/no/such": true} {
		r := newRig(t)
		r.env["TZ"] = tz
		if f := r.facts(); (f.BadTZ != "") != bad {
			t.Errorf("TZ=%q: %q, want a problem: %v", tz, f.BadTZ, bad)
		}
	}
}

func TestWatchedDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{"in/a/b", "in/c", "out"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/", filepath.Join(dir, "in/everything")); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]int{
		"in/**/*.md": 4, "in/*.md": 1, "in/*/x.md": 3, "*.md": 1, "**": 6, "none/*": 0,
	} {
		if got := watched(dir, []string{pattern}); got != want {
			t.Errorf("%s: %d directories, want %d", pattern, got, want)
		}
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.agent.Triggers = []config.Trigger{{Watch: &config.WatchTrigger{Patterns: []string{"*.md"}}}}
	f, err := Collect(t.Context(), r.look())
	if err != nil {
		t.Fatal(err)
	}
	if in := f.Inotify; in.NeedInstances != 3 || in.NeedWatches != 4 {
		t.Errorf("needs %+v, want 3 instances (triggers, a waiting hook, its shim) and 4 watches", in)
	}
}

// TestLeftovers walks a folder whose name would be a pattern: none was seen there.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state [1]")
	for name, shim := range map[string]hook.Process{"dead": {PID: 1 << 30, Start: 1}, "alive": self(t)} {
		l := session.Leftover{Agent: "a", Session: name, Cookie: "no such cookie", Shim: shim}
		if err := state.Save(filepath.Join(dir, "live", name+".json"), l); err != nil {
			t.Fatal(err)
		}
	}
	if got := leftovers(dir); len(got) != 1 || got[0].Session != "dead" {
		t.Errorf("got %+v, want the dead one", got)
	}
}

func TestMend(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stop := r.hook()
	r.offer()
	temp := "work/.heartbeat/.in-flight.tmp-0123456789abcdef"
	r.put(temp, "")
	r.age(temp, 2*time.Hour)
	r.remove("work/.heartbeat/.gitignore")
	r.must(os.Chmod(stop, 0o600))
	l := session.Leftover{Agent: "triage", Session: "dead", Cookie: "no such cookie", Shim: hook.Process{PID: 1 << 30, Start: 1}}
	r.must(state.Save(filepath.Join(r.state, "live", "dead.json"), l))

	f := r.facts()
	found := Examine(f)
	for _, code := range []string{"orphan", "stale-files", "no-gitignore", "hook-not-executable", "leftover-session"} {
		if one := find(found, code); one == nil || !one.Fixable {
			t.Fatalf("%s: %+v, want a fixable finding; all: %+v", code, one, found)
		}
	}
	for _, m := range Mend(t.Context(), f, found) {
		if m.Error != "" {
			t.Errorf("%v: %s", m.Codes, m.Error)
		}
	}
	if left := r.findings(); len(left) != 0 {
		t.Errorf("left after mending: %+v", left)
	}
	if info, err := os.Stat(stop); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the hook program: %v, %v", info, err)
	}
}

// An agent can write any path into its settings: nothing but our own program
// is made executable.
func TestMendTouchesNothingThatAnAgentNames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	victim := filepath.Join(r.dir, "victim", "heartbeat-stop")
	r.put("victim/heartbeat-stop", "#!/bin/sh\n")
	// Ours needs the same repair, so it is made at all.
	stop := r.hook()
	r.must(os.Chmod(stop, 0o600))
	r.put(localFile, stopEntry(`{"type":"command","command":"`+victim+` hook"}`))
	f := r.facts()
	found := Examine(f)
	if find(found, "hook-not-executable") == nil {
		t.Fatalf("not found: %+v", found)
	}
	Mend(t.Context(), f, found)
	if info, err := os.Stat(stop); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("our own program was not repaired: %v, %v", info, err)
	}
	if info, err := os.Stat(victim); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file that the agent named: %v, %v", info, err)
	}
}

// While somebody works there nothing is recovered.
func TestMendLeavesRunningAgentsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.offer()
	f := r.facts()
	found := Examine(f)
	r.hold(r.agent.Dir)
	failed := false
	for _, m := range Mend(t.Context(), f, found) {
		failed = failed || m.Error != "" && strings.Contains(m.Error, "heartbeat runs there")
	}
	if !failed {
		t.Error("an entry was recovered although a scheduler holds the directory")
	}
	if _, err := os.Stat(filepath.Join(r.agent.Home, ".in-flight")); errors.Is(err, os.ErrNotExist) {
		t.Error("the entry in flight is gone")
	}
}

// Looking changes nothing, whatever is wrong.
func TestLookingChangesNothing(t *testing.T) {
	t.Parallel()
	for _, fx := range agentFixtures() {
		t.Run(fx.code, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			fx.broken(r)
			look := r.look()
			before := tree(t, r.dir)
			f, err := Collect(t.Context(), look)
			if err != nil {
				t.Fatal(err)
			}
			Examine(f)
			if after := tree(t, r.dir); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// tree is a directory's files with their sizes and modes.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		at := ""
		if err == nil && !store.Exists(path) { // SQLite makes two files beside a store that is read, and removes them
			at = info.ModTime().String()
		}
		if err == nil {
			b.WriteString(path + " " + info.Mode().String() + " " + at + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTheFixOfASecretFileCanBeTyped: it said FILE.
func TestTheFixOfASecretFileCanBeTyped(t *testing.T) {
	t.Parallel()
	found := checkSecrets(nil, &Agent{SecretProblems: []SecretProblem{{Trigger: "t", File: "/x/it's", Err: errors.New("cannot read its secret")}}})
	if len(found) != 1 || found[0].Fix != `(umask 077; openssl rand -hex 32 > '/x/it'\''s'), and give the sender the same secret; no reload is needed` {
		t.Errorf("%+v", found)
	}
}
