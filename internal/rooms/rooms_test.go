package rooms

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestImports(t *testing.T) {
	t.Parallel()
	packages := list(t)
	if len(packages) < 15 {
		t.Fatalf("go list found %d packages, want the whole module", len(packages))
	}
	for _, p := range packages {
		for _, v := range Violations(p) {
			t.Error(v)
		}
	}
}

// What the rules name is there, and each exception is needed.
func TestTheRulesNameWhatIsThere(t *testing.T) {
	t.Parallel()
	packages := list(t)
	var named []string
	for _, f := range floors {
		named = append(named, f.rooms...)
	}
	for _, b := range bans {
		named = slices.Concat(named, b.rooms, b.never, b.but)
	}
	for _, pattern := range named {
		if !slices.ContainsFunc(packages, func(p Package) bool {
			return matches([]string{pattern}, strings.TrimPrefix(p.ImportPath, Module+"/"))
		}) {
			t.Errorf("a rule names %s, which is no room", pattern)
		}
	}
	for _, e := range exceptions {
		room, imports, _ := strings.Cut(e, " ")
		if !slices.ContainsFunc(packages, func(p Package) bool {
			return p.ImportPath == Module+"/"+room && slices.Contains(p.Imports, Module+"/"+imports)
		}) {
			t.Errorf("%s imports no %s any more: the exception can go", room, imports)
		}
	}
}

// TestViolations shows that each rule can be broken.
func TestViolations(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pkg  Package
		want string
	}{
		"upwards":              {Package{ImportPath: "heartbeat/hook", Imports: []string{"heartbeat/config"}}, "hook: may not import config: it stands on a floor above, config"},
		"a command":            {Package{ImportPath: "heartbeat/orchestrator", Imports: []string{"heartbeat/cmd/heartbeat"}}, "orchestrator: may not import cmd/heartbeat: it stands on a floor above, commands\norchestrator: may not import cmd/heartbeat: nothing imports a command"},
		"a command, in a test": {Package{ImportPath: "heartbeat/config", XTestImports: []string{"heartbeat/cmd/heartbeat"}}, "config: may not import cmd/heartbeat: nothing imports a command"},
		"not the owner":        {Package{ImportPath: "heartbeat/orchestrator", Imports: []string{"gopkg.in/yaml.v3"}}, "orchestrator: is not the owner of gopkg.in/yaml.v3"},
		"unknown module":       {Package{ImportPath: "heartbeat/config", Imports: []string{"example.org/x"}}, "config: is not the owner of example.org/x"},
		"test module outside of tests": {
			Package{ImportPath: "heartbeat/config", Imports: []string{"github.com/google/go-cmp/cmp"}},
			"config: is not the owner of github.com/google/go-cmp/cmp",
		},
		"not the owner, in a test": {
			Package{ImportPath: "heartbeat/hook", TestImports: []string{"gopkg.in/yaml.v3"}},
			"hook: is not the owner of gopkg.in/yaml.v3 (in a test)",
		},
		"linked from afar": {
			Package{ImportPath: "heartbeat/hook/inbox", Deps: []string{"golang.org/x/sys/unix"}},
			"hook/inbox: is linked with golang.org/x/sys/unix and has to be standard library only",
		},
		"a file":                          {Package{ImportPath: "heartbeat/orchestrator", Imports: []string{"os"}}, "orchestrator: decides, and may not open anything: os"},
		"a process of who decides":        {Package{ImportPath: "heartbeat/orchestrator/agent", Imports: []string{"os/exec"}}, "orchestrator/agent: decides, and may not open anything: os/exec"},
		"a file, of a room that opens it": {Package{ImportPath: "heartbeat/orchestrator/claim", Imports: []string{"os"}}, ""},
		"a judge that knows the queue, in a test": {
			Package{ImportPath: "heartbeat/internal/soak", TestImports: []string{"heartbeat/hook/inbox"}},
			"internal/soak: may not import hook/inbox: who judges may not know how a queue is kept; what needs that is tested in its own room",
		},
		"a new room": {Package{ImportPath: "heartbeat/util"}, "util: stands on no floor: say in internal/rooms/rooms.go where it belongs"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Violations(tt.pkg); strings.Join(got, "\n") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func list(t *testing.T) []Package {
	t.Helper()
	// -deps would list other modules too; Deps holds what is linked.
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Standard,Imports,TestImports,XTestImports,Deps", Module+"/...")
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []Package
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}
