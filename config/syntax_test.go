package config

import (
	"strings"
	"testing"
)

// TestTheLineThatBreaksTheFile (found by a user: for the commonest mistakes the
// line was that where the block begins, and nothing said what to do).
func TestTheLineThatBreaksTheFile(t *testing.T) {
	t.Parallel()
	const head = "version: 1\nagents:\n  a:\n    dir: a\n    trigger:\n      cron: '@daily'\n"
	for _, tt := range []struct{ name, text, want string }{
		{
			"one space too few", head + "      prompt: x\n  b:\n   dir: b\n    trigger:\n      cron: '@daily'\n      prompt: y\n",
			`10:5: its indentation, 4 spaces, matches no line above (lines above it: dir with 3 spaces, b with 2 spaces, agents with no space)`,
		},
		{
			"one space too few before the second trigger", head + "      prompt: x\n  b:\n    dir: b\n   trigger:\n      cron: '@daily'\n      prompt: y\n",
			`10:4: its indentation, 3 spaces, matches no line above (lines above it: dir with 4 spaces, b with 2 spaces, agents with no space)`,
		},
		{
			"one space too many", head + "       prompt: x\n",
			`7:8: its indentation, 7 spaces, matches no line above (lines above it: cron with 6 spaces, trigger with 4 spaces, a with 2 spaces)`,
		},
		{
			"a list that hangs out", head + "      prompt: x\n    permissions:\n      allow:\n        - Read\n       - Edit\n",
			`11:8: its indentation, 7 spaces, matches no line above (lines above it: - Read with 8 spaces, allow with 6 spaces, permissions with 4 spaces)`,
		},
		{
			"quotes in quotes", head + "      prompt: \"say \"hello\" to all\"\n  b: {dir: b}\n",
			`7:7: there is text after the closing quote (write \" for a " inside of "…", and '' for a ' inside of '…')`,
		},
		{
			"an apostrophe in quotes", head + "      prompt: 'what's new?'\n",
			`7:7: there is text after the closing quote (write \" for a " inside of "…", and '' for a ' inside of '…')`,
		},
		{
			"a quote that is not closed", head + "      prompt: \"what is new?\n  b: {dir: b}\n  c:\n    dir: \"c\"\n",
			`7:7: the quote that begins here is not closed (end the text with ")`,
		},
		{
			"a colon in a text", head + "      prompt: Review: what is new\n  b: {dir: b}\n",
			`7:7: mapping values are not allowed in this context (put the text after the first colon in quotes: a colon and a space begin a mapping)`,
		},
		{
			"a list that is not closed", head + "      prompt: x\n    permissions:\n      allow: [Read, Edit\n  b:\n    dir: b\n",
			`9:7: did not find expected ',' or ']' (the [ that begins here needs its ])`,
		},
		{
			"a character with a meaning", head + "      prompt: @README.md\n",
			`7:7: found character that cannot start any token (put it in quotes: a bare @ means something else)`,
		},
		{
			"behind texts and lists of several lines",
			head + "      prompt: |\n        several:\n         lines\n" + "    permissions:\n      allow: [\n        Read,\n        Edit,\n      ]\n    env: {A: \"x\n      y\"}\n   mode: drain\n",
			`17:4: its indentation, 3 spaces, matches no line above (lines above it: env with 4 spaces, a with 2 spaces, agents with no space)`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := problemsOf(t, write(t, tt.text))
			if len(got) != 1 || got[0] != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestAMistakeInAHugeFile is told of as in a small one: a search that tried
// every line would outlast the test's own limit.
func TestAMistakeInAHugeFile(t *testing.T) {
	t.Parallel()
	text := "version: 1\nagents:\n" + strings.Repeat("  a:\n    dir: a\n", 4_000) + "   oops: 1\n" + strings.Repeat("  b:\n    dir: b\n", 4_000)
	if got := problemsOf(t, write(t, text)); len(got) != 1 || !strings.HasPrefix(got[0], "8003:4: ") {
		t.Error(got)
	}
}
