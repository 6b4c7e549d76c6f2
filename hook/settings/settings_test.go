package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heartbeat/hook/client"
)

const binary = "/usr/local/bin/heartbeat-stop"

func want() Want {
	return Want{
		Command:  Command(binary),
		Timeouts: map[string]int{"Stop": 1810},
		Allow:    []string{"Read", "Bash(git *)"},
		Deny:     Guards(),
	}
}

// TestMergeGolden compares each file of testdata with what a merge makes of
// it (NAME.merged), and checks what holds for every file: merging again
// changes nothing, removing and restoring lead back.
func TestMergeGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			old := must(os.ReadFile(file))
			merged, changed, err := Merge(old, want())
			if err != nil || !changed {
				t.Fatalf("Merge: changed %v, %v", changed, err)
			}
			golden := strings.TrimSuffix(file, ".json") + ".merged"
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, merged, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(must(os.ReadFile(golden))), string(merged)); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
			checkMerged(t, old, merged, want())
		})
	}
}

// checkMerged checks what holds for every merge.
func checkMerged(t interface {
	Helper()
	Errorf(string, ...any)
}, old, merged []byte, w Want,
) {
	t.Helper()
	if !json.Valid(bytes.TrimPrefix(merged, bom)) {
		t.Errorf("merged is no JSON:\n%s", merged)
		return
	}
	if again, changed, err := Merge(merged, w); err != nil || changed {
		t.Errorf("merging again: changed %v, %v:\n%s\n->\n%s", changed, err, merged, again)
	}
	r, err := Inspect(merged, w.Command)
	if err != nil {
		t.Errorf("Inspect: %v", err)
		return
	}
	ours := map[string]int{}
	for _, h := range r.Hooks {
		if h.Ours {
			ours[h.Event]++
			if h.Command != w.Command || h.Type != "command" || h.Timeout != float64(w.timeout(h.Event)) || h.Matcher != "" && h.Matcher != "*" {
				t.Errorf("wrong entry %+v", h)
			}
		}
	}
	for _, event := range client.Claude.Hooks.Installed {
		if ours[event] != 1 {
			t.Errorf("%d entries of ours for %s", ours[event], event)
		}
	}
	if len(ours) != len(client.Claude.Hooks.Installed) {
		t.Errorf("entries of ours for other events: %v", ours)
	}
	if missing := without(w.Allow, r.Allow); missing != nil {
		t.Errorf("missing allow rules %v", missing)
	}
	if missing := without(w.Deny, r.Deny); missing != nil {
		t.Errorf("missing deny rules %v", missing)
	}
	if back, err := Restore(merged, old, w); err != nil || !bytes.Equal(back, old) {
		t.Errorf("Restore gives %q (%v), want %q", back, err, old)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestRemoveGivesOriginal checks that removal alone, without the backup,
// leads back to the byte wherever no container was empty before.
func TestRemoveGivesOriginal(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"crlf", "tabs", "foreign", "compact", "odd", "plain", "bom", "duplicate", "nofinal", "huge-number"} {
		old := must(os.ReadFile("testdata/" + name + ".json"))
		added := must(Missing(old, want()))
		merged, _, err := Merge(old, want())
		if err != nil {
			t.Fatal(name, err)
		}
		rest, changed, err := Remove(merged, added)
		if err != nil || !changed {
			t.Fatal(name, changed, err)
		}
		if diff := cmp.Diff(string(old), string(rest)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if _, changed, err := Remove(rest, added); changed || err != nil {
			t.Errorf("%s: removing again: %v, %v", name, changed, err)
		}
	}
}

func TestMergeOfNothing(t *testing.T) {
	t.Parallel()
	const golden = `{
  "hooks": {
    "SessionStart": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2",
            "timeout": 60
          }
        ]
      }
    ],
`
	for _, old := range []string{"", " \n", "{}\n", "\ufeff"} {
		merged, changed, err := Merge([]byte(old), want())
		if err != nil || !changed {
			t.Fatalf("%q: %v, %v", old, changed, err)
		}
		text, hasBOM := strings.CutPrefix(string(merged), "\ufeff")
		if !strings.HasPrefix(text, golden) || !strings.HasSuffix(text, "\n}\n") || hasBOM != (old == "\ufeff") {
			t.Errorf("%q: got %q", old, merged)
		}
		checkMerged(t, []byte(old), merged, want())
	}
	merged, _, err := Merge(nil, want())
	if err != nil {
		t.Fatal(err)
	}
	if back, err := Restore(merged, nil, want()); err != nil || back != nil {
		t.Errorf("Restore without a file before: %q, %v; want nil", back, err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ src, want string }{
		{"{\n  // no\n}", "2:3: a comment; Claude Code takes strict JSON only"},
		{"{\"a\": /* no */ 1}", "1:7: a comment; Claude Code takes strict JSON only"},
		{"{\n  \"a\": 1,\n}", "3:1: a comma after the last item; Claude Code takes strict JSON only"},
		{"{\"a\": [1, ]}", "1:11: a comma after the last item; Claude Code takes strict JSON only"},
		{"\ufeff{,}", "1:5: invalid character ',' looking for beginning of object key string"},
		{"{", "1:1: unexpected end of JSON input"},
		{"[]", "1:1: the file: must be an object, not an array"},
		{"null", "1:1: the file: must be an object, not null"},
		{`{"hooks": []}`, "1:11: hooks: must be an object, not an array"},
		{`{"hooks": null}`, "1:11: hooks: must be an object, not null"},
		{`{"hooks": {"Stop": {}}}`, "1:20: hooks.Stop: must be an array, not an object"},
		{`{"hooks": {"Other": "x"}}`, "1:21: hooks.Other: must be an array, not a string"},
		{`{"hooks": {"Stop": [1]}}`, "1:21: hooks.Stop[0]: must be an object, not a number"},
		{`{"hooks": {"Stop": [{}, {"hooks": {}}]}}`, "1:35: hooks.Stop[1].hooks: must be an array, not an object"},
		{`{"hooks": {"Stop": [{"hooks": [[]]}]}}`, "1:32: hooks.Stop[0].hooks[0]: must be an object, not an array"},
		{`{"permissions": []}`, "1:17: permissions: must be an object, not an array"},
		{`{"permissions": {"deny": {}}}`, "1:26: permissions.deny: must be an array, not an object"},
		{`{"permissions": {"defaultMode": true}}`, "1:33: permissions.defaultMode: must be a string, not true"},
		{`{"env": "A=b"}`, "1:9: env: must be an object, not a string"},
	} {
		for name, do := range map[string]func() error{
			"Merge":   func() error { _, _, err := Merge([]byte(tt.src), want()); return err },
			"Remove":  func() error { _, _, err := Remove([]byte(tt.src), want()); return err },
			"Inspect": func() error { _, err := Inspect([]byte(tt.src)); return err },
		} {
			err := do()
			place, ok := errors.AsType[*Error](err)
			if !ok || !strings.HasPrefix(place.Error(), tt.want) {
				t.Errorf("%s(%q): %v, want %q", name, tt.src, err, tt.want)
			}
		}
	}
}

func TestWantRefused(t *testing.T) {
	t.Parallel()
	for _, w := range []Want{
		{},
		{Command: "x hook", Timeouts: map[string]int{"Stop": 0}},
		{Command: "x hook", Timeouts: map[string]int{"Stopp": 5}},
		{Command: "x\xff hook"},
	} {
		if got, _, err := Merge(nil, w); err == nil {
			t.Errorf("Merge(%+v) = %s", w, got)
		}
	}
}

func TestOurs(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"/usr/bin/heartbeat hook":                             true,
		"/usr/bin/heartbeat-stop hook":                        true,
		"'/home/a b/heartbeat-stop' hook":                     true,
		`'/it'\''s/heartbeat' hook`:                           true,
		`"/home/a b/heartbeat-stop" hook`:                     true,
		`/home/a\ b/heartbeat hook`:                           true,
		"GOTRACEBACK=crash exec /usr/bin/heartbeat-stop hook": true,
		"GOTRACEBACK=crash /usr/bin/heartbeat-stop hook":      true,
		"A=1 B='2 3' exec /usr/bin/heartbeat hook":            true,
		Command("/usr/bin/heartbeat"):                         true,
		Command("/home/it's a b/heartbeat"):                   true,
		Command("/usr/bin/other"):                             false,
		Command("heartbeat"):                                  false,
		Command("/usr/bin/heartbeat") + "; true":              false,
		"trap 'exit $r' 0; /usr/bin/heartbeat hook":           false,
		"/usr/bin/heartbeat hook; test $? = 42 && r=2":        false,
		"GOTRACEBACK=crash exec heartbeat-stop hook":          false,
		"GOTRACEBACK=crash exec /x/heartbeat-stop --inbox f":  false,
		"GOTRACEBACK=crash":                                   false,
		"exec":                                                false,
		"":                                                    false,
		"hook":                                                false,
		"heartbeat hook":                                      false,
		"./heartbeat hook":                                    false,
		"/usr/bin/heartbeat":                                  false,
		"/usr/bin/heartbeat hooks":                            false,
		"/usr/bin/heartbeat-stop --inbox .heartbeat/inbox":    false,
		"/usr/bin/heartbeat-stop hook && rm x":                false,
		"/usr/bin/heartbeat-stop hook > log":                  false,
		"$HOME/bin/heartbeat-stop hook":                       false,
		`"$CLAUDE_PROJECT_DIR"/heartbeat hook`:                false,
		"'/usr/bin/heartbeat hook":                            false,
		"/usr/bin/other hook":                                 false,
	} {
		if got := Ours(command); got != want {
			t.Errorf("Ours(%q) = %v", command, got)
		}
	}
}

// A file with the form of another version has one entry of ours for each event
// afterwards: two would answer one Stop.
func TestTheFormOfAnotherVersionIsReplaced(t *testing.T) {
	t.Parallel()
	forms := []string{
		binary + " hook", "GOTRACEBACK=crash " + binary + " hook", "GOTRACEBACK=crash exec " + binary + " hook", Command(binary), "/old/heartbeat hook", Command("/old/heartbeat"),
	}
	for _, before := range forms {
		for _, beside := range forms {
			old := fmt.Sprintf(`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":%q},{"type":"command","command":"mine"}]},`+
				`{"hooks":[{"type":"command","command":%q}]}]}}`, before, beside)
			merged, _, err := Merge([]byte(old), Want{Command: Command(binary)})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Inspect(merged)
			if err != nil {
				t.Fatal(err)
			}
			var stops []string
			for _, h := range r.Hooks {
				if h.Event == "Stop" {
					stops = append(stops, h.Command)
				}
			}
			if !slices.Equal(stops, []string{Command(binary), "mine"}) {
				t.Errorf("%q beside %q: %q", before, beside, stops)
			}
		}
	}
}

func TestEntriesOfOursAreCorrected(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ stop, want string }{
		"form":      {`[{"hooks":[{"type":"command","command":"/usr/local/bin/heartbeat-stop hook","timeout":1810}]}]`, `[{"hooks":[{"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2","timeout":1810}]}]`},
		"abort":     {`[{"hooks":[{"type":"command","command":"GOTRACEBACK=crash exec /usr/local/bin/heartbeat-stop hook","timeout":1810}]}]`, `[{"hooks":[{"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2","timeout":1810}]}]`},
		"moved":     {`[{"hooks":[{"type":"command","command":"/old/heartbeat-stop hook","timeout":1810}]}]`, `[{"hooks":[{"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2","timeout":1810}]}]`},
		"timeout":   {`[{"hooks":[{"timeout":70,"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2"}]}]`, `[{"hooks":[{"timeout":1810,"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2"}]}]`},
		"none":      {`[{"hooks":[{"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2"}]}]`, `[{"hooks":[{"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2","timeout":1810}]}]`},
		"same":      {`[{"hooks":[{"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2","timeout":1.81e3}]}]`, `[{"hooks":[{"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2","timeout":1.81e3}]}]`},
		"async":     {`[{"hooks":[{"type":"command","command":"/x/heartbeat hook","async":true}]}]`, `[{"hooks":[{"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2","timeout":1810}]}]`},
		"duplicate": {`[{"hooks":[{"type":"command","command":"/a/heartbeat hook","timeout":1810},{"type":"command","command":"/b/heartbeat hook"}]},{"hooks":[{"type":"command","command":"mine"},{"type":"command","command":"/c/heartbeat-stop hook"}]},{"hooks":[{"type":"command","command":"/d/heartbeat-stop hook"}]}]`, `[{"hooks":[{"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2","timeout":1810}]},{"hooks":[{"type":"command","command":"mine"}]}]`},
		"matcher":   {`[{"matcher":"Bash","hooks":[{"type":"command","command":"/a/heartbeat hook","timeout":1810}]}]`, `[{"hooks":[{"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2","timeout":1810}]}]`},
		"args":      {`[{"hooks":[{"type":"command","command":"/a/heartbeat","args":["hook"]}]}]`, `[{"hooks":[{"type":"command","command":"r=0; trap 'exit $r' 0; /usr/local/bin/heartbeat-stop hook; test $? = 42 && r=2","timeout":1810}]}]`},
	} {
		merged, _, err := Merge([]byte(`{"hooks":{"Stop":`+tt.stop+`}}`), want())
		if err != nil {
			t.Fatal(name, err)
		}
		if want := `{"hooks":{"Stop":` + tt.want + `,"SessionStart":`; !strings.HasPrefix(string(merged), want) {
			t.Errorf("%s: got\n%s\nwant\n%s…", name, merged, want)
		}
		if again, changed, err := Merge(merged, want()); changed || err != nil {
			t.Errorf("%s: again: %v\n%s", name, err, again)
		}
	}
	src := `{"hooks":{"SubagentStop":[{"hooks":[{"type":"command","command":"/a/heartbeat hook"}]}]}}`
	merged, _, err := Merge([]byte(src), want())
	if err != nil || strings.Contains(string(merged), "/a/heartbeat") {
		t.Errorf("an entry for an event that we do not want stays: %s, %v", merged, err)
	}
}

func TestUsersChoicesStay(t *testing.T) {
	t.Parallel()
	w := want()
	w.DefaultMode = "dontAsk"
	w.Env = map[string]string{"A": "ours", "B": "ours"}
	old := []byte(`{"permissions":{"defaultMode":"plan","allow":["Read"],"ask":["Bash"]},"env":{"A":"theirs"}}`)
	merged, _, err := Merge(old, w)
	if err != nil {
		t.Fatal(err)
	}
	r := must(Inspect(merged))
	if r.DefaultMode != "plan" || r.Env["A"] != "theirs" || r.Env["B"] != "ours" {
		t.Errorf("got %+v", r)
	}
	if diff := cmp.Diff([]string{"Read", "Bash(git *)"}, r.Allow); diff != "" {
		t.Error(diff)
	}
	rest, _, err := Remove(merged, must(Missing(old, w)))
	if err != nil || !bytes.Equal(rest, old) {
		t.Errorf("removed: %s, %v", rest, err)
	}
}

func TestRestoreAfterTheUserChangedTheFile(t *testing.T) {
	t.Parallel()
	old := []byte("{\n  \"permissions\": {\n    \"allow\": [\"Read\"]\n  },\n  \"hooks\": {}\n}\n")
	merged, _, err := Merge(old, want())
	if err != nil {
		t.Fatal(err)
	}
	edited := bytes.Replace(merged, []byte("{\n"), []byte("{\n  \"model\": \"x\",\n"), 1)
	rest, err := Restore(edited, old, want())
	if err != nil {
		t.Fatal(err)
	}
	const left = "{\n  \"model\": \"x\",\n  \"permissions\": {\n    \"allow\": [\"Read\"]\n  }\n}\n"
	if string(rest) != left {
		t.Errorf("got %s", rest)
	}
	fresh, _, err := Merge(nil, want())
	if err != nil {
		t.Fatal(err)
	}
	spaced := append(fresh, '\n')
	if rest, err := Restore(spaced, nil, want()); err != nil || rest != nil {
		t.Errorf("only our things in a file that was ours: %q, %v", rest, err)
	}
}

func TestUpdateTakesBackWhatIsNoLongerWanted(t *testing.T) {
	t.Parallel()
	old := []byte("{\"permissions\": {\"allow\": [\"Read\"]}}\n")
	from, to := want(), want()
	to.Allow = []string{"WebFetch"}
	from.Env, to.Env = map[string]string{"A": "1", "B": "1"}, map[string]string{"A": "1"}
	merged, _, err := Merge(old, from)
	if err != nil {
		t.Fatal(err)
	}
	exact, changed, err := Update(merged, old, to, from)
	fresh, _, _ := Merge(old, to)
	if err != nil || !changed || !bytes.Equal(exact, fresh) {
		t.Errorf("untouched: %v, %v\n%s", changed, err, exact)
	}
	edited := append(bytes.Clone(merged), '\n')
	updated, _, err := Update(edited, old, to, from)
	if err != nil {
		t.Fatal(err)
	}
	r := must(Inspect(updated))
	if diff := cmp.Diff([]string{"Read", "WebFetch"}, r.Allow); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"A": "1"}, r.Env); diff != "" {
		t.Error(diff)
	}
	checkMerged(t, updated, updated, to)
}

