// Package hooks is the client's half of the hook contract: it reads hooks
// from settings files, runs them, and says what their answers mean, as Claude
// Code 2.1.329 was measured to do. It knows nothing of what a hook is for.
//
// Not covered: hooks of type prompt, agent or http, and `if` conditions.
package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// DefaultTimeout is what a hook without a timeout of its own may take.
const DefaultTimeout = 600 * time.Second

// maxSettings bounds one settings file.
const maxSettings = 8 << 20

// Events are the names the client knows; it warns of any other one.
var Events = []string{
	"PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Notification",
	"UserPromptSubmit", "UserPromptExpansion", "SessionStart", "SessionEnd", "Stop", "StopFailure",
	"SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "PreModelSwitch",
	"PostModelSwitch", "PermissionRequest", "PermissionDenied", "Setup", "TeammateIdle",
	"TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult", "ConfigChange",
	"WorktreeCreate", "WorktreeRemove", "InstructionsLoaded", "CwdChanged", "FileChanged",
	"DirectoryAdded", "MessageDisplay",
}

// A Hook is one command of one matching group.
type Hook struct {
	Command string
	Args    []string // exec form: no shell
	Timeout time.Duration
	Async   bool // the client does not wait
	Rewake  bool // asynchronous, and exit 2 wakes an idle session
	Managed bool // the administrator's
}

// Shown is the hook as the client names it to people and to the model.
func (h Hook) Shown() string {
	return strings.Join(append([]string{h.Command}, h.Args...), " ")
}

// A Group is the hooks that run for the values its matcher matches.
type Group struct {
	Matcher string // "" and "*": every value
	Hooks   []Hook
}

// matches reports whether the group runs for a value: a tool's name, a
// source, a reason, a notification's type.
func (g Group) matches(value string) bool {
	if g.Matcher == "" || g.Matcher == "*" {
		return true
	}
	re, err := regexp.Compile("^(?:" + g.Matcher + ")$")
	return err == nil && re.MatchString(value)
}

// Settings is what one settings file says, or several merged.
type Settings struct {
	Groups         map[string][]Group // :: event → groups
	Env            map[string]string
	DisableAll     bool
	Allow          []string // permission rules
	Deny           []string
	DefaultMode    string
	StatusLine     string   // its command line
	SkipBypassNote bool     // skipDangerousModePermissionPrompt
	Warnings       []string // entries that were passed over, and why
}

// For lists the hooks of one event for one matcher value, each identical
// command once.
func (s Settings) For(event, value string) []Hook {
	if s.DisableAll {
		return nil
	}
	var out []Hook
	seen := map[string]bool{}
	for _, g := range s.Groups[event] {
		if !g.matches(value) {
			continue
		}
		for _, h := range g.Hooks {
			if !seen[h.Shown()] {
				seen[h.Shown()] = true
				out = append(out, h)
			}
		}
	}
	return out
}

// merge puts later on top: its environment and mode win, its hooks and rules
// are added.
func (s *Settings) merge(later Settings) {
	if s.Groups == nil {
		s.Groups = map[string][]Group{}
	}
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	for event, groups := range later.Groups {
		s.Groups[event] = append(s.Groups[event], groups...)
	}
	maps.Copy(s.Env, later.Env)
	s.DisableAll = s.DisableAll || later.DisableAll
	s.Allow = append(s.Allow, later.Allow...)
	s.Deny = append(s.Deny, later.Deny...)
	s.Warnings = append(s.Warnings, later.Warnings...)
	if later.DefaultMode != "" {
		s.DefaultMode = later.DefaultMode
	}
	if later.StatusLine != "" {
		s.StatusLine = later.StatusLine
	}
}

// A Store is the five places settings come from. Files are read at every
// look, so that an edit is live at the next event; what --settings named is
// pinned for the life of the process. The administrator's count most.
type Store struct {
	User, Project, Local, Managed string // paths; "": not read
	Pinned                        Settings
}

