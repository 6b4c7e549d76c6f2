package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"heartbeat/config"
	"heartbeat/orchestrator/control"
)

type editCmd struct {
	Agent string `arg:"" optional:"" help:"The agent at whose line the file opens." complete:"agent"`
}

// Help implements kong's HelpProvider.
func (editCmd) Help() string {
	return `Opens the fleet's file in your editor (VISUAL, EDITOR, or vi), at the agent's line. Then
it checks the file, shows what apply would change in the agents' directories and, if the
fleet runs, asks whether to reload it. A file with problems opens at the first one.

Examples:

    heartbeat edit
    heartbeat edit triage
    EDITOR=nano heartbeat edit triage`
}

func (editCmd) act() string { return "edit a configuration" }

func (c editCmd) run(ctx context.Context, a *app) (result, error) {
	if a.Output == "json" {
		return nil, usagef("heartbeat edit", "edit is for people, not for -o json")
	}
	f, inputs, bad := a.load()
	file, line, err := c.place(a, f, bad)
	if err != nil {
		return nil, err
	}
	for {
		if err := a.openEditor(ctx, file, line); err != nil {
			return nil, err
		}
		if bad == nil && inputs.Now() == inputs.Then() {
			return nothing("nothing changed"), nil
		}
		if f, inputs, bad = a.load(); bad == nil {
			break
		}
		if !isTerminal(a.in) {
			return nil, bad
		}
		a.out.printError(bad)
		if !a.agrees("edit it again?") {
			return nil, &failure{status: exitConfig, hint: "heartbeat edit", err: errors.New("cannot use what is in the file now; a run goes on with what it has loaded")}
		}
		if file, line, err = c.place(a, f, bad); err != nil {
			return nil, err
		}
	}
	return c.follow(ctx, a, f)
}

// place is where the editor opens: at an agent, or at the first problem of a file that has
// some.
func (c editCmd) place(a *app, f *config.Fleet, bad error) (file string, line int, err error) {
	if problems, is := errors.AsType[config.Problems](bad); is && len(problems) > 0 {
		return problems[0].File, problems[0].Line, nil
	}
	if bad != nil || c.Agent == "" {
		return a.file(), 1, bad
	}
	agent, err := findAgent(f, c.Agent)
	if err != nil {
		return "", 0, err
	}
	return agent.File, agent.Line, nil
}

// follow shows what a changed file means, and has a running fleet load it if that is wanted.
func (editCmd) follow(ctx context.Context, a *app, f *config.Fleet) (result, error) {
	for _, w := range f.Warnings {
		a.out.warnNow(w.String())
	}
	d, err := diffCmd{}.run(ctx, a)
	if _, differs := errors.AsType[changesFound](err); err != nil && !differs {
		return nil, err
	}
	if err := a.out.emit(d, d.text); err != nil {
		return nil, err
	}
	switch _, err := askStatus(ctx, f); {
	case errors.Is(err, control.ErrNotRunning):
		return nothing(a.file() + " is good; heartbeat run starts the fleet"), nil
	case !isTerminal(a.in) || !a.agrees("the fleet runs: reload it?"):
		return nothing(a.file() + " is good; heartbeat reload has the running fleet use it"), nil
	}
	return reloadCmd{}.run(ctx, a)
}

// agrees asks the person on the terminal; no answer is a no.
func (a *app) agrees(question string) bool {
	a.tell(func(p *page) { p.printf("%s [y/N] ", question) })
	line, _ := bufio.NewReader(a.in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// openEditor has a person edit a file, and returns when they have left the editor. Its
// signals from the terminal are not ours. vi without a terminal waits for good.
func (a *app) openEditor(ctx context.Context, file string, line int) error {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"))
	if editor == "" {
		if !isTerminal(a.in) || !isTerminal(a.stdio.out) {
			return &failure{status: exitError, hint: "export EDITOR=PROGRAM", err: fmt.Errorf("cannot edit %q: there is no terminal, and neither VISUAL nor EDITOR is set", file)}
		}
		editor = "vi"
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", editor + ` "$@"`, "sh"}, opening(editor, file, line)...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.stdio.out, a.stdio.err
	if err := cmd.Run(); err != nil {
		return &failure{status: exitError, hint: "export EDITOR=PROGRAM, one that is installed", err: fmt.Errorf("cannot edit %q with %q: %w", file, editor, err)}
	}
	return nil
}

// opening are the arguments with which an editor opens a file at a line.
func opening(editor, file string, line int) []string {
	name, _, _ := strings.Cut(strings.TrimSpace(editor), " ")
	at := file + ":" + strconv.Itoa(line)
	switch filepath.Base(name) {
	case "code", "code-insiders", "codium", "cursor":
		return []string{"--wait", "--goto", at}
	case "hx", "helix", "subl", "zed":
		return []string{at}
	}
	return []string{"+" + strconv.Itoa(line), file}
}
