package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"heartbeat/config"
)

// globals are the flags that every command takes.
type globals struct {
	File              string        `short:"f" placeholder:"FILE" env:"HEARTBEAT_FILE" group:"global" help:"The fleet's file (heartbeat.yaml here; otherwise, from here upwards, the file of the fleet that has an agent in the folder, or heartbeat.yaml in it)." complete:"file"`
	Output            string        `short:"o" placeholder:"FORMAT" enum:"text,json" default:"text" group:"global" help:"How to print the result: text or json."`
	Host              []string      `placeholder:"HOST" sep:"none" group:"global" help:"Run the command on another machine, by ssh: user@name, or a name of ssh's configuration. status takes several."`
	LogLevel          *logLevel     `placeholder:"LEVEL" group:"global" help:"What to log on stderr: debug, info (the default), warn or error." complete:"debug,info,warn,error"`
	LogFormat         string        `placeholder:"FORMAT" enum:",text,json" default:"" group:"global" help:"How to log: text (the default) or json. With this flag or --log-level run logs on a terminal, too."`
	HeartbeatMS       milliseconds  `name:"heartbeat-ms" placeholder:"MS" default:"10000" group:"global" help:"With -o json: print a line that says the command is still running every MS milliseconds (${default}); 0: never."`
	HeartbeatInterval time.Duration `placeholder:"DURATION" default:"10s" group:"global" help:"Without a terminal: print a line on stderr that says how far a long command is, every so often (${default}); 0: never."`
}

// beatEvery is how often a line says that the command is still running; 0: never.
func (g globals) beatEvery() time.Duration { return time.Duration(g.HeartbeatMS) * time.Millisecond }

// level is the lowest level that is logged.
func (g globals) level() slog.Level {
	if g.LogLevel == nil {
		return slog.LevelInfo
	}
	return slog.Level(*g.LogLevel)
}

// forPeople reports whether a run tells people what it does, instead of logging it.
func (g globals) forPeople(stderr *os.File) bool {
	return g.Output != "json" && g.LogFormat == "" && g.LogLevel == nil && isTerminal(stderr)
}

// cli are the flags of the command line that come before a command or behind it.
type cli struct {
	globals
	ShowVersion bool `name:"version" group:"global" help:"Print the version, as the command does."`
}

// subcommand is a command as the grammar has it.
type subcommand struct {
	name, group, help string
	tags              []string
	fields            func() any // its flags and arguments, new
}

func of[C command](name, group, help string, tags ...string) subcommand {
	return subcommand{name, group, help, tags, func() any { return new(C) }}
}

