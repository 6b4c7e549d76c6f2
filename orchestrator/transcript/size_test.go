package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A transcript that an agent has blown up to 4 TB, at no cost, held logs for
// good.
func TestAHugeTranscriptIsReadFromItsEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.jsonl")
	line := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := fmt.Fprintf(f, `{"type":"assistant","message":{"content":%q}}`+"\n", text); err != nil {
			t.Fatal(err)
		}
	}
	line("before")
	if err := os.Truncate(path, 4<<40); err != nil {
		t.Skipf("this file system has no such files: %v", err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	each := func() {
		t.Helper()
		if err := r.Each(func(l Line) bool { got = append(got, l.Text.Raw()); return true }); err != nil {
			t.Fatal(err)
		}
	}
	each()
	line("the rest of a line of 4 TB")
	line("after")
	each()
	if len(got) != 1 || got[0] != "after" {
		t.Errorf("it says %q, want only what came after", got)
	}
}
