package rooms

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// Status, doctor and the scheduler hung, or wrote to another agent's files,
// where somebody had forgotten that an agent can put a FIFO or a link in place
// of what they open.
func TestOnlyOwnersOpenFiles(t *testing.T) {
	t.Parallel()
	module := os.DirFS("../..")
	opens := map[string]bool{}
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "internal" || d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		calls, err := Opening(name, source)
		opens[name] = len(calls) > 0
		if len(calls) > 0 && openers[name] == "" {
			t.Errorf("%s: may not call %s: hook/durable opens what an agent may have replaced", name, calls)
		}
		if openers[name] == stateDir {
			for _, call := range calls {
				if !slices.Contains(folders, call) {
					t.Errorf("%s: may not call %s: what hangs there hangs the whole fleet", name, call)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range openers {
		if !opens[name] {
			t.Errorf("%s: opens nothing by itself and needs no permission for it", name)
		}
	}
}

func TestOpening(t *testing.T) {
	t.Parallel()
	source := `package p
import ("os"; files "os"; "golang.org/x/sys/unix"; "example.org/os2")
var later = files.ReadFile
func f() { os.Open("a"); unix.Openat(0, "", 0, 0); os.Stat("a"); os2.Open("a"); x.Open("a") }`
	got, err := Opening("p.go", []byte(source))
	if want := []string{"files.ReadFile", "os.Open", "unix.Openat"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// Connections that said nothing, or read no answer, closed out people where a listener had no
// bound, or one of its own. The test of the package that opens one walks what they do.
func TestEveryListenerHasALobby(t *testing.T) {
	t.Parallel()
	module := os.DirFS("../..")
	listens, bounds := map[string]string{}, map[string]bool{}
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		opens, lobby, err := Listening(name, source)
		if opens {
			listens[path.Dir(name)] = name
		}
		bounds[path.Dir(name)] = bounds[path.Dir(name)] || lobby
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for room, name := range listens {
		if !bounds[room] {
			t.Errorf("%s: opens a listener, and nothing in %s opens a lobby for it", name, room)
		}
	}
	if len(listens) < 4 {
		t.Errorf("found %v", listens)
	}
}
