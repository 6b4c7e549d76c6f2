package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"heartbeat/config"
)

// misread says in our words why the parser has not understood a command line, and guesses
// what was meant as it is guessed elsewhere: the parser takes any word for any other that
// differs in two letters.
func misread(err error, root *kong.Node, args []string) error {
	said := err.Error()
	for _, r := range []struct{ said, told string }{
		{`expected \S+ value but got "EOL" \(<EOL>\)$`, "a value is missing"},
		{`missing value, expecting "<arg>.*"$`, "a value is missing"},
		{`^expected "(<[^>]+>).*"$`, "$1 is missing"},
		{`expected a valid \d+ bit u?int but got (".*")$`, "$1 is not a whole number"},
		{`expected \S+ value but got (".*") \((?:short|long) flag\); perhaps try (\S+=)".*"\?$`, "a value is missing before $1; if that is the value, write $2$1"},
		{`bool value must be .* but got `, "true or false, or no value at all, but not "},
		{`,"" but got `, " but got "},
	} {
		said = regexp.MustCompile(r.said).ReplaceAllString(said, r.told)
	}
	var known []string
	before, guess, guessed := strings.Cut(said, ", did you mean ")
	if guessed {
		said = before
		for _, m := range regexp.MustCompile(`"-*([^"]+)"`).FindAllStringSubmatch(guess, -1) {
			known = append(known, m[1])
		}
	}
	if at := commandAt(args); at < len(args) && said == "unexpected argument "+args[at] {
		known = commandNames(root)
	}
	word := strings.TrimLeft(said[strings.LastIndexByte(said, ' ')+1:], "-")
	if near := config.Nearest(word, known); len(word) > 1 && len(near) > 0 {
		dashes := ""
		if strings.HasPrefix(said, "unknown flag --") {
			dashes = "--"
		}
		for i, n := range near {
			near[i] = fmt.Sprintf("%q", dashes+n)
		}
		said += ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return errors.New(said)
}

// commandNames are the commands that are for people.
func commandNames(root *kong.Node) (names []string) {
	for _, c := range root.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}