func TestInspect(t *testing.T) {
	t.Parallel()
	src := `{"disableAllHooks": true, "allowManagedHooksOnly": false, "strictPluginOnlyCustomization": ["skills", "hooks"],
		"enabledPlugins": {"a@m": true, "b@m": false, "c@m": ["1.0"]}, "env": {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "3"}, "hooks": {
		"Stop": [{"hooks": [{"type": "command", "command": "/x/heartbeat hook", "timeout": 0.5}, {"type": "prompt", "prompt": "?"}, {"type": "command", "command": "later", "asyncRewake": true}]}],
		"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}]}}`
	want := &Report{
		Hooks: []Hook{
			{Event: "Stop", Type: "command", Command: "/x/heartbeat hook", Timeout: 0.5, Ours: true},
			{Event: "Stop", Type: "prompt"},
			{Event: "Stop", Type: "command", Command: "later", Async: true},
			{Event: "PreToolUse", Matcher: "Bash", Type: "command", Command: "mine"},
		},
		DisableAllHooks: new(true), ManagedHooksOnly: new(false), PluginsOnly: new(true),
		Plugins: map[string]bool{"a@m": true, "b@m": false, "c@m": true},
		Env:     map[string]string{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "3"},
	}
	if diff := cmp.Diff(want, must(Inspect([]byte(src)))); diff != "" {
		t.Error(diff)
	}
	if r := must(Inspect([]byte(src), "mine")); !r.Hooks[3].Ours {
		t.Error("a command that was named as ours is not")
	}
}
