package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/stophooks"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// fixture is a way to cause one finding and, for each, one that comes close
// and must not cause it.
type fixture struct {
	code     string
	severity Severity
	fixable  bool
	broken   func(r *rig)
	fine     func(r *rig)
}

func TestNothingIsWrong(t *testing.T) {
	t.Parallel()
	if found := newRig(t).findings(); len(found) != 0 {
		t.Errorf("findings on a healthy machine: %+v", found)
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	for _, fx := range agentFixtures() {
		t.Run(fx.code+"/broken", func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			fx.broken(r)
			got := find(r.findings(), fx.code)
			if got == nil {
				t.Fatalf("not found; found: %+v", r.findings())
			}
			if got.Severity != fx.severity || got.Fixable != fx.fixable || got.Agent != "triage" {
				t.Errorf("got %+v, want %s, fixable %v, of agent triage", got, fx.severity, fx.fixable)
			}
			if got.Seen == "" || got.Why == "" || got.Fix == "" || strings.Contains(got.Seen+got.Fix, testKey[len(testKey)-20:]) {
				t.Errorf("it lacks words, or says the key: %+v", got)
			}
		})
		t.Run(fx.code+"/fine", func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			fx.fine(r)
			if got := find(r.findings(), fx.code); got != nil {
				t.Errorf("found %+v", got)
			}
		})
	}
}

// TestParkedForRoomIsNotForAResume, which does not lift limits: of the file.
func TestParkedForRoomIsNotForAResume(t *testing.T) {
	t.Parallel()
	for room, want := range map[bool]string{true: "wait, or raise limits: in the file, then heartbeat reload", false: "wait; heartbeat resume triage tries at once"} {
		r := newRig(t)
		r.published(status.AgentState{State: status.Parked, Until: time.Now().Add(time.Hour), Reason: "96% is used", LeavesRoom: room})
		if got := find(r.findings(), "parked"); got == nil || got.Fix != want {
			t.Errorf("leaves room: %v, found %+v", room, got)
		}
	}
}

func agentFixtures() []fixture {
	var all []fixture
	for _, some := range [][]fixture{hookFixtures(), settingsFixtures(), clientFixtures(), dialogFixtures(), queueFixtures(), lockFixtures(), runFixtures(), proofFixtures()} {
		all = append(all, some...)
	}
	return all
}

func stopEntry(text string) string { return `{"hooks":{"Stop":[{"hooks":[` + text + `]}]}}` }

// wiredEntry is heartbeat-rs's hook in the user's settings.
func (r *rig) wiredEntry(flags, timeout string) {
	stop := filepath.Join(r.dir, "rs", "heartbeat-stop")
	r.program("rs/heartbeat-stop", "#!/bin/sh\n")
	r.put(userFile, stopEntry(`{"type":"command","command":"`+stop+` --inbox `+r.agent.Inbox+flags+`"`+timeout+`}`))
}

