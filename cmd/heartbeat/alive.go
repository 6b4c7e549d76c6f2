package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"heartbeat/hook"
	"heartbeat/hook/ask"
	"heartbeat/hook/foreign"
)

type aliveCmd struct {
	Text []string `arg:"" optional:"" help:"What the session is doing, in a few words, for people."`
}

// Help implements kong's HelpProvider.
func (aliveCmd) Help() string {
	return `For scripts inside a session: says that the session lives, and what it is doing. status
shows the words beside the agent, and events has new ones once a minute at most. They are
shown as the agent's own, cut to 200 bytes, and decide nothing.

Use it in scripts that go on in the background while the turn shows nothing. What an agent
does in its turn is a sign of life already, and a running tool is not silence. It restarts
stall-timeout, at most four times in a row while nothing else shows that the session
lives, and no other timeout. It costs no turn.

"heartbeat apply" allows sessions this command and "approval ask", and no other one of
heartbeat's. All that follows alive is text, even if it looks like a flag.

Examples:

    heartbeat alive
    heartbeat alive "half of the tests have passed"`
}

// saidAlive is a sign of life that was given.
type saidAlive struct {
	Session string       `json:"session"`
	Text    foreign.Text `json:"text"`
}

func (c aliveCmd) run(context.Context, *app) (result, error) {
	text := foreign.Cut(strings.Join(c.Text, " "), hook.MaxSaid)
	session, err := hook.SayAlive(os.Getenv, text)
	if errors.Is(err, ask.ErrNoSession) {
		return nil, &failure{
			status: exitNotRunning, err: errors.New("cannot give a sign of life: " + err.Error()),
			hint: "it is for the tools and scripts of an agent's session: heartbeat alive --help",
		}
	}
	return saidAlive{session, foreign.Text(text)}, err
}

func (saidAlive) text(p *page) { p.printf("noted\n") }

// asText has all that follows alive be text, and what follows approval ask but for the
// flags: sessions may run these with any words, and a flag must not make
// another command of them, or run them elsewhere.
func asText(args []string) []string {
	switch {
	case len(args) > 2 && args[0] == "approval" && args[1] == "ask":
		return askAsText(args)
	case len(args) < 2 || args[0] != "alive" || slices.Contains([]string{"-h", "--help", "--"}, args[1]):
		return args
	}
	return slices.Insert(slices.Clone(args), 1, "--")
}

// askAsText puts the flags of approval ask before its question.
func askAsText(args []string) []string {
	flags, words := slices.Clone(args[:2]), []string{}
	for i := 2; i < len(args); i++ {
		name, _, valued := strings.Cut(args[i], "=")
		switch {
		case args[i] == "--":
			words = append(words, args[i+1:]...)
			i = len(args)
		case args[i] == "-h" || args[i] == "--help":
			flags = append(flags, args[i])
		case !slices.Contains([]string{"--category", "--payload", "-o", "--output"}, name):
			words = append(words, args[i])
		case valued || i+1 == len(args):
			flags = append(flags, args[i])
		default:
			flags = append(flags, args[i], args[i+1])
			i++
		}
	}
	return slices.Concat(flags, []string{"--"}, words)
}