// subcommands are in the order of the help.
var subcommands = []subcommand{
	of[initCmd]("init", "fleet", "Write a starter heartbeat.yaml."),
	of[editCmd]("edit", "fleet", "Edit the fleet's file, check it, and reload a fleet that runs."),
	of[validateCmd]("validate", "fleet", "Check the fleet's file and report all problems at once."),
	of[applyCmd]("apply", "fleet", "Set up the agents' directories: hooks, permissions, folders."),
	of[diffCmd]("diff", "fleet", "Show what apply would change, as a unified diff."),
	of[unapplyCmd]("unapply", "fleet", "Undo what apply did."),
	of[runCmd]("run", "fleet", "Run the fleet: fire triggers, start a session wherever work is queued."),
	of[pauseCmd]("pause", "fleet", "Pause agents: nothing new is started for them."),
	of[resumeCmd]("resume", "fleet", "Let held or paused agents continue."),
	of[restartCmd]("restart", "fleet", "End sessions after their turns, for new ones."),
	of[cancelCmd]("cancel", "fleet", "End the turn that an agent is in, and give its prompt up."),
	of[triggerCmd]("trigger", "fleet", "Fire an agent's trigger now."),
	of[stopCmd]("stop", "fleet", "End the running scheduler and wait for its end."),
	of[reloadCmd]("reload", "fleet", "Make the running scheduler load the fleet's file again."),
	of[nextCmd]("next", "fleet", "Show the next fires."),
	of[statusCmd]("status", "fleet", "Show what each agent does, what is queued, and why."),
	of[historyCmd]("history", "fleet", "Show past sessions and dead letters."),
	of[usageCmd]("usage", "fleet", "Show what sessions have cost: turns, tokens, dollars."),
	of[seriesCmd]("series", "fleet", "Show what agents did over time: queue, prompts, turns, cost."),
	of[eventsCmd]("events", "fleet", "Print the journal, or follow it."),
	of[logsCmd]("logs", "fleet", "Print what an agent said and did, or follow it."),
	of[repliesCmd]("replies", "fleet", "Print what agents replied, or follow it."),
	of[doctorCmd]("doctor", "fleet", "Find what would keep the fleet from working, and repair what can be."),
	of[notifyCmd]("notify", "fleet", "Send a test notice to each target, or show which notices were sent."),
	of[pageCmd]("page", "fleet", "Let a browser see the fleet's page: make a link, list tokens, revoke them."),
	of[attachCmd]("attach", "fleet", "Join the terminal of an agent's live session."),
	of[screenCmd]("screen", "fleet", "Print what the terminal of an agent's live session shows."),
	of[sendCmd]("send", "queue", "Queue a prompt for an agent."),
	of[inboxCmd]("inbox", "queue", "List an agent's queue, or drop entries from it."),
	of[deadLetterCmd]("dead-letter", "queue", "List entries that were given up, queue them again, or delete them."),
	of[approvalCmd]("approval", "fleet", "Say yes or no to what agents ask for."),
	of[answerCmd]("answer", "queue", "Tell a queue that asks a person where to continue."),
	of[recoverCmd]("recover", "queue", "Recover an entry whose session is gone."),
	of[backupCmd]("backup", "other", "Write a backup of the fleet's store."),
	of[restoreCmd]("restore", "other", "Put a backup in the place of the fleet's store."),
	of[aliveCmd]("alive", "other", "From inside a session: say that it lives, and what it is doing."),
	of[launchCmd]("launch", "other", "Run one command in a pseudo-terminal and leave nothing behind."),
	of[serviceCmd]("service", "other", "Run the fleet as a service of this machine: install, uninstall, status."),
	of[simulateCmd]("simulate", "other", "Stand in for the Claude Code client, without an account.", `passthrough:""`),
	of[explainCmd]("explain", "other", "Say what a word of status, events or doctor means, and what to do."),
	of[helpCmd]("help", "other", "Explain a topic: triggers, orphans, limits and others."),
	of[schemaCmd]("schema", "other", "Print the JSON Schema of heartbeat.yaml."),
	of[completionCmd]("completion", "other", "Print the completion script of a shell."),
	of[manCmd]("man", "other", "Print the manual page."),
	of[versionCmd]("version", "other", "Print the version."),
	of[serveProbeCmd]("__probe", "other", "", `hidden:""`),
	of[completeCmd]("__complete", "other", "", `hidden:""`, `passthrough:""`),
}

const description = `Run a fleet of Claude Code agents unattended, from one file.

Exit status: 0 ok, 1 error, 2 wrong usage, 3 not running, 75 parked,
78 bad configuration, 124 timed out, 125 stalled; otherwise a child's own.`

// groups are the headings of the help.
var groups = []kong.Group{
	{Key: "fleet", Title: "The fleet:"},
	{Key: "queue", Title: "Queues:"},
	{Key: "other", Title: "Other:"},
	{Key: "global", Title: "Flags of every command:"},
}

// parsed is a command line that was understood.
type parsed struct {
	cli     *cli
	command command
	name    string // of the command
	done    bool   // help was printed; there is nothing to run
}

func parse(args []string, std stdio) (parsed, error) {
	p := parsed{cli: &cli{}}
	parser, err := parserOf(named(args), p.cli, std, func() { p.done = true })
	if err != nil {
		return p, err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if err := followsFile(args); err != nil {
		return p, err
	}
	ctx, err := parser.Parse(withFollow(helpOf(parser.Model.Node, args)))
	if p.done {
		return p, nil
	}
	switch {
	case err != nil && asksVersion(ctxOf(err), args), err == nil && p.cli.ShowVersion:
		p.command = versionCmd{}
		return p, nil
	case isUnprinted(err):
		return p, err
	case err != nil:
		return p, usageFailure(ctxOf(err), err, parser.Model.Node, args)
	}
	p.name = ctx.Selected().Name
	p.command = ctx.Selected().Target.Addr().Interface().(command)
	return p, nil
}

// named is the command that a command line has, or all of them if that has none. Most
// commands take less time than the parser of all would.
func named(args []string) []subcommand {
	if at := commandAt(args); at < len(args) && args[at] != "help" {
		if i := slices.IndexFunc(subcommands, func(s subcommand) bool { return s.name == args[at] }); i >= 0 {
			return subcommands[i : i+1]
		}
	}
	return subcommands
}

// newParser builds the parser of all commands.
func newParser(c *cli, std stdio, helped func()) (*kong.Kong, error) {
	return parserOf(subcommands, c, std, helped)
}

// parserOf builds the parser of some commands. It calls helped after it printed help:
// kong would end the process there.
func parserOf(commands []subcommand, c *cli, std stdio, helped func()) (*kong.Kong, error) {
	options := []kong.Option{
		kong.Name("heartbeat"), kong.Description(description), kong.ExplicitGroups(groups),
		kong.Writers(unread{stdout{std.out}}, std.err), kong.Exit(func(int) { helped() }),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.NamedMapper("seconds", kong.MapperFunc(decodeSeconds)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, FlagsLast: true, WrapUpperBound: 80}),
	}
	for _, s := range commands {
		options = append(options, kong.DynamicCommand(s.name, s.help, s.group, s.fields(), append(s.tags, `cmd:""`)...))
	}
	return kong.New(c, options...)
}

