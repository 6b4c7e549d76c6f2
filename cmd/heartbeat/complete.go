package main

import (
	"context"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help implements kong's HelpProvider.
func (completionCmd) Help() string {
	return `Examples:

    source <(heartbeat completion bash)                 # in ~/.bashrc
    heartbeat completion zsh > "${fpath[1]}/_heartbeat"
    heartbeat completion fish > ~/.config/fish/completions/heartbeat.fish`
}

// The scripts ask "heartbeat __complete WORDS…", whose last word is the one to
// complete, and read lines of WORD TAB HELP. Nothing to offer means files. They must
// not evaluate what they read: bash's compgen -W runs the commands in it.
var completionScripts = map[string]string{
	"bash": `_heartbeat() {
  # A value behind "=" is a word of its own to bash.
  local word rest glue= skip=
  local -a words=()
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ $word == = && ${#words[@]} -gt 0 && ${words[${#words[@]}-1]} == --* ]]; then
      words[${#words[@]}-1]+== glue=1 skip=${words[${#words[@]}-1]}
    elif [[ $glue ]]; then
      words[${#words[@]}-1]+=$word glue=
    else
      words+=("$word") skip=
    fi
  done
  local typed=${words[${#words[@]}-1]}
  while IFS=$'\t' read -r word rest; do
    [[ $word == "$typed"* ]] && COMPREPLY+=("${word#"$skip"}")
  done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
}
complete -o default -F _heartbeat heartbeat
`,
	"zsh": `#compdef heartbeat
_heartbeat() {
  local -a found
  local line
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then _describe heartbeat found; else _files; fi
}
if [[ $funcstack[1] == _heartbeat ]]; then _heartbeat; else compdef _heartbeat heartbeat; fi
`,
	"fish": `function __heartbeat_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l found (command $words[1] __complete $words[2..-1] 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c heartbeat -f -a '(__heartbeat_complete)'
`,
}

// script is text for a shell.
type script string

func (c completionCmd) run(context.Context, *app) (result, error) {
	return script(completionScripts[c.Shell]), nil
}

func (s script) text(p *page) { p.document([]byte(s)) }

type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// offers are completions.
type offers []offer

type offer struct {
	Word string `json:"word"`
	Help string `json:"help"`
}

func (o offers) text(p *page) {
	for _, c := range o {
		p.printf("%s\t%s\n", c.Word, c.Help)
	}
}

func (c completeCmd) run(_ context.Context, a *app) (result, error) {
	parser, err := newParser(&cli{}, a.stdio, func() {})
	if err != nil {
		return nil, err
	}
	found := complete(parser.Model.Node, c.Words, a.completeNames)
	if found == nil {
		found = offers{}
	}
	return found, nil
}

// complete walks the grammar along the words and offers what the last one may
// become. names lists the words of a kind (the tag complete).
func complete(node *kong.Node, words []string, names func(kind string, words []string) offers) offers {
	if len(words) == 0 {
		words = []string{""}
	}
	done, last := words[:len(words)-1], words[len(words)-1]
	var placed []string // the arguments so far, without flags
	for i := 0; i < len(done); i++ {
		word := done[i]
		switch {
		case word == "--" || node.Passthrough:
			return nil
		case strings.HasPrefix(word, "-"):
			if f := flagNamed(node, word); f != nil && takesValue(f) && !strings.Contains(word, "=") {
				if i++; i == len(done) {
					return matching(valueOffers(f.Value, done, names), last)
				}
			}
		default:
			if child := childNamed(node, word); child != nil {
				node, placed = child, nil
			} else {
				placed = append(placed, word)
			}
		}
	}
	if node.Passthrough {
		return nil
	}
	if strings.HasPrefix(last, "-") {
		return matching(flagOffers(node, done, last, names), last)
	}
	return matching(append(commandOffers(node), positionalOffers(node, placed, done, names)...), last)
}

func commandOffers(node *kong.Node) offers {
	var found offers
	for _, c := range node.Children {
		if !c.Hidden {
			found = append(found, offer{c.Name, c.Help})
		}
	}
	return found
}

func positionalOffers(node *kong.Node, placed, words []string, names func(string, []string) offers) offers {
	if len(node.Positional) == 0 {
		return nil
	}
	if len(node.Positional) == 3 && node.Positional[1].Name == "action" {
		return actionOffers(node.Positional, placed, words, names)
	}
	position := len(placed)
	p := node.Positional[min(position, len(node.Positional)-1)]
	if position >= len(node.Positional) && !p.IsSlice() {
		return nil
	}
	return valueOffers(p, words, names)
}

// actionOffers are those of AGENT ACTION ID…, in which ACTION may come first, and
// AGENT may be left out then.
func actionOffers(p []*kong.Positional, placed, words []string, names func(string, []string) offers) offers {
	agents, actions := valueOffers(p[0], words, names), valueOffers(p[1], words, names)
	isAction := func(i int) bool {
		return i < len(placed) && slices.ContainsFunc(actions, func(o offer) bool { return o.Word == placed[i] })
	}
	first := isAction(0)
	switch {
	case len(placed) == 0:
		return append(agents, actions...)
	case len(placed) == 1 && !first:
		return actions
	case first && placed[0] == "list" || isAction(1) && placed[1] == "list":
		if len(placed) == 1 {
			return agents
		}
		return nil
	}
	ids := valueOffers(p[2], words, names)
	if len(placed) == 1 {
		return append(ids, agents...)
	}
	return ids
}

// flagOffers are the flags of a command and its parents, or, after "--flag=", the
// values.
func flagOffers(node *kong.Node, words []string, last string, names func(string, []string) offers) offers {
	var found offers
	if name, _, ok := strings.Cut(last, "="); ok {
		if f := flagNamed(node, name); f != nil {
			for _, v := range valueOffers(f.Value, words, names) {
				found = append(found, offer{name + "=" + v.Word, v.Help})
			}
		}
		return found
	}
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			found = append(found, offer{"--" + f.Name, f.Help})
		}
	}
	return found
}

func valueOffers(v *kong.Value, words []string, names func(string, []string) offers) offers {
	if v.Enum != "" {
		return names(v.Enum, words)
	}
	return names(v.Tag.Get("complete"), words)
}

func matching(all offers, prefix string) offers {
	var found offers
	for _, o := range all {
		if strings.HasPrefix(o.Word, prefix) {
			found = append(found, o)
		}
	}
	return found
}

func flagNamed(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if f.Name == name || len(name) == 1 && f.Short == rune(name[0]) {
				return f
			}
		}
	}
	return nil
}

func takesValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

func childNamed(node *kong.Node, name string) *kong.Node {
	for _, c := range node.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}
