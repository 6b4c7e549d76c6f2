package hook

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheNativePathCallsNothingHandWired: heartbeat-rs's form stands in the files
// handwired*.go, and of what is declared there the rest of this package knows the
// two entries that Main calls.
func TestTheNativePathCallsNothingHandWired(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	handwired, native := map[string]bool{}, map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(name, "handwired") {
			native[name] = file
			continue
		}
		for _, d := range file.Decls {
			declares(d, handwired)
		}
	}
	if len(handwired) < 20 || len(native) < 20 {
		t.Fatalf("%d names and %d other files", len(handwired), len(native))
	}
	for name, file := range native {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok { // a field or a method of something else
				ast.Inspect(s.X, func(n ast.Node) bool { check(t, name, handwired, n); return true })
				return false
			}
			check(t, name, handwired, n)
			return true
		})
	}
}

func check(t *testing.T, file string, handwired map[string]bool, n ast.Node) {
	id, ok := n.(*ast.Ident)
	if ok && handwired[id.Name] && (file != "hook.go" || id.Name != "wiredStop" && id.Name != "recoverOrphan") {
		t.Errorf("%s: %s belongs to the hand-wired form", file, id.Name)
	}
}

// declares notes the names that a declaration gives to the package.
func declares(d ast.Decl, names map[string]bool) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names[d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names[spec.Name.Name] = true
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					names[id.Name] = true
				}
			}
		}
	}
}
