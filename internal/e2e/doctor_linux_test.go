package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	hookclient "heartbeat/hook/client"
	"heartbeat/internal/testbed"
)

// ailment is a set-up that doctor calls an error, and what the real client
// does in it: it asks something before the session starts, or does one turn
// and stands still.
type ailment struct {
	code  string
	setup func(l *Lab)
	args  []string // of the client, instead of --permission-mode dontAsk
	mode  string   // permissions: mode: of the agent, dontAsk for ""
	more  []string // words of the agent's command, which the client gets, too
	env   string   // a variable
	// shows is what stands on the screen, unanswered; "" means that a turn is
	// done and none of the project's Stop hooks is called.
	shows string
}

// near are set-ups that look much the same, and in which the client works.
type near struct {
	name, code string
	setup      func(l *Lab)
	more       []string
}

func put(l *Lab, path, text string) {
	l.t.Helper()
	path = filepath.Join(l.Dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// own changes the client's own file.
func own(l *Lab, change func(all, project map[string]any)) {
	l.t.Helper()
	path := filepath.Join(l.Home, ".claude.json")
	data, err := os.ReadFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		l.t.Fatal(err)
	}
	change(all, all["projects"].(map[string]any)[l.Work].(map[string]any))
	l.WriteJSON(path, all)
}

const (
	mcpServer = `{"mcpServers":{"tool":{"command":"true"}}}`
	localFile = "work/.claude/settings.local.json"
	userFile  = "home/.claude/settings.json"
)

func repository(l *Lab, dir string) {
	put(l, filepath.Join(dir, ".git/HEAD"), "ref: refs/heads/main\n")
	put(l, filepath.Join(dir, ".git/config"), "[core]\n\trepositoryformatversion = 0\n")
	for _, d := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(l.Dir, dir, ".git", d), 0o700); err != nil {
			l.t.Fatal(err)
		}
	}
}

// onlyHook is a Stop hook of ours whose program has this mode, or with 0 does
// not exist. Were it called it would say so as the lab's own do.
func onlyHook(program string, mode os.FileMode) func(l *Lab) {
	return func(l *Lab) {
		path := filepath.Join(l.Dir, program)
		if mode != 0 {
			put(l, program, fmt.Sprintf("#!/bin/sh\nexec %s %s Stop -\n", l.hook, l.hooks.listener.Addr()))
			if err := os.Chmod(path, mode); err != nil {
				l.t.Fatal(err)
			}
		}
		put(l, "work/.claude/settings.json", fmt.Sprintf(`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":%q,"timeout":1000000}]}]}}`, path+" hook"))
	}
}

func ailments() []ailment {
	file := func(path, text string) func(l *Lab) { return func(l *Lab) { put(l, path, text) } }
	return []ailment{
		{code: "not-trusted", setup: func(l *Lab) { own(l, func(_, p map[string]any) { clear(p) }) }, shows: "I trust this folder"},
		{code: "not-trusted", setup: func(l *Lab) { repository(l, "work"); l.Trust(l.Dir) }, shows: "I trust this folder"},
		{
			code:  "no-onboarding",
			setup: func(l *Lab) { own(l, func(all, _ map[string]any) { delete(all, "hasCompletedOnboarding") }) }, shows: "Dark mode",
		},
		{
			code:  "key-not-approved",
			setup: func(l *Lab) { own(l, func(all, _ map[string]any) { delete(all, "customApiKeyResponses") }) }, shows: "Do you want to use this API key?",
		},
		{code: "mcp-dialog", setup: file("work/.mcp.json", mcpServer), shows: "New MCP server found"},
		{code: "mcp-dialog", setup: file(".mcp.json", mcpServer), shows: "New MCP server found"},
		{
			code:  "import-dialog",
			setup: func(l *Lab) { put(l, "outside.md", "text"); put(l, "work/CLAUDE.md", "see @../outside.md\n") }, shows: "Allow external CLAUDE.md file imports?",
		},
		{code: "settings-broken", setup: file(localFile, "{"), shows: "Settings Error"},
		{code: "settings-refused", setup: file(localFile, `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x","timeout":0}]}]}}`), shows: "Settings"},
		{code: "settings-refused", setup: file(localFile, `{"permissions":{"allow":["Bash("]}}`), shows: "Settings Warning"},
		{code: "unknown-hook-event", setup: file(localFile, `{"hooks":{"Stopp":[]}}`), shows: "Settings Warning"},
		{code: "bypass-dialog", args: []string{"--permission-mode", "bypassPermissions"}, mode: "bypassPermissions", shows: "Bypass Permissions mode"},
		{code: "hook-missing", setup: onlyHook("nowhere/heartbeat", 0)},
		{code: "hook-not-executable", setup: onlyHook("heartbeat", 0o600)},
		{code: "hooks-disabled", setup: file(localFile, `{"disableAllHooks":true}`)},
		{code: "hooks-disabled", setup: file(userFile, `{"env":{"CLAUDE_CODE_SAFE_MODE":"on"}}`)},
		{code: "hooks-disabled", more: []string{"--bare"}},
		{code: "hooks-disabled", more: []string{"--safe-mode"}},
		{code: "hooks-disabled", more: []string{"--restricted"}},
		{code: "hooks-disabled", more: []string{"--setting-sources", "user"}},
		{code: "hooks-disabled", more: []string{"--settings", `{"disableAllHooks":true}`}},
		{code: "hooks-disabled", more: []string{"--managed-settings", `{"disableAllHooks":true}`}},
		{code: "hooks-disabled", env: "CLAUDE_CODE_SIMPLE=yes"},
	}
}