func hookFixtures() []fixture {
	return []fixture{
		{
			"not-applied", Warning, true,
			func(r *rig) { r.agent.Permissions.Allow = []string{"Read"} },
			func(r *rig) { r.agent.Permissions.Allow = []string{"Read"}; r.apply() },
		},
		{
			"cannot-wire", Error, false,
			func(r *rig) {
				r.remove("work/.claude")
				r.must(os.Symlink(r.home, filepath.Join(r.dir, "work/.claude")))
			},
			func(r *rig) { r.remove("work/.claude") },
		},
		{
			"hook-missing", Error, true,
			func(r *rig) {
				r.edit(func(s map[string]any) { entries(s, "Stop")[0].(map[string]any)["command"] = "/nowhere/heartbeat hook" })
			},
			func(r *rig) { r.put(localFile, stopEntry(`{"type":"command","command":"/nowhere/lint"}`)) },
		},
		{
			"hook-not-executable", Error, true,
			func(r *rig) {
				r.must(os.Chmod(r.hook(), 0o600))
			},
			func(r *rig) { r.must(os.Chmod(r.hook(), 0o755)) },
		},
		{
			"hook-version", Warning, true,
			func(r *rig) { r.program("bin/heartbeat-stop", "#!/bin/sh\n"); r.apply() },
			func(r *rig) { copyFile(r.t, r.self, filepath.Join(r.dir, "bin/heartbeat-stop")); r.apply() },
		},
		{ // it was removed
			"hook-missing", Error, true,
			func(r *rig) { r.must(os.RemoveAll(filepath.Dir(r.hook()))) },
			func(r *rig) { r.must(os.RemoveAll(filepath.Dir(r.hook()))); r.apply() },
		},
		{ // edited by hand
			"hook-timeout", Error, true,
			func(r *rig) {
				r.edit(func(s map[string]any) { entries(s, "Stop")[0].(map[string]any)["timeout"] = 1800 })
			},
			func(r *rig) { r.agent.IdleInterval = 30 * 24 * time.Hour; r.apply() },
		},
		{ // a session that drains waits for a person who types
			"hook-timeout", Error, true,
			func(r *rig) {
				r.agent.Mode = hook.Drain
				r.edit(func(s map[string]any) { entries(s, "Stop")[0].(map[string]any)["timeout"] = 60 })
			},
			func(r *rig) { r.agent.Mode = hook.Drain; r.apply() },
		},
		{ // the client's default
			"hook-timeout", Error, true,
			func(r *rig) {
				r.edit(func(s map[string]any) { delete(entries(s, "Stop")[0].(map[string]any), "timeout") })
			},
			func(r *rig) {
				r.edit(func(s map[string]any) { entries(s, "Stop")[0].(map[string]any)["timeout"] = 1e6 })
			},
		},
		{ // hand-wired
			"hook-timeout", Error, false,
			func(r *rig) { r.wiredEntry(" --mode persist --idle-interval 3600", `,"timeout":3600`) },
			func(r *rig) { r.wiredEntry(" --mode persist --idle-interval 3600", `,"timeout":3610`) },
		},
		{
			"hook-timeout", Error, false,
			func(r *rig) { r.wiredEntry(" --mode=persist --idle-interval=20m", "") },
			func(r *rig) { r.wiredEntry(" --mode drain --idle-interval 20m", "") },
		},
		{
			"hand-wired-hook", Warning, false,
			func(r *rig) { r.wiredEntry("", "") },
			func(r *rig) { r.put(userFile, stopEntry(`{"type":"command","command":"lint --inbox x"}`)) },
		},
		{
			"hand-wired-abort", Warning, false,
			func(r *rig) { r.wiredEntry("", "") },
			func(r *rig) {
				r.put(localFile, stopEntry(`{"type":"command","command":"GOTRACEBACK=crash exec `+r.self+` hook stop --inbox `+r.agent.Inbox+`"}`))
			},
		},
		{
			"hand-wired-flags", Error, false,
			func(r *rig) { r.wiredEntry(" --mode forever", "") },
			func(r *rig) { r.wiredEntry(" --mode persist --idle-interval 90", "") },
		},
		{
			"hand-wired-payload", Warning, false,
			func(r *rig) { r.wiredEntry(" 2>>hook.err </dev/null", "") },
			func(*rig) {},
		},
		{
			"hand-wired-payload", Info, false,
			func(r *rig) { r.wiredEntry("", "") },
			func(*rig) {},
		},
		{
			"foreign-settings", Warning, false,
			func(r *rig) { r.put(localFile, `{"permissions":{"allow":["Bash(*)"]}}`) },
			func(r *rig) {
				r.put(userFile, `{"permissions":{"allow":["Bash(*)"]}}`)
				r.put(localFile, `{"permissions":{"deny":["Bash(*)"]}}`)
			},
		},
		{
			"foreign-settings", Warning, false,
			func(r *rig) { r.put("work/.mcp.json", `{"mcpServers":{"x":{"command":"y"}}}`) },
			func(r *rig) {
				r.put("work/.mcp.json", `{"mcpServers":{"x":{"command":"y"}}}`)
				r.agent.Settings = config.SettingsOnly
			},
		},
		{
			"scheduled-prompts", Warning, false,
			func(r *rig) { r.put("work/.claude/scheduled_tasks.json", scheduled) },
			func(r *rig) { r.put("work/.claude/scheduled_tasks.json", `{"tasks":[]}`) },
		},
		{
			"scheduled-prompts", Warning, false,
			func(r *rig) {
				r.put("work/.claude/scheduled_tasks.json", "{")
				r.agent.Settings = config.SettingsOnly
			},
			func(*rig) {},
		},
		{
			"within-reach", Info, false,
			func(r *rig) { r.agent.TrustDir, r.agent.Guarded = true, []string{"heartbeat.yaml"} },
			func(r *rig) { r.agent.TrustDir = true },
		},
		{
			"other-stop-hook", Warning, false,
			func(r *rig) { r.put(userFile, stopEntry(`{"type":"prompt","prompt":"is it done?"}`)) },
			func(r *rig) {
				r.put(userFile, `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"lint"}]}]}}`)
			},
		},
		{
			"stop-hook-gates", Warning, false,
			func(r *rig) {
				r.put(userFile, stopEntry(`{"type":"command","command":"make test"}`))
				r.learned("make test")
			},
			func(r *rig) {
				r.put(userFile, stopEntry(`{"type":"command","command":"play"}`))
				r.learned("make test")
			},
		},
	}
}

