package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"heartbeat/hook/foreign"
)

// TestDamageIsFound: each changed byte of a line, and a line that was cut; lines of
// versions without checksums are read as ever.
func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := []byte(`{"at":"2026-01-01T00:00:00Z","agent":"a","kind":"paused"}` + "\n")
	path := filepath.Join(dir, presentFile)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Add(Event{Agent: "a", Kind: Ended, Reason: foreign.Text(`it says "crc":"00000000"`)}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if v, err := Verify(dir); err != nil || v.Lines != 2 || v.Unsummed != 1 || len(v.Damaged) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	read := 0
	for e, err := range Read(dir) {
		if err != nil || e.Agent != "a" {
			t.Errorf("%+v, %v", e, err)
		}
		read++
	}
	if read != 2 {
		t.Errorf("%d events are read", read)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := len(old); at < len(whole)-1; at++ {
		changed := bytes.Clone(whole)
		changed[at] ^= 1
		if bytes.IndexByte(changed[len(old):len(changed)-1], '\n') >= 0 {
			continue // two lines now
		}
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if v, err := Verify(dir); err != nil || len(v.Damaged) != 1 || v.Damaged[0] != fmt.Sprintf("%s:2", path) {
			t.Fatalf("byte %d, %q: %+v, %v", at, changed[at], v, err)
		}
	}
	if err := os.WriteFile(path, append(bytes.Clone(whole[:len(whole)-9]), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err := Verify(dir); err != nil || len(v.Damaged) != 1 {
		t.Errorf("cut: %+v, %v", v, err)
	}
}
