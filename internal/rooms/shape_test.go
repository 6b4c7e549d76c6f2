package rooms

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestShape prints how large the house is and how it hangs together, beside what it was at
// commit 8e3db45 and what it shall come to. It fails for no figure: a number that is a limit
// is met by moving code about.
//
//	go test ./internal/rooms -v -run TestShape
func TestShape(t *testing.T) {
	if !testing.Verbose() {
		t.Skip("it prints a table, and is run for that: -v")
	}
	root := os.Getenv("HEARTBEAT_SHAPE_OF") // another checkout, to compare with
	if root == "" {
		root = "../.."
	}
	h := readHouse(t, root)
	most, reaches := h.mostMethods()
	third := h.thirdPersons()
	for _, row := range [][4]string{
		{"what", "8e3db45", "now", "aim"},
		{"tokens in function bodies, SQL and templates (linked, ours)", shapeThen.tokens, fmt.Sprint(h.tokens()), "≤ 0.7 of it"},
		{"formats on disk (the READMEs' tables of files)", shapeThen.formats, fmt.Sprint(len(formats(t, root))), "≤ 20"},
		{"rooms", shapeThen.rooms, fmt.Sprint(len(h.packages)), "printed"},
		{"methods that can reach one struct", shapeThen.methods, fmt.Sprintf("%d (%s)", most, reaches), "printed"},
		{"calls up between files: orchestrator, hook/inbox, cmd/heartbeat", shapeThen.up, fmt.Sprintf("%d, %d, %d", h.up("orchestrator"), h.up("hook/inbox"), h.up("cmd/heartbeat")), "printed"},
		{"returns of a walk: the verdict's way (Desk.Prove, its case)", shapeThen.returns, h.walk("orchestrator/proving", "Desk", "Prove", "c").String(), "printed"},
		{"methods named by a third-person verb", shapeThen.third, fmt.Sprint(third), "printed"},
	} {
		t.Logf("%-66s %-34s %-34s %s", row[0], row[1], row[2], row[3])
	}
}

// tokens counts those in the bodies of functions of what is linked into the programs and
// written here, those of SQL in its texts, and those of the templates and scripts that are
// embedded.
func (h *house) tokens() (n int) {
	for _, p := range h.packages {
		for _, f := range p.files {
			ast.Inspect(f, func(node ast.Node) bool {
				switch node := node.(type) {
				case *ast.FuncDecl:
					if node.Body != nil {
						n += tokensOf(h.source(node.Body))
					}
				case *ast.BasicLit:
					if node.Kind == token.STRING && isSQL.MatchString(node.Value) {
						n += len(words.FindAllString(node.Value, -1))
					}
				}
				return true
			})
		}
		for _, name := range p.embeds {
			if ext := filepath.Ext(name); ext == ".html" || ext == ".js" || ext == ".css" || ext == ".sql" || ext == ".tmpl" {
				data, _ := os.ReadFile(filepath.Join(p.dir, name))
				n += len(words.FindAllString(string(data), -1))
			}
		}
	}
	return n
}

var (
	isSQL = regexp.MustCompile("(?s)^[\"`]\\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|PRAGMA|ALTER) ")
	words = regexp.MustCompile(`\w+|[^\w\s]`)
)

func tokensOf(source []byte) (n int) {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", files.Base(), len(source)), source, nil, 0)
	for {
		_, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			return n
		case tok == token.SEMICOLON && text == "\n": // the scanner's own
		default:
			n++
		}
	}
}