func nears() []near {
	return []near{
		{name: "repository-trusted", code: "not-trusted", setup: func(l *Lab) { repository(l, "."); l.Trust(l.Dir) }},
		{name: "servers-decided", code: "mcp-dialog", setup: func(l *Lab) {
			put(l, "work/.mcp.json", mcpServer)
			put(l, localFile, `{"enabledMcpjsonServers":["tool"]}`)
		}},
		{name: "imports-in-code-or-missing", code: "import-dialog", setup: func(l *Lab) {
			put(l, "outside.md", "text")
			put(l, "work/CLAUDE.md", "`see @../outside.md there`\n\n```\n@../outside.md\n```\n@../missing.md @in.md\n")
			put(l, "work/in.md", "text")
		}},
		{name: "imports-answered", code: "import-dialog", setup: func(l *Lab) {
			put(l, "outside.md", "text")
			put(l, "work/CLAUDE.md", "@../outside.md\n")
			own(l, func(_, p map[string]any) { p["hasClaudeMdExternalIncludesWarningShown"] = true })
		}},
		{name: "unknown-key", code: "settings-refused", setup: func(l *Lab) { put(l, localFile, `{"modle":"x","env":{"A":1}}`) }},
		{name: "off-and-on", code: "hooks-disabled", setup: func(l *Lab) {
			put(l, userFile, `{"disableAllHooks":true,"env":{"CLAUDE_CODE_SIMPLE":"0"}}`)
			put(l, localFile, `{"disableAllHooks":false,"env":{"CLAUDE_CODE_SAFE_MODE":"1"}}`)
			l.Setenv("CLAUDE_CODE_SIMPLE=1")
		}, more: []string{"--setting-sources", "user", "--setting-sources", "user,project,local"}},
	}
}

// atOnce bounds how many clients start at the same time: each needs a core for
// a second.
var atOnce = make(chan struct{}, 3)

func turnOf(t *testing.T) {
	atOnce <- struct{}{}
	t.Cleanup(func() { <-atOnce })
}

// examine lists the codes that doctor finds errors by, in the lab's workspace.
// more are words of the agent's command.
func examine(l *Lab, mode string, more ...string) []string {
	l.t.Helper()
	f := &fleet{Lab: l, bin: testbed.Programs(l.t), file: filepath.Join(l.Dir, "heartbeat.yaml")}
	if mode == "" {
		mode = "dontAsk"
	}
	command, err := json.Marshal(append([]string{l.client.path}, more...))
	if err != nil {
		l.t.Fatal(err)
	}
	f.write(f.file, fmt.Sprintf("version: 1\nagents:\n  a:\n    dir: %s\n    command: %s\n    permissions: {mode: %s}\n",
		strconv.Quote(l.Work), command, mode))
	out, errs, _ := f.heartbeat("", "doctor", "-o", "json", "-f", f.file)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var reply struct {
		Data struct {
			Findings []struct{ Severity, Code string }
		}
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &reply); err != nil {
		l.t.Fatalf("doctor: %v\n%s%s", err, out, errs)
	}
	codes := map[string]bool{}
	for _, f := range reply.Data.Findings {
		if f.Severity == "error" && !strings.HasPrefix(f.Code, "disk-") && f.Code != "network-file-system" {
			codes[f.Code] = true
		}
	}
	return slices.Sorted(maps.Keys(codes))
}

func sickLab(t *testing.T, setup func(l *Lab)) *Lab {
	t.Helper()
	return clientLab(t, realClient(t), setup)
}

