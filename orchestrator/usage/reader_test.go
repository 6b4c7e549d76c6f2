package usage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/hook/client"
)

func answerLine(id string, tokens int) string {
	data, _ := json.Marshal(map[string]any{
		"type": "assistant", "timestamp": at(1).Format(time.RFC3339Nano),
		"message": map[string]any{"id": id, "model": "m", "usage": map[string]int{"input_tokens": tokens}},
	})
	return string(data) + "\n"
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// TestTranscriptsOfAnySizeAreReadWithinBounds: an agent that made its transcript, or a
// subagent's, 4 TiB long stopped its session's shim and the scheduler, or took all
// their memory. What is written after it counts.
func TestTranscriptsOfAnySizeAreReadWithinBounds(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"4 TiB without a newline":     func(path string) error { return os.Truncate(path, 1<<42) },
		"4 TiB and a newline":         func(path string) error { return errors.Join(os.Truncate(path, 1<<42), appendTo(path, "\n")) },
		"a line of 200 MiB":           func(path string) error { return errors.Join(os.Truncate(path, 200<<20), appendTo(path, "\n")) },
		"a tail longer than any line": func(path string) error { return os.Truncate(path, maxLine+9) },
	} {
		for _, aside := range []string{"c.jsonl", "c/subagents/agent-1.jsonl"} {
			dir := t.TempDir()
			main, path := filepath.Join(dir, "c.jsonl"), filepath.Join(dir, aside)
			err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), appendTo(main, ""), appendTo(path, answerLine("before", 1)), spoil(path))
			if err != nil {
				t.Fatal(err)
			}
			c, r := &Counter{}, &Reader{}
			if err := r.LookAtAll(main, noon, c); err != nil {
				t.Errorf("%s in %s: %v", name, aside, err)
			}
			if err := errors.Join(appendTo(path, "\n"+answerLine("after", 5)), r.LookAtAll(main, noon, c)); err != nil {
				t.Errorf("%s in %s: %v", name, aside, err)
			}
			got := c.All()
			want := Sum{Calls: 2}
			want.Input = 6
			if strings.Contains(name, "TiB") { // the beginning was passed over
				want.Calls, want.Input, want.Unseen = 1, 5, 1
			}
			if got != want {
				t.Errorf("%s in %s: %+v, want %+v", name, aside, got, want)
			}
		}
	}
}

// TestMoreThanOneLookIsReadInPieces: one look reads no more than its share, and what
// was written is counted all the same, each line once.
func TestMoreThanOneLookIsReadInPieces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "c.jsonl")
	fill := strings.Repeat("x", maxLine*3/4) + "\n"
	const n = 5
	for i := range n {
		if err := appendTo(path, fill+answerLine(string(rune('a'+i)), 1)); err != nil {
			t.Fatal(err)
		}
	}
	c, r := &Counter{}, &Reader{}
	if err := r.Look(path, noon, c); err != nil || c.All().Calls == 0 || c.All().Calls == n {
		t.Errorf("one look: %+v, %v", c.All(), err)
	}
	if err := r.LookAtAll(path, noon, c); err != nil || c.All().Calls != n || c.All().Input != n || c.All().Unseen != 0 {
		t.Errorf("all: %+v, %v", c.All(), err)
	}
}

// TestWhatIsNoTranscriptIsUnseen: something else in a transcript's place is not waited
// for, and is no error, which nobody could mend: it is counted as unseen, once.
func TestWhatIsNoTranscriptIsUnseen(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"a FIFO":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"a file that cannot be read": func(path string) error {
			if os.Geteuid() == 0 {
				return os.Symlink("/proc/self/mem", path) // root reads any file
			}
			return os.WriteFile(path, []byte("x\n"), 0)
		},
	} {
		path := filepath.Join(t.TempDir(), "c.jsonl")
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		c, r := &Counter{}, &Reader{}
		for range 3 {
			if err := r.LookAtAll(path, noon, c); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := c.All(); got != (Sum{Unseen: 1}) {
			t.Errorf("%s: %+v", name, got)
		}
		if _, _, ok := Base(path, 100); ok {
			t.Errorf("%s says what it had cost", name)
		}
	}
	if _, _, ok := Base("", 0); ok {
		t.Error("no transcript says what it had cost")
	}
}