// unread is a writer of help: a reader that has seen enough, like head, is no
// error.
type unread struct{ io.Writer }

// Write implements io.Writer.
func (u unread) Write(p []byte) (int, error) {
	n, err := u.Writer.Write(p)
	if gone(err) {
		return len(p), nil
	}
	return n, err
}

// asksVersion reports whether a command line without a command has --version.
func asksVersion(ctx *kong.Context, args []string) bool {
	return (ctx == nil || ctx.Selected() == nil) && slices.Contains(args, "--version")
}

func ctxOf(err error) *kong.Context {
	if p, ok := errors.AsType[*kong.ParseError](err); ok {
		return p.Context
	}
	return nil
}

// dashed matches what the parser says about a text that begins with a dash and
// cannot be a flag.
var dashed = regexp.MustCompile(`unknown flag -(?:[^-a-z]|\S*\s)`)

// usageFailure is a command line that was not understood. The hint names the help
// of the command that was meant, as far as it is known.
func usageFailure(ctx *kong.Context, err error, root *kong.Node, args []string) error {
	help := "heartbeat --help"
	err = misread(err, root, args)
	if at := commandAt(args); at < len(args) && childNamed(root, args[at]) == nil && elsewhere[args[at]] != "" {
		help = elsewhere[args[at]]
		err = fmt.Errorf("unexpected argument %s", args[at]) // and no other guess of the parser's
	}
	if ctx != nil {
		if node := ctx.Selected(); node != nil {
			help = node.FullPath() + " --help"
			if node.Name == "send" && dashed.MatchString(err.Error()) {
				help += `; a prompt that begins with a dash stands behind --: heartbeat send AGENT -- "TEXT"`
			}
		}
	}
	if strings.HasPrefix(err.Error(), "unknown flag --json") {
		help = "-o json prints JSON"
	}
	return &failure{status: exitUsage, hint: help, err: fmt.Errorf("cannot parse the command line: %w", err)}
}

// usagef returns wrong usage that the grammar cannot express.
func usagef(hint, format string, args ...any) error {
	return &failure{status: exitUsage, hint: hint, err: fmt.Errorf("cannot parse the command line: "+format, args...)}
}

// wantsJSON looks for -o json before anything is parsed, because a command line
// that cannot be parsed gets its envelope too.
func wantsJSON(args []string) bool {
	found := false
	if at := commandAt(args); at < len(args) && args[at] == "__complete" {
		args = args[:at] // what follows are words of a line that somebody types
	}
	for i, arg := range args {
		if arg == "--" {
			break
		}
		value, ok := strings.CutPrefix(arg, "--output=")
		if !ok && (arg == "-o" || arg == "--output") && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if !ok && strings.HasPrefix(arg, "-o") {
			value, ok = strings.TrimPrefix(arg[2:], "="), true
		}
		if ok {
			found = value == "json"
		}
	}
	return found
}

// logLevel is the lowest level that is logged.
type logLevel slog.Level

// Decode implements kong's MapperValue.
func (l *logLevel) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("level", &text); err != nil {
		return err
	}
	level, ok := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[strings.ToLower(text)]
	if !ok {
		return fmt.Errorf("%q is not a level: write debug, info, warn or error", text)
	}
	*l = logLevel(level)
	return nil
}

// milliseconds is a flag's value that is not negative.
type milliseconds int64

// Decode implements kong's MapperValue.
func (m *milliseconds) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("milliseconds", &text); err != nil {
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > int64(24*time.Hour/time.Millisecond) {
		return fmt.Errorf("%q is not a number of milliseconds from 0 to a day", text)
	}
	*m = milliseconds(n)
	return nil
}

// decodeDuration reads a duration as the fleet's file has it: with a unit.
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	return decodeAs(config.ParseDuration, ctx, target)
}

// decodeSeconds reads a duration that may be bare seconds, as heartbeat-rs's flags take.
func decodeSeconds(ctx *kong.DecodeContext, target reflect.Value) error {
	return decodeAs(parseSeconds, ctx, target)
}

func decodeAs(parse func(string) (time.Duration, error), ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := parse(text)
	if err != nil {
		return err
	}
	target.SetInt(int64(d))
	return nil
}

func parseSeconds(text string) (time.Duration, error) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 {
		return time.Duration(n) * time.Second, nil
	}
	d, err := config.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration, like 90s, 30m, 1h30m or a number of seconds", text)
	}
	return d, nil
}