func clientLab(t *testing.T, c client, setup func(l *Lab)) *Lab {
	t.Helper()
	if c.real {
		turnOf(t)
	}
	l := newLab(t, c, nil)
	l.Setenv("HEARTBEAT_STATE_DIR=" + filepath.Join(l.Dir, "state"))
	l.ProjectSettings(l.Hooks("SessionStart", "Stop"))
	if setup != nil {
		setup(l)
	}
	return l
}

// TestWhatDoctorWarnsOf: the real client hangs where doctor says that it will,
// and doctor names nothing else. Doctor looks at all of them, the client at factsOf them.
func TestWhatDoctorWarnsOf(t *testing.T) {
	t.Parallel()
	all := ailments()
	started := someOf(t, len(all), 5)
	for n, a := range all {
		t.Run(a.code, func(t *testing.T) {
			t.Parallel()
			l := sickLab(t, a.setup)
			if a.env != "" {
				l.Setenv(a.env)
			}
			if got := examine(l, a.mode, a.more...); !slices.Equal(got, []string{a.code}) {
				t.Errorf("doctor finds %q, want %s alone", got, a.code)
			}
			if !slices.Contains(started, n) {
				return
			}
			args := a.args
			if args == nil {
				args = []string{"--permission-mode", "dontAsk"}
			}
			term := l.Start(slices.Concat(a.more, args, []string{"--", "begin"})...)
			if a.shows == "" {
				l.Until("the turn", func() bool { return len(l.API.Requests()) > 0 })
			} else {
				l.Until(a.shows, func() bool { return term.Shows(a.shows) })
				if hookclient.Claude.Terminal.Asks(term.Screen()) == nil {
					t.Errorf("nobody would know what it asks:\n%s", term.Screen())
				}
			}
			stands(l, term)
		})
	}
}

// stands checks that the client is alive and that nothing of ours is called.
func stands(l *Lab, term *Terminal) {
	l.t.Helper()
	time.Sleep(l.pace()) // nothing may happen: there is nothing to wait for
	if calls := l.Calls(); len(calls) != 0 || !term.Running() {
		l.t.Errorf("it does not stand still: hooks called %q, running %v", l.story(), term.Running())
	}
}

// someOf are the numbers below n of those with which the real client is started.
func someOf(t *testing.T, n, stride int) []int {
	t.Helper()
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return factsOf(t, realClient(t), numbers, stride)
}

// TestWhatDoctorLetsPass: the real client works where doctor finds nothing.
func TestWhatDoctorLetsPass(t *testing.T) {
	t.Parallel()
	all := append(nears(), near{name: "healthy"})
	started := someOf(t, len(all), 3)
	for i, n := range all {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			l := sickLab(t, n.setup)
			if got := examine(l, "", n.more...); len(got) != 0 {
				t.Errorf("doctor finds %q, want nothing", got)
			}
			if !slices.Contains(started, i) {
				return
			}
			l.Start(append(n.more, "--permission-mode", "dontAsk", "--", "begin")...)
			l.UntilCalls("Stop", 1)
		})
	}
}

// TestBypassAsRootIsRefused: the client ends before it shows anything.
func TestBypassAsRootIsRefused(t *testing.T) {
	t.Parallel()
	l := sickLab(t, nil)
	l.Setenv("IS_SANDBOX=")
	if got := examine(l, "bypassPermissions"); !slices.Equal(got, []string{"root-bypass"}) {
		t.Errorf("doctor finds %q, want root-bypass alone", got)
	}
	term := l.Start("--permission-mode", "bypassPermissions", "--", "begin")
	l.Until("the client's end", func() bool { return !term.Running() })
	l.Until("what it says", func() bool { return term.Shows("cannot be used with root") })
}

// TestWithoutALoginEachTurnFails: the session starts, and its first turn is an
// API failure before any request.
func TestWithoutALoginEachTurnFails(t *testing.T) {
	t.Parallel()
	l := sickLab(t, nil)
	l.ProjectSettings(l.Hooks("SessionStart", "Stop", "StopFailure"))
	l.Setenv("ANTHROPIC_API_KEY=")
	if got := examine(l, ""); !slices.Equal(got, []string{"not-logged-in"}) {
		t.Errorf("doctor finds %q, want not-logged-in alone", got)
	}
	term := l.Start("--permission-mode", "dontAsk", "--", "begin")
	l.UntilCalls("StopFailure", 1)
	if calls := l.Calls("Stop"); len(calls) != 0 || !term.Running() || len(l.API.Requests()) != 0 {
		t.Errorf("Stop called %d times, %d requests, running %v", len(calls), len(l.API.Requests()), term.Running())
	}
}

// ruled is a permission rule, of the list allow or deny.
type ruled struct{ list, rule string }