// formats are the names of files that the READMEs' tables of files list: each has a form and
// rules of its own.
func formats(t *testing.T, root string) map[string]bool {
	t.Helper()
	named := regexp.MustCompile("`([^` ]+)`")
	found := map[string]bool{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && path != "." && (d.Name()[0] == '.' || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if err != nil || d.Name() != "README.md" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		inTable := false
		for line := range strings.Lines(string(text)) {
			first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
			if !strings.HasPrefix(line, "|") || strings.TrimSpace(first) == "file" {
				inTable = strings.HasPrefix(line, "|")
				continue
			}
			if inTable {
				for _, name := range named.FindAllStringSubmatch(first, -1) {
					found[filepath.Dir(path)+" "+name[1]] = true
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// mostMethods is, over all structs, how many methods can reach the same one: its own, and
// those of the types of its package that embed it, or hold it in a field.
func (h *house) mostMethods() (most int, of string) {
	for path, p := range h.packages {
		holds := map[*types.Named][]*types.Named{} // :: struct → who holds it
		methods := map[*types.Named]int{}
		scope := p.types.Scope()
		for _, name := range scope.Names() {
			named := namedOf(scope.Lookup(name).Type())
			tn, ok := scope.Lookup(name).(*types.TypeName)
			if !ok || tn.IsAlias() || named == nil {
				continue
			}
			methods[named] = named.NumMethods()
			if s, ok := named.Underlying().(*types.Struct); ok {
				for field := range s.Fields() {
					if held := namedOf(field.Type()); held != nil && held.Obj().Pkg() == p.types && held != named {
						holds[held] = append(holds[held], named)
					}
				}
			}
		}
		for s := range methods {
			if _, ok := s.Underlying().(*types.Struct); !ok {
				continue
			}
			seen := map[*types.Named]bool{}
			sum := 0
			var add func(n *types.Named)
			add = func(n *types.Named) {
				if seen[n] {
					return
				}
				seen[n] = true
				sum += methods[n]
				for _, holder := range holds[n] {
					if n == s || embeds(holder, n) {
						add(holder)
					}
				}
			}
			add(s)
			if name := path + "." + s.Obj().Name(); sum > most || sum == most && name < of {
				most, of = sum, name
			}
		}
	}
	return most, of
}

func namedOf(t types.Type) *types.Named {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := t.(*types.Named)
	return n
}

func embeds(holder, held *types.Named) bool {
	s, ok := holder.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for field := range s.Fields() {
		if field.Embedded() && namedOf(field.Type()) == held {
			return true
		}
	}
	return false
}

// thirdPersons counts methods whose name begins with a verb as in "it owes".
func (h *house) thirdPersons() (n int) {
	verb := regexp.MustCompile(`^[A-Z]?[a-z]*[^us]s([A-Z]|$)`)
	for _, p := range h.packages {
		for _, f := range p.files {
			for _, d := range f.Decls {
				if m, ok := d.(*ast.FuncDecl); ok && m.Recv != nil && verb.MatchString(m.Name.Name) {
					n++
				}
			}
		}
	}
	return n
}

// up counts the arrows between files of a package that point up: an arrow from one file to
// another whose functions, types or values it uses. The files stand in an order with few
// arrows up: whoever is used most and uses least stands lowest.
func (h *house) up(path string) int {
	p := h.packages[path]
	if p == nil {
		return 0
	}
	arrows := map[[2]string]bool{}
	names := map[string]bool{}
	for _, f := range p.files {
		from := h.file(f.Pos())
		names[from] = true
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if o := p.info.Uses[id]; o != nil && o.Pkg() == p.types && o.Pos().IsValid() {
					if to := h.file(o.Pos()); to != from && declaredOutside(o) {
						arrows[[2]string{from, to}] = true
					}
				}
			}
			return true
		})
	}
	order := lowestFirst(names, arrows)
	n := 0
	for a := range arrows {
		if order[a[1]] > order[a[0]] {
			n++
		}
	}
	return n
}

// declaredOutside reports whether something is declared outside of functions.
func declaredOutside(o types.Object) bool {
	if o.Parent() == o.Pkg().Scope() {
		return true
	}
	f, ok := o.(*types.Func)
	return ok && f.Signature().Recv() != nil
}

// lowestFirst orders names so that few arrows point up, by the heuristic of Eades, Lin and
// Smyth: what has no arrows out goes to the bottom, what has none in to the top, and of the
// rest first to the top what has the most out beside in.
func lowestFirst(names map[string]bool, arrows map[[2]string]bool) map[string]int {
	left := maps.Clone(names)
	degree := func(n string) (out, in int) {
		for a := range arrows {
			if left[a[0]] && left[a[1]] {
				if a[0] == n {
					out++
				}
				if a[1] == n {
					in++
				}
			}
		}
		return out, in
	}
	var bottom, top []string
	for len(left) > 0 {
		best, bestBy := "", -1<<30
		took := false
		for _, n := range slices.Sorted(maps.Keys(left)) {
			out, in := degree(n)
			if out == 0 {
				bottom, took = append(bottom, n), true
				delete(left, n)
			} else if in == 0 {
				top, took = append(top, n), true
				delete(left, n)
			} else if out-in > bestBy {
				best, bestBy = n, out-in
			}
		}
		if !took {
			top = append(top, best)
			delete(left, best)
		}
	}
	slices.Reverse(top)
	order := map[string]int{}
	for i, n := range append(bottom, top...) {
		order[n] = i
	}
	return order
}
