package explain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heartbeat/hook"
	"heartbeat/orchestrator/explain"
	"heartbeat/orchestrator/status"
)

// constants returns the values of the constants of a type in a package's folder.
func constants(t *testing.T, folder, of string) []string {
	t.Helper()
	var values []string
	for name, source := range sources(t, folder) {
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if named, ok := spec.Type.(*ast.Ident); !ok || named.Name != of {
				return true
			}
			for _, v := range spec.Values {
				if literal, ok := v.(*ast.BasicLit); ok {
					value, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					values = append(values, value)
				}
			}
			return true
		})
	}
	if len(values) < 4 {
		t.Fatalf("%s has %d constants of the type %s", folder, len(values), of)
	}
	return values
}

func sources(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatal(folder, err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if all[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

var doctorCode = regexp.MustCompile(`(?:Code: |add\((?:Error|Warning|Info), |disk[A-Z][a-z]+ += )"([a-z-]+)"`)

// TestTheListIsComplete holds the list together with the code that uses the
// words: a new one needs an explanation.
func TestTheListIsComplete(t *testing.T) {
	t.Parallel()
	used := map[string][]string{
		"phase": constants(t, "hook", "Phase"), "event": constants(t, "orchestrator/journal", "Kind"),
		"dead letter": constants(t, "hook/inbox", "Reason"), "entry": constants(t, "hook/inbox", "State"),
		"approval": constants(t, "orchestrator/approval", "State"), "stop": constants(t, "hook", "Answer"), "token": {"look", "act"},
		"check": {"passed", "proven"}, "recovered": constants(t, "hook/inbox", "Outcome"), "source": constants(t, "orchestrator/account", "Source"),
	}
	for _, s := range status.ProofStates() {
		used["check"] = append(used["check"], string(s))
	}
	for _, s := range append(status.States(), status.Stopped) {
		used["state"] = append(used["state"], string(s))
	}
	for _, w := range status.Words() {
		used["trouble"] = append(used["trouble"], string(w))
	}
	for _, e := range hook.Ends() {
		used["end"] = append(used["end"], string(e))
	}
	for _, source := range sources(t, "orchestrator/doctor") {
		for _, m := range doctorCode.FindAllSubmatch(source, -1) {
			used["doctor"] = append(used["doctor"], string(m[1]))
		}
	}
	used["doctor"] = append(used["doctor"], constants(t, "orchestrator/preflight", "Code")...)
	if len(used["doctor"]) < 40 {
		t.Fatalf("found %d codes of doctor", len(used["doctor"]))
	}
	for of, words := range used {
		for _, word := range words {
			if w, there := explain.Find(word); !there || !slices.Contains(w.Of, of) {
				t.Errorf("%s %q is not explained: say it in words.txt", of, word)
			}
		}
	}
	for _, w := range explain.Words() {
		for _, of := range w.Of {
			if words := used[of]; words != nil && !slices.Contains(words, w.Word) && w.Word != "queued" && w.Word != "settling" {
				t.Errorf("%s %q is explained, and nothing is called so", of, w.Word)
			}
		}
	}
}

func TestEachWordIsExplained(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, w := range explain.Words() {
		if w.Word == "" || len(w.Of) == 0 || w.Means == "" || w.Then == "" || w.Do == "" || strings.Contains(w.Do, "\n") {
			t.Errorf("%+v", w)
		}
		if seen[w.Word] {
			t.Errorf("%q is explained twice", w.Word)
		}
		seen[w.Word] = true
	}
	if _, there := explain.Find("HELD"); !there {
		t.Error("letters' case counts")
	}
	if _, there := explain.Find("nothing"); there {
		t.Error("a word that is none is explained")
	}
}
