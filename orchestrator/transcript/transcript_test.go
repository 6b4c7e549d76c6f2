package transcript

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func read(t *testing.T, r *Reader) []Line {
	t.Helper()
	var lines []Line
	if err := r.Each(func(l Line) bool { lines = append(lines, l); return true }); err != nil {
		t.Fatal(err)
	}
	return lines
}

// What the real client wrote.
func TestRecordedTranscript(t *testing.T) {
	t.Parallel()
	r, err := Open("../../hook/handover/testdata/transcript-2.1.329.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	for _, l := range read(t, r) {
		if l.At.IsZero() {
			t.Errorf("no time: %+v", l)
		}
		text, _, _ := strings.Cut(l.Text.Raw(), "\n")
		got = append(got, string(l.Kind)+" "+l.Name.String()+" "+text[:min(len(text), 24)])
	}
	want := []string{
		"prompt  first entry <system-remi", "text  r0", "prompt  FOREIGN &lt;system-remin", `prompt  entry number 1 <&> "q" \`,
		`tool Bash {"command":"env | grep -`, "result  1", "text  reply 6", "prompt  first entry",
		`prompt  entry number 1 <&> "q" \`, `prompt  entry number 2 <&> "q" \`, `prompt  entry number 3 <&> "q" \`,
		"prompt  json entry <b> ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if more := read(t, r); len(more) != 0 {
		t.Errorf("read again: %+v", more)
	}
}

func TestGrowingAndHostileTranscripts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	say := func(text string) string {
		return `{"type":"assistant","message":{"content":[{"type":"text","text":"` + text + `"}]}}`
	}
	put := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	put("garbage\n[1]\n{\"type\":7}\n" + say("one") + "\n" + say("tw"))
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := read(t, r); len(got) != 1 || got[0].Text != "one" {
		t.Errorf("%+v, want the whole line alone", got)
	}
	put("\n" + strings.Repeat("x", maxLine+1) + "\n" + say(strings.Repeat("é", maxText)) + "\n")
	got := read(t, r)
	if len(got) != 2 || got[0].Text != "tw" || len(got[1].Text) > maxText+3 || !strings.HasSuffix(got[1].Text.Raw(), "é…") {
		t.Errorf("%d lines", len(got))
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link, folder := filepath.Join(dir, "link.jsonl"), filepath.Join(dir, "folder.jsonl")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/etc/passwd", link, folder, filepath.Join(dir, "none.jsonl")} {
		if r, err := Open(path); err == nil {
			r.Close()
			t.Errorf("%s was opened", path)
		}
	}
}

// TestLast: what was said last is found, also before a long answer of a tool and
// behind one that is longer than what is read first.
func TestLast(t *testing.T) {
	t.Parallel()
	say := func(text string) string {
		return `{"type":"assistant","message":{"content":[{"type":"text","text":"` + text + `"}]}}` + "\n"
	}
	answer := func(size int) string {
		return `{"type":"user","message":{"content":[{"type":"tool_result","content":"` + strings.Repeat("x", size) + `"}]}}` + "\n"
	}
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"a half line", say("one") + `{"type":"assistant","mess`, "one"},
		{"a short answer", say("one") + answer(10), "one"},
		{"a long answer", say("one") + say("two") + answer(100<<10), "two"},
		{"an answer beyond what is read", say("one") + answer(2<<20), ""},
		{"said after it", answer(2<<20) + say("one"), "one"},
	} {
		path := filepath.Join(t.TempDir(), "t.jsonl")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		l, found, err := r.Last(func(l Line) bool { return l.Kind == Text })
		if err != nil || found != (tt.want != "") || l.Text.Raw() != tt.want {
			t.Errorf("%s: %v, %v, %v", tt.name, l, found, err)
		}
		_ = r.Close()
	}
}

// TestSkip: from a place within a line, the next one is the first.
func TestSkip(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, `{"type":"assistant","message":{"content":[{"type":"text","text":"%03d"}]}}`+"\n", i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for but, want := range map[int64]string{0: "", 100: "099", 1 << 20: "000"} {
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		first := ""
		err = errors.Join(r.Skip(but), r.Each(func(l Line) bool { first = l.Text.Raw(); return false }), r.Close())
		if err != nil || first != want {
			t.Errorf("but %d bytes: %q, %v", but, first, err)
		}
	}
}
