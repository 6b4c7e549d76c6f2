package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/hook/inpath"
	"heartbeat/hook/settings"
)

const dialog = "the client opens a dialog at its start, and nobody answers it: the session ends by start-timeout"

// unstartable returns what prevents the client from being started at all.
func (c Client) unstartable() []Obstacle {
	var found []Obstacle
	if e, ok := errors.AsType[*config.ExposedError](c.Exposed); ok {
		found = append(found, exposed(e))
	}
	if c.NoEnv != nil {
		found = append(found, envFile(c.EnvFile, c.NoEnv))
	}
	if why := c.Missing(); why != "" {
		mend := "install " + c.Program
		switch {
		case why == notExecutable:
			mend = "chmod +x " + settings.Quote(c.Locate())
		case c.Program == client.Claude.Program:
			mend = "npm install -g @anthropic-ai/claude-code"
		}
		found = append(found, Obstacle{
			ClientMissing, fmt.Sprintf("command %q: %s", c.Program, why),
			"no session can start", mend + ", or correct the command in the file, or PATH",
		})
	}
	return found
}

func exposed(e *config.ExposedError) Obstacle {
	return Obstacle{Exposed, e.Error(), "whoever can change it has prompts, hooks and rules of theirs carried out as this user", e.Hint()}
}

func envFile(path string, err error) Obstacle {
	fix := "correct " + path + ", and chmod 600 it"
	if errors.Is(err, fs.ErrNotExist) {
		fix = "write " + path + " and chmod 600 it, or correct the env-file in the file"
	}
	return Obstacle{EnvFile, err.Error(), "no session starts without its variables", fix}
}

// Locate finds the client's program as a session would.
func (c Client) Locate() string {
	if strings.Contains(c.Program, "/") {
		if filepath.IsAbs(c.Program) {
			return c.Program
		}
		return filepath.Join(c.Dir, c.Program)
	}
	if path, err := inpath.Find(c.Env["PATH"], c.Program); err == nil {
		return path
	}
	return c.Program
}

// notExecutable is what keeps a file from being run that is there.
const notExecutable = "it is not executable"

// Missing says why the client's program cannot be started, or "".
func (c Client) Missing() string {
	if c.Self || c.Program == "" {
		return ""
	}
	path := c.Locate()
	info, err := os.Stat(path)
	switch {
	case !filepath.IsAbs(path) || errors.Is(err, fs.ErrNotExist):
		return "it is not found"
	case err != nil:
		return err.Error()
	case info.IsDir():
		return "it is a folder"
	case !inpath.Runs(info):
		return notExecutable
	}
	return ""
}

// Known reports whether the command is the client itself, whose questions at its
// start are known. About a program of another name nothing is said: it may answer
// the client's questions.
func (c Client) Known() bool { return !c.Self && filepath.Base(c.Program) == client.Claude.Program }

// dialogs returns the questions that the client asks at its start because nobody
// has answered them before.
func (c Client) dialogs(all []Settings) []Obstacle {
	if !c.Known() {
		return nil
	}
	own := c.ownFile()
	if own.broken != "" {
		return []Obstacle{{OwnFileBroken, c.ownPath() + ": " + own.broken, dialog, "correct " + c.ownPath()}}
	}
	return slices.Concat(c.onboarding(own), c.trust(own), c.key(own), c.bypass(all), c.loggedOut(all), c.openServers(own, all), c.openImports(own))
}

func (c Client) onboarding(own *ownFile) []Obstacle {
	if own.Onboarded {
		return nil
	}
	seen := c.ownPath() + " does not say hasCompletedOnboarding"
	if own.none {
		seen = "there is no " + c.ownPath()
	}
	return []Obstacle{{NoOnboarding, seen, dialog, "run " + c.typed() + " once and go through its first screens"}}
}

// trust: the workspace has to be trusted.
func (c Client) trust(own *ownFile) []Obstacle {
	within := repository(c.Dir)
	if c.Env[client.Claude.Variables.Trusts] != "" || own.trusts(c.Dir, within) {
		return nil
	}
	seen := c.Dir + " is not trusted"
	if within != "" && within != c.Dir {
		seen += ", nor is a folder above it up to the git repository " + within
	} else if within != "" {
		seen += "; it is a git repository, so folders above it do not count"
	}
	fix := "run claude there once and accept: cd " + settings.Quote(c.Dir) + " && " + c.typed()
	if !own.none { // otherwise there is no file to record it in
		fix = cmp.Or(c.Ours, "heartbeat") + " apply --trust " + c.Agent + ", or " + fix
	}
	return []Obstacle{{NotTrusted, seen, dialog, fix}}
}

