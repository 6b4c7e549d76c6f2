package watch

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		glob     string
		matches  []string
		not      []string
		enters   []string
		entersNo []string
	}{
		{"*.md", []string{"a.md"}, []string{"a.txt", "in/a.md"}, []string{"."}, []string{"in", ".git"}},
		{
			"incoming/**/*.md",
			[]string{"incoming/a.md", "incoming/b/c/a.md"},
			[]string{"a.md", "incoming/a.txt", "incoming/.git/a.md", "incoming/x/.heartbeat/a.md"},
			[]string{".", "incoming", "incoming/b", "incoming/b/c"},
			[]string{"other", "incoming2", "incoming/.git", ".claude"},
		},
		{"a/b/*", []string{"a/b/c"}, []string{"a/c", "a/b/c/d"}, []string{"a", "a/b"}, []string{"a/b/c", "b", "a/c"}},
		{"{a,b/c}/*.md", []string{"a/x.md", "b/c/x.md"}, []string{"c/x.md"}, []string{"a", "b", "b/c"}, nil},
		{"**", []string{"a", "a/b"}, []string{".git/config", "a/.claude/settings.json"}, []string{"a", "a/b/c"}, []string{".git", "a/.heartbeat"}},
		{".claude/**", []string{".claude/a", ".claude/b/c"}, []string{".claude/.git/x", "a"}, []string{".claude", ".claude/b"}, []string{".git", "a"}},
		{"**/.git/HEAD", []string{".git/HEAD", "sub/.git/HEAD"}, []string{".claude/.git/HEAD"}, []string{"sub", "sub/.git"}, nil},
		{`a\*b/*`, []string{"a*b/c"}, []string{"axb/c"}, []string{"a*b"}, nil},
		{"[ab]/x", []string{"a/x"}, []string{"c/x"}, []string{"a", "b"}, nil},
		{
			"in/**",
			[]string{"in/a.md", "in/.env", "in/a.swp", "in/.swp", "in/a#", "in/~", "in/x.tmp", "in/.a.swift", "in/# notes.md"},
			[]string{"in/.a.md.swp", "in/.a.swx", "in/a.md~", "in/#a.md#", "in/.#a.md", "in/b/.~lock.a.odt#", "in/~$a.docx", "in/.a.md.kate-swp", "in/a.md___jb_tmp___", "in/.goutputstream-A1B2C3"},
			nil, nil,
		},
		{"in/*~", []string{"in/a~"}, nil, nil, nil},
		{"in/*.swp", []string{"in/.a.md.swp"}, nil, nil, nil},
		{"in/#*#", []string{"in/#a#"}, nil, nil, nil},
		{"file", []string{"file"}, []string{"file2"}, []string{"."}, []string{"dir"}},
	} {
		p, err := parsePattern(c.glob)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, f := range c.matches {
			if !p.matches(f) {
				t.Errorf("%s does not match %s", c.glob, f)
			}
			holds(t, &p, f)
		}
		for _, f := range c.not {
			if p.matches(f) {
				t.Errorf("%s matches %s", c.glob, f)
			}
		}
		for _, d := range c.enters {
			if !p.mayHold(d) {
				t.Errorf("%s does not look into %s", c.glob, d)
			}
		}
		for _, d := range c.entersNo {
			if p.mayHold(d) {
				t.Errorf("%s looks into %s", c.glob, d)
			}
		}
	}
}

// holds checks that the way to a match is entered.
func holds(t interface{ Errorf(string, ...any) }, p *pattern, f string) {
	for d := path.Dir(f); ; d = path.Dir(d) {
		if !p.mayHold(d) {
			t.Errorf("%s matches %s but does not look into %s", p.glob, f, d)
		}
		if d == "." {
			return
		}
	}
}

// TestMatchesAreReached takes any pattern and any path.
func TestMatchesAreReached(t *testing.T) {
	t.Parallel()
	part := rapid.SampledFrom([]string{"a", "b", "*", "**", "?", "[ab]", "{a,b}", "{a,b/a}", `\a`, ".git", ".claude", "a*", "{a,.git}"})
	name := rapid.SampledFrom([]string{"a", "b", ".git", ".claude", "ab"})
	reached := 0
	rapid.Check(t, func(t *rapid.T) {
		p, err := parsePattern(strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "pattern"), "/"))
		if err != nil {
			return
		}
		f := strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "path"), "/")
		if p.matches(f) {
			reached++
			holds(t, &p, f)
		}
	})
	if reached == 0 {
		t.Error("no pattern matched anything")
	}
}

func TestDisplay(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a b/ü.md": "a b/ü.md", "a\n": `"a\n"`, "\xff": `"\xff"`, `"a"`: `"\"a\""`,
		"\u202egpj": `"\u202egpj"`, "\u2028": `"\u2028"`, "\x1b[2J": `"\x1b[2J"`,
	} {
		if got := display(name); got != want {
			t.Errorf("%q is shown as %s, want %s", name, got, want)
		}
		if got := undisplay(display(name)); got != name {
			t.Errorf("%q comes back as %q", name, got)
		}
	}
}