// learned is what a run has seen of a Stop hook.
func (r *rig) learned(command string) {
	r.t.Helper()
	storetest.Write(r.t, r.state, func(c *store.Change) error { return stophooks.Keep(c, command, "another", time.Now()) })
}

func settingsFixtures() []fixture {
	settings := func(file, text string) func(r *rig) { return func(r *rig) { r.put(file, text) } }
	refused := func(text string) fixture {
		return fixture{"settings-refused", Error, false, settings(localFile, text), settings(localFile, `{"modle":"x","env":{"A":1},"hooks":{"Stop":[]}}`)}
	}
	return []fixture{
		{"settings-broken", Error, false, settings(localFile, "{\n // mine\n}"), settings(localFile, "\xef\xbb\xbf \r\n")},
		{"settings-broken", Error, false, settings(userFile, "{"), settings(userFile, "{}")},
		refused(stopEntry(`{"type":"command","command":"x","timeout":0}`)),
		refused(stopEntry(`{"type":"command","command":"x","timeout":"30"}`)),
		refused(stopEntry(`{"type":"comand","command":"x"}`)),
		refused(stopEntry(`{"type":"command"}`)),
		refused(`{"hooks":{"Stop":[{"type":"command","command":"x"}]}}`),
		refused(`{"hooks":{"Stop":{}}}`),
		refused(`{"hooks":[]}`),
		refused(`{"hooks":{"Stop":[{"matcher":1,"hooks":[]}]}}`),
		refused(`{"permissions":{"allow":"Bash"}}`),
		refused(`{"permissions":{"deny":["Bash("]}}`),
		refused(`{"permissions":{"allow":["read"]}}`),
		refused(`{"permissions":{"allow":["mcp__*"]}}`),
		{"rules-never-match", Warning, false, settings(localFile, `{"permissions":{"deny":["Reed(secret/**)"]}}`), settings(localFile, `{"permissions":{"deny":["Read(secret/**)","mcp__*"],"ask":["Task"]}}`)},
		{"rules-never-match", Warning, false, settings(localFile, `{"permissions":{"allow":["Write(src/**)"]}}`), settings(localFile, `{"permissions":{"allow":["Write","Edit(src/**)"]}}`)},
		refused(`{"permissions":{"defaultMode":"never"}}`),
		refused(`{"env":["A"]}`),
		refused(`{"model":3}`),
		{"unknown-hook-event", Error, false, settings(localFile, `{"hooks":{"Stopp":[]}}`), settings(localFile, `{"hooks":{"Setup":[]}}`)},
		{
			"unknown-hook-event", Warning, false,
			func(r *rig) { r.version("3.0.0"); r.put(localFile, `{"hooks":{"Stopp":[]}}`) },
			settings(localFile, `{"hooks":{"Stop":[]}}`),
		},
		{"hooks-disabled", Error, false, settings(managedFile, `{"allowManagedHooksOnly":true}`), settings(userFile, `{"allowManagedHooksOnly":true}`)},
		{"hooks-disabled", Error, false, settings(managedFile, `{"disableAllHooks":true}`), settings(managedFile, `{"allowManagedHooksOnly":false}`)},
		{"settings-broken", Error, false, settings(managedFile, "{"), settings(managedFile, "{}")},
		{"hooks-disabled", Error, false, settings(userFile, `{"disableAllHooks":true}`), settings(userFile, `{"disableAllHooks":false}`)},
		{
			"block-cap", Error, false, settings(localFile, `{"env":{"`+claude.Variables.Cap+`":"20"}}`),
			settings(localFile, `{"env":{"`+claude.Variables.Cap+`":"0"}}`),
		},
		{
			"block-cap", Error, false, settings(localFile, `{"env":{"`+claude.Variables.Cap+`":"off"}}`),
			settings(localFile, `{"env":{"`+claude.Variables.Cap+`":"-1"}}`),
		},
		{
			"block-cap", Info, false,
			func(r *rig) { r.env[claude.Variables.Cap] = "8" },
			func(r *rig) { r.env[claude.Variables.Cap] = "0" },
		},
		{
			"block-cap", Warning, false,
			func(r *rig) { r.wiredEntry("", "") },
			func(r *rig) { r.wiredEntry("", ""); r.env[claude.Variables.Cap] = "0" },
		},
		{
			"settings-env", Error, false, settings(localFile, `{"env":{"HEARTBEAT_SESSION":"x"}}`),
			settings(localFile, `{"env":{"HEART":"x","TERM":"dumb"}}`),
		},
		{"settings-env", Warning, false, settings(localFile, `{"env":{"HEARTBEAT_FILE":"x"}}`), settings(localFile, `{"env":{}}`)},
		{"settings-env", Warning, false, settings(localFile, `{"env":{"CLAUDE_CODE_RETRY_WATCHDOG_MAX_WAIT_MS":"1"}}`), settings(localFile, `{"env":{}}`)},
		{"settings-env", Warning, false, settings(localFile, `{"env":{"CLAUDECODE":"1"}}`), settings(localFile, `{"env":{}}`)},
	}
}

// TestWhatVanishedIsAnsweredForThoughSomeIsFiled: doctor named the dead letters where status
// named the answer, and called dead letters what an answer first makes such.
func TestWhatVanishedIsAnsweredForThoughSomeIsFiled(t *testing.T) {
	t.Parallel()
	q := Queue{NeedsOperator: true, Missing: inbox.Gone{Entries: 2, Why: "the inbox was cut", IDs: []string{"one", "two"}}, Gone: inbox.DeadCount{Lost: 1}}
	a := &Agent{Config: &config.Agent{Name: "triage"}, Queue: q}
	found := takenOut(a)
	if len(found) != 1 || !strings.Contains(found[0].Fix, "answer triage; it says which") || !strings.Contains(found[0].Why, "each prompt becomes a dead letter") || !strings.HasPrefix(found[0].Seen, "3 queued prompts vanished: the inbox was cut (one, two") {
		t.Errorf("%+v", found)
	}
	a.Queue.Missing, a.Queue.NeedsOperator = inbox.Gone{}, false
	if found = takenOut(a); len(found) != 1 || !strings.Contains(found[0].Fix, "dead-letter triage; ") || !strings.Contains(found[0].Why, "each prompt is a dead letter") {
		t.Errorf("%+v", found)
	}
}
