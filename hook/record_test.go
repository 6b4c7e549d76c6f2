package hook

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/queue"

	"github.com/google/go-cmp/cmp"
)

func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if r, err := ReadRecord(home); r != nil || err != nil {
		t.Fatalf("without a record: %v, %v", r, err)
	}
	want := liveRecord(func(r *Record) { r.LastReply = strings.Repeat("\x01", queue.MaxReply) })
	if err := os.WriteFile(filepath.Join(home, ".session.json.tmp"), []byte("left by a killed hook"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := want.write(home); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecord(home)
	if err != nil {
		t.Fatal(err)
	}
	want.Clock, got.Clock = Clock{}, Clock{}
	if diff := cmp.Diff(want, (*Record)(got)); diff != "" {
		t.Error(diff)
	}
	entries, _ := os.ReadDir(home)
	info, _ := os.Stat(filepath.Join(home, "session.json"))
	if len(entries) != 1 || info.Mode().Perm() != 0o600 {
		t.Errorf("%d files, mode %v", len(entries), info.Mode())
	}
}

func TestReadRecordTrustsNoFile(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(string) error{
		"link": func(p string) error {
			other := p + ".other"
			if err := os.WriteFile(other, []byte("{}"), 0o600); err != nil {
				return err
			}
			return os.Symlink(other, p)
		},
		"FIFO":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"folder":    func(p string) error { return os.Mkdir(p, 0o700) },
		"too large": func(p string) error { return os.WriteFile(p, make([]byte, maxRecord+1), 0o600) },
		"no JSON":   func(p string) error { return os.WriteFile(p, []byte("{"), 0o600) },
		"empty":     func(p string) error { return os.WriteFile(p, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			if err := put(filepath.Join(home, "session.json")); err != nil {
				t.Fatal(err)
			}
			if r, err := ReadRecord(home); r != nil || err == nil {
				t.Errorf("got %v, %v; want an error", r, err)
			}
		})
	}
}

func TestRulings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		old  *Ruling
		new  End
		want End
	}{
		{"first", nil, EndDrained, EndDrained},
		{"anything outweighs drained", &Ruling{Why: EndDrained}, EndAPIFailure, EndAPIFailure},
		{"anything outweighs released", &Ruling{Why: EndReleased}, EndShutdown, EndShutdown},
		{"drained does not outweigh released", &Ruling{Why: EndReleased}, EndDrained, EndReleased},
		{"the first weighty one stays", &Ruling{Why: EndTimeout}, EndShutdown, EndTimeout},
		{"final stays", &Ruling{Why: EndDrained, Final: true}, EndTimeout, EndDrained},
	} {
		r := &Record{Ruling: c.old}
		r.End(c.new, "why", noon)
		if r.Ruling.Why != c.want {
			t.Errorf("%s: %s, want %s", c.name, r.Ruling.Why, c.want)
		}
	}
}

func TestEnterKeepsSince(t *testing.T) {
	t.Parallel()
	r := &Record{Phase: Turn, Since: noon}
	r.Enter(Turn, noon.Add(time.Hour))
	if r.Since != noon {
		t.Error("the same phase began anew")
	}
	r.Enter(Waiting, noon.Add(time.Hour))
	if r.Since == noon {
		t.Error("another phase did not begin")
	}
}
