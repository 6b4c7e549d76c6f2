package rooms

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// house is the source of what is linked into the programs and written here.
type house struct {
	files    *token.FileSet
	sources  map[string][]byte // :: path of a file
	packages map[string]*room  // :: path in the module
	bodies   map[*types.Func]*ast.FuncDecl
	infos    map[*types.Func]*types.Info
}

// room is one package.
type room struct {
	dir    string
	files  []*ast.File
	embeds []string
	types  *types.Package
	info   *types.Info
}

// readHouse reads and checks it. What is not ours comes from the build cache.
func readHouse(t *testing.T, root string) *house {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,EmbedFiles,Module,Standard", "./cmd/...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	h := &house{
		files: token.NewFileSet(), sources: map[string][]byte{}, packages: map[string]*room{},
		bodies: map[*types.Func]*ast.FuncDecl{}, infos: map[*types.Func]*types.Info{},
	}
	exports := map[string]string{}
	fromCache := importer.ForCompiler(h.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	checked := map[string]*types.Package{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; { // what is imported comes before who imports it
		var p struct {
			ImportPath, Dir, Export string
			GoFiles, EmbedFiles     []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return h
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		path, ours := strings.CutPrefix(p.ImportPath, Module+"/")
		if !ours {
			continue
		}
		r := &room{dir: p.Dir, embeds: p.EmbedFiles, info: &types.Info{
			Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		}}
		for _, name := range p.GoFiles {
			if err := h.parse(r, filepath.Join(p.Dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		config := types.Config{Importer: importers{checked, fromCache}}
		if r.types, err = config.Check(p.ImportPath, h.files, r.files, r.info); err != nil {
			t.Fatal(err)
		}
		checked[p.ImportPath], h.packages[path] = r.types, r
		h.note(r)
	}
}

// importers takes what was checked here, and the rest from the cache.
type importers struct {
	checked map[string]*types.Package
	cache   types.Importer
}

func (i importers) Import(path string) (*types.Package, error) {
	if p := i.checked[path]; p != nil {
		return p, nil
	}
	return i.cache.Import(path)
}

func (h *house) parse(r *room, path string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(h.files, path, source, parser.SkipObjectResolution)
	if err == nil {
		r.files = append(r.files, f)
		h.sources[path] = source
	}
	return err
}

// note notes the bodies of a room's functions.
func (h *house) note(r *room) {
	for _, f := range r.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if o, ok := r.info.Defs[fn.Name].(*types.Func); ok {
					h.bodies[o], h.infos[o] = fn, r.info
				}
			}
		}
	}
}

func (h *house) file(pos token.Pos) string { return h.files.Position(pos).Filename }

func (h *house) source(n ast.Node) []byte {
	from, to := h.files.Position(n.Pos()), h.files.Position(n.End())
	return h.sources[from.Filename][from.Offset:to.Offset]
}

// journey is where a value comes to that is passed on.
type journey struct {
	stays int
	files map[string]bool
	last  string
}

// String says how often it returns to a file that it had left.
func (j journey) String() string {
	return fmt.Sprintf("%d (%d stays in %d files)", j.stays-len(j.files), j.stays, len(j.files))
}

// walk follows a parameter of a method through the calls that pass it on, or that are made
// on it, in the order in which they stand, into functions of ours and back. What is made of
// it in a literal is followed, too; no function is entered twice.
func (h *house) walk(path, receiver, method, parameter string) journey {
	j := &journey{files: map[string]bool{}}
	for f, decl := range h.bodies {
		if f.Name() != method || f.Pkg().Path() != Module+"/"+path || f.Signature().Recv() == nil {
			continue
		}
		if n := namedOf(f.Signature().Recv().Type()); n == nil || n.Obj().Name() != receiver {
			continue
		}
		for p := range f.Signature().Params().Variables() {
			if p.Name() == parameter {
				h.follow(j, f, decl, p, map[*types.Func]bool{})
			}
		}
	}
	return *j
}

func (j *journey) at(file string) {
	if j.last != file {
		j.stays++
		j.last, j.files[file] = file, true
	}
}

func (h *house) follow(j *journey, f *types.Func, decl *ast.FuncDecl, parameter types.Object, entered map[*types.Func]bool) {
	if entered[f] || decl.Body == nil {
		return
	}
	entered[f] = true
	here, info, carried := h.file(decl.Pos()), h.infos[f], map[types.Object]bool{parameter: true}
	j.at(here)
	enter := func(callee *types.Func, to types.Object) {
		if body := h.bodies[callee]; body != nil && !entered[callee] {
			h.follow(j, callee, body, to, entered)
			j.at(here)
		}
	}
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, v := range n.Rhs {
				if id, ok := n.Lhs[min(i, len(n.Lhs)-1)].(*ast.Ident); ok && holds(info, v, carried) && info.Defs[id] != nil {
					carried[info.Defs[id]] = true
				}
			}
		case *ast.CallExpr:
			callee := calleeOf(info, n)
			if callee == nil {
				return true
			}
			if on, ok := n.Fun.(*ast.SelectorExpr); ok && callee.Signature().Recv() != nil && holds(info, on.X, carried) {
				enter(callee, callee.Signature().Recv())
			}
			for i, arg := range n.Args {
				if params := callee.Signature().Params(); i < params.Len() && holds(info, arg, carried) {
					enter(callee, params.At(i))
				}
			}
		}
		return true
	})
}

// calleeOf is the function that a call calls, nil where that is not known.
func calleeOf(info *types.Info, call *ast.CallExpr) *types.Func {
	var id *ast.Ident
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr:
		id = fun.Sel
	default:
		return nil
	}
	f, _ := info.Uses[id].(*types.Func)
	return f
}

// holds reports whether an expression is what is carried, its address, or a literal with it.
func holds(info *types.Info, e ast.Expr, carried map[types.Object]bool) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return carried[info.Uses[e]]
	case *ast.UnaryExpr:
		return e.Op == token.AND && holds(info, e.X, carried)
	case *ast.KeyValueExpr:
		return holds(info, e.Value, carried)
	case *ast.CompositeLit:
		for _, of := range e.Elts {
			if holds(info, of, carried) {
				return true
			}
		}
	}
	return false
}