// TestACopiedTranscriptCountsOnce: a client that goes on with a conversation under
// another id (--fork-session) begins its transcript with a copy of the old one, and what
// that had cost was counted again.
func TestACopiedTranscriptCountsOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := func(second float64, id string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":"m","usage":{"input_tokens":5}},"timestamp":%q}`+"\n", id, at(second).Format(time.RFC3339Nano))
	}
	path := filepath.Join(dir, "copy.jsonl")
	aside := filepath.Join(dir, "copy", "subagents", "agent-1.jsonl")
	err := errors.Join(appendTo(path, line(-60, "old")+line(1, "new")), os.MkdirAll(filepath.Dir(aside), 0o700), appendTo(aside, line(-60, "old too")))
	if err != nil {
		t.Fatal(err)
	}
	c, r := &Counter{}, &Reader{Began: noon}
	r.From(filepath.Join(dir, "original.jsonl"), 100)
	if err := r.LookAtAll(path, at(2), c); err != nil {
		t.Fatal(err)
	}
	if all := c.All(); all.Calls != 1 || all.Input != 5 {
		t.Errorf("counted %+v", all)
	}
	// In the conversation's own transcript all that is new counts, also where the clock
	// was set back.
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	r.From(path, info.Size())
	if err := errors.Join(appendTo(path, line(-60, "newer")), r.LookAtAll(path, at(2), c)); err != nil {
		t.Fatal(err)
	}
	if all := c.All(); all.Calls != 2 {
		t.Errorf("counted %+v", all)
	}
}

// TestATranscriptThatGoesIsUnseen: an agent that removed its transcript in each turn was
// counted no more, as the new file was taken for the old one's beginning, and no budget
// of turns stopped it. What stands in a copy of it counts once.
func TestATranscriptThatGoesIsUnseen(t *testing.T) {
	t.Parallel()
	line := func(second float64, id string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":"m","usage":{"input_tokens":5}},"timestamp":%q}`+"\n", id, at(second).Format(time.RFC3339Nano))
	}
	before := strings.Repeat("\n", 3000) + line(1, "one") + line(2, "two")
	for name, tt := range map[string]struct {
		goes          func(path string) error
		calls, unseen int64
		gone          bool
	}{
		"removed":         {os.Remove, 2, 0, true},
		"and begun again": {func(path string) error { return errors.Join(os.Remove(path), appendTo(path, line(3, "three"))) }, 3, 1, false},
		"a copy": {func(path string) error {
			return errors.Join(appendTo(path+".new", before+line(3, "three")), os.Rename(path+".new", path))
		}, 3, 1, false},
		"cut": {func(path string) error { return os.Truncate(path, 100) }, 2, 1, false},
	} {
		path := filepath.Join(t.TempDir(), "c.jsonl")
		c, r := &Counter{}, &Reader{}
		if err := errors.Join(appendTo(path, before), r.LookAtAll(path, noon, c), tt.goes(path)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := r.LookAtAll(path, noon, c); err != nil {
				t.Fatal(err)
			}
		}
		if all := c.All(); all.Calls != tt.calls || all.Input != 5*tt.calls || all.Unseen != tt.unseen || r.Gone(path) != tt.gone {
			t.Errorf("%s: %+v, gone: %t", name, all, r.Gone(path))
		}
	}
	if (&Reader{}).Gone("/nowhere") {
		t.Error("what was never there is gone")
	}
}

// TestFilesThatComeAndGoAreBounded: an agent could make the scheduler remember ever more
// files of subagents, by names that it removed again.
func TestFilesThatComeAndGoAreBounded(t *testing.T) {
	t.Parallel()
	transcript := filepath.Join(t.TempDir(), "s.jsonl")
	folder := client.Claude.Transcript.Subagents(transcript)
	known := filepath.Join(folder, "known.jsonl")
	err := errors.Join(os.MkdirAll(folder, 0o700), appendTo(known, answerLine("m1", 1)),
		appendTo(filepath.Join(folder, "new.jsonl"), answerLine("m2", 2)))
	if err != nil {
		t.Fatal(err)
	}
	var r Reader
	r.place(known)
	for i := range maxFiles - 1 {
		r.place(filepath.Join(folder, fmt.Sprintf("removed-%d.jsonl", i)))
	}
	var c Counter
	if err := r.LookAtAll(transcript, at(1), &c); err != nil {
		t.Fatal(err)
	}
	if err := r.LookAtAll(transcript, at(2), &c); err != nil {
		t.Fatal(err)
	}
	if all := c.All(); len(r.files) > maxFiles || all.Calls != 1 || all.Unseen != 1 {
		t.Errorf("%d files are remembered, %+v counted", len(r.files), all)
	}
}
