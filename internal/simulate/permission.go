package simulate

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/simulate/hooks"
)

// permit decides whether a tool may run: PreToolUse hooks, rules, mode, and
// at last a person. refused is what the model is told instead; the error is
// an aborted turn.
func (s *session) permit(ctx context.Context, c toolCall) (refused string, err error) {
	allowed := false
	pre := event{name: "PreToolUse", matcher: c.name, fields: []field{
		{"tool_name", c.name}, {"tool_input", c.input}, {"tool_use_id", c.id},
	}}
	for _, a := range s.fire(ctx, pre) {
		switch {
		case a.ByExit:
			return fmt.Sprintf("PreToolUse:%s hook error: [%s]: %s", c.name, a.Hook.Shown(), a.Reason), nil
		case a.Block:
			return a.Reason, nil
		case a.Decision.Behavior == "deny":
			return a.Decision.Why, nil
		case a.Decision.Behavior == "allow":
			allowed = true
		}
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	settings, _ := s.store.Look()
	rule := func(r string) bool { return ruleMatches(r, c) }
	switch {
	case slices.ContainsFunc(settings.Deny, rule) && s.broken("deny-rules-ignored"):
		return "", nil
	case slices.ContainsFunc(settings.Deny, rule):
		return "Permission to use " + c.name + " has been denied.", nil
	case c.name == "Read" && s.inside(c): // reading there needs no rule
		return "", nil
	case allowed, slices.ContainsFunc(settings.Allow, rule), slices.ContainsFunc(s.args.allow, rule):
		return "", nil
	}
	return s.byMode(ctx, c)
}

// inside reports whether a tool is called with a file of the workspace.
func (s *session) inside(c toolCall) bool {
	input, _ := c.input.(map[string]any)
	path, _ := input["file_path"].(string)
	rel, err := filepath.Rel(s.project, path)
	return err == nil && filepath.IsLocal(rel)
}

// asksAlways are the tools that are a question to a person.
var asksAlways = []string{"AskUserQuestion", "ExitPlanMode"}

// byMode is what the permission mode says of a tool that no rule knows.
func (s *session) byMode(ctx context.Context, c toolCall) (refused string, err error) {
	question := slices.Contains(asksAlways, c.name)
	switch {
	case s.mode == "dontAsk" && s.broken("dont-ask-allows"):
		return "", nil
	case s.mode == "dontAsk":
		return "Permission to use " + c.name + " has been denied because Claude Code is running in don't ask mode. " +
			"IMPORTANT: You *may* attempt to accomplish this action using other tools that might naturally be used to accomplish this goal.", nil
	case !s.interactive:
		return "Claude requested permissions to use " + c.name + ", but you haven't granted it yet.", nil
	case s.mode == "bypassPermissions" && !question,
		s.mode == "acceptEdits" && editsOnly(c),
		c.name == "Agent":
		return "", nil
	case s.mode == "auto" && !question:
		if c.bash == nil || !compound.MatchString(c.bash.Command) {
			return "", nil
		}
		// Measured behind a base URL: a dialog that no PermissionRequest hook
		// hears of.
		return s.askPerson(ctx, c, nil, "agent_needs_input", "Auto mode can't check actions in this session and needs your choice")
	}
	request := event{name: "PermissionRequest", matcher: c.name, fields: []field{
		{"tool_name", c.name},
		{"tool_input", c.input},
		{"permission_suggestions", []any{
			suggestion{Type: "addDirectories", Directories: []string{s.directory()}, Destination: "session"},
			suggestion{Type: "setMode", Mode: "acceptEdits", Destination: "session"},
		}},
	}}
	return s.askPerson(ctx, c, &request, "permission_prompt", "Claude needs your permission")
}

// suggestion is one of PermissionRequest's permission_suggestions.
type suggestion struct {
	Type        string   `json:"type"`
	Directories []string `json:"directories,omitempty"`
	Mode        string   `json:"mode,omitempty"`
	Destination string   `json:"destination"`
}

// compound is a command of several.
var compound = regexp.MustCompile(`&&|\|\||[;|&\n]`)

// editCommands are what acceptEdits runs without asking.
var editCommands = []string{"touch", "mkdir", "rmdir", "rm", "mv", "cp", "sed"}

func editsOnly(c toolCall) bool {
	if c.bash == nil {
		return c.name == "Edit" || c.name == "Write" || c.name == "NotebookEdit"
	}
	word, _, _ := strings.Cut(strings.TrimSpace(c.bash.Command), " ")
	return slices.Contains(editCommands, word) && !compound.MatchString(c.bash.Command)
}

// askPerson opens the permission dialog, which waits for a key or a
// PermissionRequest hook's decision, whichever is first.
func (s *session) askPerson(ctx context.Context, c toolCall, request *event, kind, words string) (string, error) {
	d, done := s.ask(fmt.Sprintf("%s\n\n  %s\n\nDo you want to proceed?\n ❯ 1. Yes\n   2. No\n\nEsc to cancel", words, encode(c.input)))
	defer done()
	decided := make(chan hooks.Permission, 1)
	hooksOnly, stop := context.WithCancel(ctx)
	defer stop()
	if request != nil {
		s.beside.Go(func() { s.requestPermission(hooksOnly, *request, decided) })
	}
	nobody := time.NewTimer(s.script.AskAfter.Or(6 * time.Second))
	defer nobody.Stop()
	for {
		select {
		case p := <-decided:
			if p.Behavior == "allow" || s.broken("deny-ignored") {
				return "", nil
			}
			if p.Interrupt {
				return "", context.Canceled
			}
			return p.Why, nil
		case answer := <-d.answer:
			if answer == line1 {
				return "", nil
			}
			return "", context.Canceled
		case <-nobody.C:
			s.beside.Go(func() { s.notify(s.life, kind, words) })
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// requestPermission lets the PermissionRequest hooks decide; only an allow or
// a deny in JSON counts.
func (s *session) requestPermission(ctx context.Context, e event, decided chan<- hooks.Permission) {
	for _, a := range s.fire(ctx, e) {
		p := a.Decision
		if p.Behavior != "allow" && p.Behavior != "deny" {
			continue
		}
		if p.Behavior == "deny" && p.Why == "" {
			p.Why = "Permission denied by hook"
		}
		decided <- p
		return
	}
}

// harmless is where a simple command may send what it prints.
var harmless = strings.NewReplacer("2>&1", "", "2>/dev/null", "", ">/dev/null", "", "> /dev/null", "")

// doesMore reports whether a command line does something beside running one simple
// command: several commands, substitutions, redirections. Of such ones the client
// (2.1.329) judges each part; here no rule with a command matches them.
func doesMore(line string) bool {
	quote, rest := rune(0), harmless.Replace(line)
	for i, c := range rest {
		switch {
		case quote == '\'' && c != quote:
		case c == '\\':
			return true // it is not read that finely here
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == '`', c == '$' && (strings.HasPrefix(rest[i+1:], "(") || strings.HasPrefix(rest[i+1:], "{")):
			return true
		case quote == 0 && strings.ContainsRune(";&|\n<>{", c):
			return true
		}
	}
	return quote != 0
}

// ruleMatches reports whether a permission rule is about a call: Tool,
// Tool(*), and of one simple command Bash(exact), Bash(prefix:*) and Bash with * for
// anything.
func ruleMatches(rule string, c toolCall) bool {
	name, arg, has := strings.Cut(strings.TrimSuffix(rule, ")"), "(")
	if ok, err := path.Match(name, c.name); err != nil || !ok {
		return false
	}
	if !has || arg == "*" || arg == "" {
		return true
	}
	if c.bash == nil || doesMore(c.bash.Command) {
		return false
	}
	if prefix, ok := strings.CutSuffix(arg, ":*"); ok {
		return c.bash.Command == prefix || strings.HasPrefix(c.bash.Command, prefix+" ")
	}
	if arg == c.bash.Command+" *" { // with or without something behind it
		return true
	}
	parts := strings.Split(arg, "*")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	ok, err := regexp.MatchString("(?s)^"+strings.Join(parts, ".*")+"$", c.bash.Command)
	return err == nil && ok
}