// Look reads and merges the settings as they are now. A broken file adds
// nothing and is named in the error, which the client shows at start-up and
// passes over later.
func (s *Store) Look() (Settings, error) {
	var all Settings
	var errs []error
	for _, path := range []string{s.User, s.Project, s.Local} {
		one, err := readFile(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all.merge(one)
		// The project's own files cannot switch this warning off.
		all.SkipBypassNote = all.SkipBypassNote || (one.SkipBypassNote && path == s.User)
	}
	all.merge(s.Pinned)
	all.SkipBypassNote = all.SkipBypassNote || s.Pinned.SkipBypassNote
	managed, err := readFile(s.Managed)
	if err != nil {
		return all, errors.Join(append(errs, err)...)
	}
	managed.owned()
	all.merge(managed)
	return all, errors.Join(errs...)
}

func readFile(path string) (Settings, error) {
	if path == "" {
		return Settings{}, nil
	}
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Settings{}, nil
	}
	if err != nil {
		return Settings{}, fmt.Errorf("cannot read settings %q: %w", path, err)
	}
	if !st.Mode().IsRegular() || st.Size() > maxSettings {
		return Settings{}, fmt.Errorf("cannot read settings %q: not a regular file of at most %d bytes", path, maxSettings)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Settings{}, fmt.Errorf("cannot read settings %q: %w", path, err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return Settings{}, nil
	}
	one, err := Parse(data)
	if err != nil {
		return Settings{}, fmt.Errorf("%s: %w", path, err)
	}
	return one, nil
}

// Parse reads one settings document. Unknown keys are passed over. An unknown
// event, a hook that is no command and a timeout that is not a positive number
// of seconds are warnings: that entry is passed over, the rest holds.
func Parse(data []byte) (Settings, error) {
	var raw struct {
		Hooks       map[string]json.RawMessage
		Env         map[string]any
		Permissions struct {
			Allow, Deny, Ask []string
			DefaultMode      string
		}
		StatusLine                        struct{ Command string }
		DisableAllHooks                   bool
		SkipDangerousModePermissionPrompt bool
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return Settings{}, fmt.Errorf("invalid or malformed JSON: %w", err)
	}
	s := Settings{
		Groups: map[string][]Group{}, Env: map[string]string{},
		DisableAll: raw.DisableAllHooks, SkipBypassNote: raw.SkipDangerousModePermissionPrompt,
		DefaultMode: raw.Permissions.DefaultMode, StatusLine: raw.StatusLine.Command,
	}
	s.Allow, s.Deny = s.takeRules("allow", raw.Permissions.Allow), s.takeRules("deny", raw.Permissions.Deny)
	s.takeRules("ask", raw.Permissions.Ask)
	for name, v := range raw.Env {
		s.Env[name] = fmt.Sprint(v)
	}
	for _, event := range slices.Sorted(maps.Keys(raw.Hooks)) {
		if !slices.Contains(Events, event) {
			s.warn("hooks.%s: Unknown hook event %q was ignored.", event, event)
			continue
		}
		s.parseGroups(event, raw.Hooks[event])
	}
	return s, nil
}

func (s *Settings) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

// rawHook is a hook as it is written; each one is read by itself, so that a
// bad one costs only itself.
type rawHook struct {
	Type, Command      string
	Args               []string
	Timeout            *json.RawMessage
	Async, AsyncRewake bool
}

func (s *Settings) parseGroups(event string, data []byte) {
	var groups []struct {
		Matcher string
		Hooks   []json.RawMessage
	}
	if err := json.Unmarshal(data, &groups); err != nil {
		s.warn("hooks.%s: Invalid (%v); entry ignored.", event, err)
		return
	}
	for i, g := range groups {
		group := Group{Matcher: g.Matcher}
		for _, raw := range g.Hooks {
			h, err := parseHook(raw)
			if err != nil {
				s.warn("hooks.%s.%d.hooks: Invalid command hook (%v); entry ignored.", event, i, err)
				continue
			}
			group.Hooks = append(group.Hooks, h)
		}
		s.Groups[event] = append(s.Groups[event], group)
	}
}

func parseHook(data []byte) (Hook, error) {
	var raw rawHook
	if err := json.Unmarshal(data, &raw); err != nil {
		return Hook{}, err
	}
	if raw.Type != "command" || raw.Command == "" {
		return Hook{}, errors.New("not a command")
	}
	timeout, err := parseTimeout(raw.Timeout)
	if err != nil {
		return Hook{}, fmt.Errorf("timeout: %w", err)
	}
	return Hook{
		Command: raw.Command, Args: raw.Args, Timeout: timeout,
		Async: raw.Async || raw.AsyncRewake, Rewake: raw.AsyncRewake,
	}, nil
}

// parseTimeout reads seconds; 0.5 is half a second, 1e9 is fine.
func parseTimeout(raw *json.RawMessage) (time.Duration, error) {
	if raw == nil {
		return 0, nil
	}
	var seconds float64
	if err := json.Unmarshal(*raw, &seconds); err != nil || seconds <= 0 {
		return 0, fmt.Errorf("%s is not a positive number of seconds", *raw)
	}
	if seconds > float64(1<<62)/float64(time.Second) {
		return 1 << 62, nil
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// owned marks all hooks as the administrator's.
func (s *Settings) owned() {
	for _, groups := range s.Groups {
		for _, g := range groups {
			for i := range g.Hooks {
				g.Hooks[i].Managed = true
			}
		}
	}
}

// managedFile is the administrator's settings.
func managedFile() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	}
	return "/etc/claude-code/managed-settings.json"
}

// ProjectStore is the store of a session started in dir by a user whose home
// is home. sources is --setting-sources split at commas; nil means all.
func ProjectStore(home, dir string, sources []string) *Store {
	use := func(name string, path ...string) string {
		if sources != nil && !slices.Contains(sources, name) {
			return ""
		}
		return filepath.Join(path...)
	}
	return &Store{
		User:    use("user", home, ".claude", "settings.json"),
		Project: use("project", dir, ".claude", "settings.json"),
		Local:   use("local", dir, ".claude", "settings.local.json"),
		Managed: managedFile(), // whatever the sources
	}
}
