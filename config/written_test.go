package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// in16 is a text in UTF-16 with its mark.
func in16(text string, order string) string {
	var b bytes.Buffer
	b.WriteString(map[string]string{"little": "\xff\xfe", "big": "\xfe\xff"}[order])
	for _, unit := range utf16.Encode([]rune(text)) {
		low, high := byte(unit), byte(unit>>8)
		if order == "big" {
			low, high = high, low
		}
		b.Write([]byte{low, high})
	}
	return b.String()
}

// TestWhatAPersonWritesIsReadAsText: each small file that a person writes, as the editors of
// several systems save it. With a byte order mark a secret was another one, and a variable's
// name began with it.
func TestWhatAPersonWritesIsReadAsText(t *testing.T) {
	t.Parallel()
	files := map[string]struct {
		name, text string
		yaml       string // what names it
		read       func(path string, f *Fleet) (string, error)
		want       string
	}{
		"heartbeat.yaml": {
			text: "version: 1\nagents:\n  a: {dir: x, kickoff: Grüße}\n",
			read: func(_ string, f *Fleet) (string, error) { return f.Agents[0].KickoffText, nil }, want: "Grüße",
		},
		"an included file": {
			name: "more.yaml", text: "agents:\n  a: {dir: x, kickoff: Grüße}\n", yaml: "version: 1\ninclude: [more.yaml]\n",
			read: func(_ string, f *Fleet) (string, error) { return f.Agents[0].KickoffText, nil }, want: "Grüße",
		},
		"prompt-file": {
			name: "p.txt", text: "Grüße\nan alle\n", yaml: "version: 1\nagents:\n  a: {dir: x, trigger: {cron: '@daily', prompt-file: p.txt}}\n",
			read: func(_ string, f *Fleet) (string, error) { return f.Agents[0].Triggers[0].Cron.Prompt, nil }, want: "Grüße\nan alle",
		},
		"env-file": {
			name: "x.env", text: "A=Grüße\n",
			read: func(path string, _ *Fleet) (string, error) {
				env, err := readEnvFile(path)
				return strings.TrimPrefix(strings.Join(env, "\n"), "A="), err
			}, want: "Grüße",
		},
		"a secret": {
			name: "s", text: "s3cret\n",
			read: func(path string, _ *Fleet) (string, error) {
				data, err := readPrivate(path)
				return strings.TrimSpace(string(data)), err
			}, want: "s3cret",
		},
	}
	saved := map[string]struct {
		as   func(text string) string
		fail string
	}{
		"UTF-8":            {func(text string) string { return text }, ""},
		"with a mark":      {func(text string) string { return "\ufeff" + text }, ""},
		"with CRLF":        {func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }, ""},
		"both":             {func(text string) string { return "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n") }, ""},
		"UTF-16":           {func(text string) string { return in16(text, "little") }, ""},
		"UTF-16, big":      {func(text string) string { return in16(text, "big") }, ""},
		"UTF-16 unmarked":  {func(text string) string { return in16(text, "little")[2:] }, "UTF-8"},
		"UTF-32":           {func(string) string { return "\xff\xfe\x00\x00a\x00\x00\x00" }, "UTF-32"},
		"Latin-1":          {func(text string) string { return text + "# \xfc\n" }, "not UTF-8"},
		"with a NUL":       {func(text string) string { return text + "\x00\n" }, "NUL"},
		"half a character": {func(text string) string { return in16(text, "little") + "x" }, "not UTF-8"},
	}
	for what, f := range files {
		for how, s := range saved {
			t.Run(what+"/"+how, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				main := filepath.Join(dir, "heartbeat.yaml")
				path, yaml := main, s.as(f.text)
				if f.name != "" {
					path = filepath.Join(dir, f.name)
					if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
						t.Fatal(err)
					}
					yaml = f.yaml
				}
				if yaml == "" {
					yaml = "version: 1\nagents: {a: {dir: x}}\n"
				}
				if err := os.WriteFile(main, []byte(yaml), 0o600); err != nil {
					t.Fatal(err)
				}
				fleet, err := Load(main)
				got := ""
				if err == nil {
					got, err = f.read(path, fleet)
				}
				switch {
				case s.fail != "" && (err == nil || !strings.Contains(err.Error(), s.fail)):
					t.Errorf("%q, %v, want an error about %s", got, err, s.fail)
				case s.fail == "" && (err != nil || got != f.want):
					t.Errorf("%q, %v, want %q", got, err, f.want)
				}
			})
		}
	}
}

// TestWhatStandsInPlaceOfYAML is said as such, with its line.
func TestWhatStandsInPlaceOfYAML(t *testing.T) {
	t.Parallel()
	const rest = "version: 1\nagents:\n"
	for text, want := range map[string]string{
		rest + "<<<<<<< HEAD\n  a: {dir: x}\n=======\n  b: {dir: x}\n>>>>>>> other\n": "3:1: a merge conflict is not resolved: git left its marker <<<<<<<",
		rest + "  a: {dir: x}\n=======\n  b: {dir: x}\n":                              "4:1: a merge conflict is not resolved: git left its marker =======",
		"<!DOCTYPE html>\n<html><body>Log in</body></html>\n":                         "1:1: it is an HTML page",
		"\x7fELF\x02\x01\x01\x00":                                                     "1:8: it holds a NUL character",
		rest + "  a: {dir: x, max-attempts: 010}\n":                                   "a.max-attempts: 010 begins with 0: some programs read that as octal, others as decimal (write 10)",
	} {
		got := problemsOf(t, write(t, text))
		if len(got) == 0 || !strings.Contains(got[0], want) {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}

// TestAPromptFileWithAConflictIsWarnedAbout: the agent would get both sides. A text may
// have a line of equal signs.
func TestAPromptFileWithAConflictIsWarnedAbout(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Look\n<<<<<<< HEAD\nat mails\n=======\nat tickets\n>>>>>>> other\n": "p.txt, line 2: a merge conflict is not resolved: git left its marker <<<<<<<",
		"Look\n=======\n\n  <<<<<<< is a marker of git\n":                    "",
	} {
		f, err := Load(fleetOf(t, map[string]string{"p.txt": text, "heartbeat.yaml": "version: 1\nagents: {a: {dir: a, trigger: {cron: '@daily', prompt-file: p.txt}}}\n"}))
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		for _, w := range f.Warnings {
			said.WriteString(w.String())
		}
		if want == "" && strings.Contains(said.String(), "merge") || !strings.Contains(said.String(), want) {
			t.Errorf("%q: %q, want %q", text, said.String(), want)
		}
	}
}
