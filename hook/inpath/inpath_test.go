package inpath

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheFirstProgramOfAPathIsMeant: folders, files that may not be run and relative
// elements are passed over, and the error says what stood in the way.
func TestTheFirstProgramOfAPathIsMeant(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, mode fs.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, mode)); err != nil {
			t.Fatal(err)
		}
	}
	put("a/tool", 0o644)
	put("b/tool/file", 0o755)
	put("c/tool", 0o755)
	put("d/tool", 0o755)
	put("rel/other", 0o755)
	t.Chdir(dir)
	search := strings.Join([]string{"rel", "", dir + "/none", dir + "/a", dir + "/b", dir + "/c", dir + "/d"}, string(filepath.ListSeparator))
	if got, err := Find(search, "tool"); got != dir+"/c/tool" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := Find(search, "other"); got != "" || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("by a relative element: %s, %v", got, err)
	}
	if got, err := Find(dir+"/a", "tool"); got != "" || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), dir+"/a/tool") {
		t.Errorf("that may not be run: %s, %v", got, err)
	}
	if got := slices.Collect(Files("rel:"+dir+"/a:"+dir+"/c", "x")); !slices.Equal(got, []string{dir + "/a/x", dir + "/c/x"}) {
		t.Errorf("candidates: %q", got)
	}
	if got := Of([]string{"PATH=/one", "HOME=/", "PATH=/two"}); got != "/two" {
		t.Errorf("PATH is %q", got)
	}
}
