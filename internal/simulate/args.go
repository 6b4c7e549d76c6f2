package simulate

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// arguments is the command line. The client's own flags that mean nothing
// here are accepted as --flag=value.
type arguments struct {
	prompt         string
	sessionID      string
	resume         string
	continueLast   bool
	fork           bool
	mode           string
	bypass         bool
	settings       string
	settingSources []string // nil: all
	model          string
	allow          []string
	print          bool // -p
	version        bool
	help           bool

	script       string
	api          bool
	broken       []string // see faults
	given        []string // the whole command line
	home         string
	requireTrust bool
	maxTime      time.Duration
}

const usageScript = `  {"think": "50ms", "rules": [
    {"match": "flaky", "times": 1, "once-file": "tried",
     "steps": [{"fail": "server_error"}]},
    {"regexp": "^Review", "steps": [
      {"tool": "Bash", "command": "ls"}, {"delay": "1s"},
      {"reply": "reviewed: {first}"}]}]}
`

const usage = `usage: simulate [options] [--] [PROMPT]

A stand-in for the Claude Code client: it runs the hooks of the settings files
as the client does, and answers prompts from a script instead of a model.

  -p, --print             one prompt, the reply on stdout; needs no terminal
  --session-id UUID       start this session
  --resume ID, --continue go on with a session; --fork-session: under a new id
  --permission-mode MODE  default, acceptEdits, auto, dontAsk, plan,
                          bypassPermissions
  --settings FILE|JSON    more settings, read once
  --setting-sources LIST  of user,project,local
  --model NAME, --allowedTools RULES, --version

of the stand-in alone:
  --script FILE           what the model does, see below
  --api                   ask the API at ANTHROPIC_BASE_URL instead, with the
                          key or token of the environment
  --home DIR              use DIR as HOME; it is made
  --require-trust         ask before the first session in a directory
  --max-time DURATION     end after this time (24h)
  --broken FAULT          do one thing otherwise than the client: no-hook=Stop,
                          exit-2-twice and others; --broken x lists them

a script is one JSON object; the first rule that fits a prompt answers it:

` + usageScript + `
a step is one of
  "reply": TEXT           say it, and end the turn unless steps follow;
                          {first} is the prompt's first line, {prompt} all of it
  "delay": "1s"           think that long
  "await": FILE           think until this file is there
  "tool": "Bash", "command": CMD      call a tool
  "background": CMD       a tool that runs in the background
  "subagent": TEXT, "for": "1s"       a subagent that answers this after a while
  "fail": KIND            the API fails: rate_limit, server_error,
                          authentication_failed, invalid_request and others
  "hang": true            the API never answers
  "crash": true           the client is killed
  "exit": 3               the client ends with this status
  "print": TEXT           bytes for the terminal
Without a rule that fits the answer is "done: " and the prompt's first line.

environment: SIMULATE_LOG=FILE gets a JSON line for every request to the model,
SIMULATE_BILL=FILE one for what each answer has cost.

Examples:

  heartbeat simulate -p "Say hello"
  heartbeat simulate --script script.json -- "Review the change"
`

// parseArguments reads the command line. An unknown flag is passed over, with
// its value only in the form --flag=value.
func parseArguments(args []string) (*arguments, error) {
	a := &arguments{given: args}
	var mode, sources string
	fs := a.flags(&mode, &sources)
	words, err := parseFlags(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		a.help = true
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	if isSet(fs, "setting-sources") {
		split := strings.FieldsFunc(sources, func(r rune) bool { return r == ',' || r == ' ' })
		a.settingSources = append([]string{}, split...) // not nil: none
	}
	a.prompt = strings.Join(words, " ")
	if err := a.checkBroken(); err != nil {
		return nil, err
	}
	if slices.Contains(a.broken, "settings-ignored") {
		a.settings = ""
	}
	if slices.Contains(a.broken, "sources-ignored") {
		a.settingSources = nil
	}
	return a, a.setMode(mode)
}

// flags are the flags that are known, the client's and our own.
func (a *arguments) flags(mode, sources *string) *flag.FlagSet {
	fs := flag.NewFlagSet("simulate", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&a.sessionID, "session-id", "", "")
	fs.StringVar(&a.resume, "resume", "", "")
	fs.StringVar(&a.resume, "r", "", "")
	fs.BoolVar(&a.continueLast, "continue", false, "")
	fs.BoolVar(&a.continueLast, "c", false, "")
	fs.BoolVar(&a.fork, "fork-session", false, "")
	fs.StringVar(mode, "permission-mode", "", "")
	fs.BoolVar(&a.bypass, "dangerously-skip-permissions", false, "")
	fs.StringVar(&a.settings, "settings", "", "")
	fs.StringVar(sources, "setting-sources", "", "")
	fs.StringVar(&a.model, "model", "claude-opus-5-5", "")
	rules := func(v string) error { a.allow = append(a.allow, splitRules(v)...); return nil }
	fs.Func("allowedTools", "", rules)
	fs.Func("allowed-tools", "", rules)
	fs.BoolVar(&a.print, "p", false, "")
	fs.BoolVar(&a.print, "print", false, "")
	fs.BoolVar(&a.version, "version", false, "")
	fs.BoolVar(&a.version, "v", false, "")
	fs.StringVar(&a.script, "script", "", "")
	fs.BoolVar(&a.api, "api", false, "")
	fs.Func("broken", "", func(v string) error { a.broken = append(a.broken, v); return nil })
	fs.StringVar(&a.home, "home", "", "")
	fs.BoolVar(&a.requireTrust, "require-trust", false, "")
	fs.DurationVar(&a.maxTime, "max-time", 24*time.Hour, "")
	return fs
}

// parseFlags parses flags and words in any order, and passes over unknown
// flags. After -- everything is a word.
func parseFlags(fs *flag.FlagSet, args []string) (words []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			return append(words, args[1:]...), nil
		case len(arg) < 2 || arg[0] != '-':
			words, args = append(words, arg), args[1:]
			continue
		}
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if fs.Lookup(name) == nil && name != "h" && name != "help" {
			args = args[1:]
			continue
		}
		if err := fs.Parse(oneFlag(fs, name, args)); err != nil {
			return nil, fmt.Errorf("%w\n\n%s", err, "see --help")
		}
		args = args[len(oneFlag(fs, name, args)):]
	}
	return words, nil
}

// oneFlag is the part of args that the flag at their head takes.
func oneFlag(fs *flag.FlagSet, name string, args []string) []string {
	f := fs.Lookup(name)
	if f == nil || strings.Contains(args[0], "=") || len(args) == 1 {
		return args[:1]
	}
	if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
		return args[:1]
	}
	return args[:2]
}

func isSet(fs *flag.FlagSet, name string) (set bool) {
	fs.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// splitRules splits permission rules at commas and blanks outside
// parentheses.
func splitRules(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth == 0 && (r == ',' || r == ' ')
	})
}

// modes are the permission modes; manual is another name of default.
var modes = []string{"default", "acceptEdits", "auto", "dontAsk", "plan", "bypassPermissions"}

func (a *arguments) setMode(mode string) error {
	if mode == "manual" {
		mode = "default"
	}
	if a.bypass {
		mode = "bypassPermissions"
	}
	if mode != "" && !slices.Contains(modes, mode) {
		return fmt.Errorf("option '--permission-mode <mode>' argument '%s' is invalid. Allowed choices are %s", mode, strings.Join(modes, ", "))
	}
	a.mode = mode
	return nil
}
