package main

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"heartbeat/config"
)

// The topics, a file each: "# NAME: what it is about", then its text.
//
//go:embed help/*.md
var topicFiles embed.FS

type helpCmd struct {
	Topic string `arg:"" optional:"" complete:"topic" help:"A topic, or a command; the list of topics without one."`
}

// Help implements kong's HelpProvider.
func (helpCmd) Help() string {
	return `Explains a topic, or lists the topics. Each has an example under examples/ that
runs without an account. "heartbeat help COMMAND" is "heartbeat COMMAND --help".

Examples:

    heartbeat help
    heartbeat help triggers`
}

// topic is one text of the help.
type topic struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Text    string `json:"text,omitempty"`
}

// topics returns all of them, in the order of their names, without their texts.
type topics []topic

func (c helpCmd) run(context.Context, *app) (result, error) {
	all, err := readTopics()
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == c.Topic {
			return all[i], nil
		}
		all[i].Text = ""
	}
	if c.Topic != "" {
		hint := "heartbeat help lists the topics"
		var names []string
		for _, o := range topicOffers() {
			names = append(names, o.Word)
		}
		if near := config.Nearest(c.Topic, names); len(near) > 0 {
			hint = "heartbeat help " + strings.Join(near, ", or heartbeat help ")
		}
		return nil, usagef(cmp.Or(elsewhere[c.Topic], hint), "there is no topic or command %q", c.Topic)
	}
	return all, nil
}

func readTopics() (topics, error) {
	paths, err := fs.Glob(topicFiles, "help/*.md")
	if err != nil {
		return nil, err
	}
	all := make(topics, 0, len(paths))
	for _, p := range paths {
		text, err := topicFiles.ReadFile(p)
		if err != nil {
			return nil, fmt.Errorf("cannot read a topic of the help: %w", err)
		}
		name := strings.TrimSuffix(path.Base(p), ".md")
		title, _, _ := strings.Cut(string(text), "\n")
		all = append(all, topic{name, strings.TrimPrefix(title, "# "+name+": "), string(text)})
	}
	return all, nil
}

// text prints it as it is written, for 80 columns; on a narrower terminal what is prose in
// it is wrapped, and lines that are indented, which are commands and tables, are not.
func (t topic) text(p *page) {
	if p.columns == 0 || p.columns >= pageColumns {
		p.document([]byte(t.Text))
		return
	}
	var paragraph []string
	flush := func() {
		if len(paragraph) == 0 {
			return
		}
		indent := ""
		if strings.HasPrefix(paragraph[0], "- ") {
			indent = "  "
		}
		for i, line := range wrap(strings.Join(paragraph, " "), p.columns-len(indent)) {
			if i > 0 {
				line = indent + line
			}
			p.document([]byte(line + "\n"))
		}
		paragraph = nil
	}
	for line := range strings.Lines(t.Text) {
		switch prose := strings.TrimSpace(line); {
		case prose == "", strings.HasPrefix(line, "    "):
			flush()
			p.document([]byte(line))
		default:
			if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "#") {
				flush()
			}
			paragraph = append(paragraph, prose)
		}
	}
	flush()
}

func (t topics) text(p *page) {
	p.saidf("Topics, each with an example that runs without an account:")
	p.printf("\n")
	for _, one := range t {
		p.printf("  %-14s %s\n", one.Name, one.Summary)
	}
	p.printf("\n")
	p.saidf("heartbeat help TOPIC prints one; heartbeat --help lists the commands.")
}

// topicOffers are the topics and commands as completions.
func topicOffers() (found offers) {
	all, _ := readTopics() // a person who presses TAB wants no error
	for _, t := range all {
		found = append(found, offer{t.Name, t.Summary})
	}
	for _, c := range subcommands {
		if c.help != "" && !slices.ContainsFunc(found, func(o offer) bool { return o.Word == c.name }) {
			found = append(found, offer{c.name, c.help})
		}
	}
	return found
}

// helpOf turns "help COMMAND…" into "COMMAND… --help", unless there is a topic of that
// name.
func helpOf(root *kong.Node, args []string) []string {
	at := commandAt(args)
	if at >= len(args) || args[at] != "help" {
		return args
	}
	rest := args[at+1:]
	named := commandAt(rest)
	if named >= len(rest) || childNamed(root, rest[named]) == nil {
		return args
	}
	if all, err := readTopics(); err == nil && slices.ContainsFunc(all, func(t topic) bool { return t.Name == rest[named] }) {
		return args
	}
	return slices.Concat(args[:at], rest, []string{"--help"})
}