// key: an API key that the client would ask about.
func (c Client) key(own *ownFile) []Obstacle {
	name := client.Claude.Variables.Key
	if set, approved, rejected := own.knows(c.Env[name]); !set || approved || rejected {
		return nil
	}
	return []Obstacle{{
		KeyNotApproved, name + " is set, and " + c.ownPath() + " does not say that it may be used",
		dialog, "run " + c.typed() + " once with this key and choose Yes",
	}}
}

// skipPermissions is the flag that turns all questions off, whatever
// --permission-mode says.
const skipPermissions = "--dangerously-skip-permissions"

// Bypasses reports whether sessions ask nobody for anything.
func (c Client) Bypasses() bool {
	return c.Mode == bypassMode || slices.Contains(c.Command, skipPermissions)
}

const bypassMode = "bypassPermissions"

// bypass: the client warns a person before it asks for nothing any more, and
// refuses to do so as root.
func (c Client) bypass(all []Settings) []Obstacle {
	if !c.Bypasses() {
		return nil
	}
	seen := "permission mode " + bypassMode
	if c.Root && c.Env[client.Claude.Variables.Sandbox] != "1" {
		return []Obstacle{{
			RootBypass, seen + " as root", "the client refuses to start",
			"run as another user, or in a container set env: {" + client.Claude.Variables.Sandbox + ": \"1\"}",
		}}
	}
	if slices.ContainsFunc(all, func(s Settings) bool { return s.Kind != Project && s.Document().SkipBypassDialog }) {
		return nil
	}
	return []Obstacle{{BypassDialog, seen + ", which the client warns of", dialog, c.skipsWarning()}}
}

// skipsWarning is how the client's warning of bypassed permissions is answered beforehand.
func (c Client) skipsWarning() string {
	const answer = `"skipDangerousModePermissionPrompt": true`
	path := filepath.Join(c.ConfigDir(), client.Claude.Settings.File)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return "put " + answer + " into " + path
	}
	return "mkdir -p " + settings.Quote(filepath.Dir(path)) + " && echo '{" + answer + "}' > " + settings.Quote(path)
}

// openServers are those of .mcp.json that the client would ask about.
func (c Client) openServers(own *ownFile, all []Settings) []Obstacle {
	if c.Target == config.SettingsOnly || slices.Contains(c.Command, client.Claude.Flags.StrictServers) {
		return nil
	}
	project := own.Projects[c.Dir]
	decided := slices.Concat(project.Enabled, project.Disabled)
	for _, s := range all {
		d := s.Document()
		if d.AllServers {
			return nil
		}
		decided = append(decided, d.Servers...)
	}
	open := slices.DeleteFunc(serversOf(c.Dir), func(name string) bool { return slices.Contains(decided, name) })
	if len(open) == 0 {
		return nil
	}
	return []Obstacle{{
		ServersOpen, ".mcp.json has " + list(open, 3) + ", which nobody approved or refused", dialog,
		fmt.Sprintf(`put "enabledMcpjsonServers": ["%s"] (or disabledMcpjsonServers) into %s/.claude/settings.local.json`,
			strings.Join(open, `", "`), c.Dir),
	}}
}

// openImports returns CLAUDE.md files that import files from outside.
func (c Client) openImports(own *ownFile) []Obstacle {
	if p := own.Projects[c.Dir]; p.ImportsApproved || p.ImportsWarned {
		return nil
	}
	imports := importsOf(c.Dir, c.Env["HOME"])
	if len(imports) == 0 {
		return nil
	}
	return []Obstacle{{
		ImportsOpen, "CLAUDE.md or .claude/rules imports " + list(imports, 3) + " from outside", dialog,
		"run " + c.typed() + " there once and answer, or copy the text into the directory",
	}}
}

// refusals returns settings that make the client open a dialog at its start.
func refusals(all []Settings) []Obstacle {
	var found []Obstacle
	for _, s := range all {
		if s.Kind != Flag || s.Err == nil { // otherwise unreadable says so
			found = append(found, s.Document().Refusals(s.Name)...)
		}
	}
	return found
}

// Refusals returns what the client asks a person about in a settings file of a
// name.
func (d Document) Refusals(name string) []Obstacle {
	const why = "the client opens a dialog at its start, and nobody answers it"
	var found []Obstacle
	if d.Broken != "" {
		found = append(found, Obstacle{SettingsBroken, name + ": " + d.Broken, why, "correct " + name})
	}
	if len(d.Refused) > 0 {
		found = append(found, Obstacle{SettingsRefused, name + ": " + list(d.Refused, 3), why, "correct " + name})
	}
	return found
}

// list joins at most n texts.
func list(texts []string, n int) string {
	if len(texts) <= n {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:n], ", "), len(texts)-n)
}