// refusedRules make the client ask a person at its start; takenRules it takes,
// whether they ever match or not.
var (
	refusedRules = []ruled{
		{"allow", "read"},
		{"allow", "Bash("},
		{"allow", "Bash()"},
		{"allow", "Bash(a) x"},
		{"allow", "Bash(a\\((b)"},
		{"allow", "*"},
		{"allow", "Re*"},
		{"allow", "mcp__*"},
		{"deny", "mcp__a(b)"},
		{"allow", "WebSearch(a*)"},
		{"deny", "WebFetch(https://x.org)"},
		{"allow", "WebFetch(x.org)"},
		{"deny", "Bash(:*)"},
		{"deny", "Read(a:*)"},
	}
	takenRules = []ruled{
		{"allow", "Read"},
		{"allow", "Bash(*)"},
		{"allow", "Bash(git:*)"},
		{"allow", "Bash(git:* status)"},
		{"allow", "Bash(a(b)c)"},
		{"allow", "Bash(x))"},
		{"allow", "Edit((x)"},
		{"allow", "(x)"},
		{"allow", "Read "},
		{"allow", "5x"},
		{"allow", "Reed(x)"},
		{"allow", "my_tool"},
		{"allow", "Task(x)"},
		{"allow", "mcp__a__b"},
		{"allow", "mcp__a__*"},
		{"allow", "mcp__"},
		{"allow", "WebFetch(domain:x.org)"},
		{"allow", "Write(src/**)"},
		{"deny", "*"},
		{"deny", "Re*"},
		{"deny", "mcp__*"},
		{"deny", "Glob(src/**)"},
		{"deny", "Reed"},
	}
)

// TestRulesAreJudgedAsTheClientDoes: validate refuses those permission rules
// over which the client opens a dialog, and no other; the tools that it knows
// are those that the client offers.
func TestRulesAreJudgedAsTheClientDoes(t *testing.T) {
	t.Parallel()
	for _, r := range append(slices.Clone(refusedRules), takenRules...) {
		wrong := hookclient.Claude.Settings.CheckRule(r.rule, r.list == "allow")
		if refused := wrong != nil && wrong.Refused; refused != slices.Contains(refusedRules, r) {
			t.Errorf("%s: %q: %+v", r.list, r.rule, wrong)
		}
	}
	with := func(rules ...ruled) func(l *Lab) {
		lists := map[string][]string{}
		for _, r := range rules {
			lists[r.list] = append(lists[r.list], r.rule)
		}
		return func(l *Lab) { l.WriteJSON(filepath.Join(l.Dir, localFile), map[string]any{"permissions": lists}) }
	}
	for _, client := range []func(*testing.T) client{realClient, standIn} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			c := client(t)
			t.Run("taken", func(t *testing.T) {
				t.Parallel()
				// A rule that denies all would take the tools away that are looked at.
				l := clientLab(t, c, with(slices.DeleteFunc(slices.Clone(takenRules), func(r ruled) bool { return r.rule == "*" || r.rule == "Re*" })...))
				l.Start("--permission-mode", "dontAsk", "--", "begin")
				l.UntilCalls("Stop", 1)
				for _, request := range l.API.Requests() {
					for _, tool := range request.Tools {
						if !slices.Contains(hookclient.Claude.Settings.Tools, tool) && tool != "DeferredToolPlaceholder" {
							t.Errorf("the client offers %s, which no rule may name", tool)
						}
					}
				}
			})
			if c.real { // its question names all of them
				t.Run("refused", func(t *testing.T) {
					t.Parallel()
					l := clientLab(t, c, with(append(slices.Clone(takenRules), refusedRules...)...))
					term := l.Start("--permission-mode", "dontAsk", "--", "begin")
					l.Until("a question", func() bool {
						return term.Shows("Settings Warning") && term.Shows("Enter to confirm") || len(l.Calls()) > 0
					})
					stands(l, term)
					if n := strings.Count(term.Screen(), "Invalid permission rule"); n != len(refusedRules) {
						t.Errorf("it refuses %d rules, want %d:\n%s", n, len(refusedRules), term.Screen())
					}
					for _, r := range refusedRules {
						if !term.Shows(`Invalid permission rule "` + r.rule + `" was skipped`) {
							t.Errorf("it takes %q:\n%s", r.rule, term.Screen())
						}
					}
				})
				return
			}
			for i, r := range refusedRules {
				if strings.Contains(r.rule, `\`) {
					continue // the stand-in does not know escaped brackets
				}
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					l := clientLab(t, c, with(r))
					term := l.Start("--permission-mode", "dontAsk", "--", "begin")
					l.Until("a question", func() bool { return term.Shows("Settings Warning") || len(l.Calls()) > 0 })
					stands(l, term)
				})
			}
		})
	}
}
