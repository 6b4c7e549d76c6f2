package intake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"heartbeat/hook/durable"
)

var noon = time.UnixMilli(1_796_040_000_000)

func TestWhetherAFileIsTheOneThatIsKnown(t *testing.T) {
	t.Parallel()
	r := record{device: 1, inode: 7, size: 100, seen: "hash"}
	for name, of := range map[string]struct {
		f    facts
		seen string
		want bool
	}{
		"it has not changed":                    {facts{device: 1, inode: 7, size: 100}, "hash", true},
		"it has grown":                          {facts{device: 1, inode: 7, size: 200}, "hash", true},
		"the machine was started again (btrfs)": {facts{device: 2, inode: 7, size: 100}, "hash", true},
		"it was cut":                            {facts{device: 1, inode: 7, size: 99}, "hash", false},
		"it was filled anew":                    {facts{device: 1, inode: 7, size: 200}, "other", false},
		"it was copied":                         {facts{device: 1, inode: 8, size: 100}, "hash", false},
	} {
		if got := r.isOf(of.f, of.seen); got != of.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestHowLongAFileAndALastLineWait(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) facts { return facts{modified: noon.Add(-d)} }
	for name, is := range map[string][2]bool{
		"a line whose writer has gone":                   {isEnded(at(6*time.Second), durable.NotWritten, false, noon), true},
		"a line that was written a moment ago":           {isEnded(at(4*time.Second), durable.NotWritten, false, noon), false},
		"a line whose writer is there":                   {isEnded(at(48*time.Hour), durable.Written, true, noon), false},
		"a line at the name, where nothing can be told":  {isEnded(at(48*time.Hour), durable.WritingUnknown, false, noon), false},
		"a line of a file that was moved a day ago":      {isEnded(at(25*time.Hour), durable.WritingUnknown, true, noon), true},
		"a line written after the clock was looked at":   {isEnded(at(-6*time.Second), durable.NotWritten, false, noon), false},
		"a line of when the clock was far ahead":         {isEnded(at(-time.Hour), durable.NotWritten, false, noon), true},
		"a file that nobody writes":                      {isDone(at(3*time.Second), durable.NotWritten, noon.Add(-3*time.Second), noon), true},
		"a file that was taken in a moment ago":          {isDone(at(time.Hour), durable.NotWritten, noon.Add(-time.Second), noon), false},
		"a file that has a writer":                       {isDone(at(time.Hour), durable.Written, noon.Add(-time.Hour), noon), false},
		"a file, where nothing can be told":              {isDone(at(time.Hour), durable.WritingUnknown, noon.Add(-time.Hour), noon), false},
		"a file of yesterday, where nothing can be told": {isDone(at(25*time.Hour), durable.WritingUnknown, noon.Add(-25*time.Hour), noon), true},
	} {
		if is[0] != is[1] {
			t.Errorf("%s: %v", name, is[0])
		}
	}
}

// Somebody begins a line between the look and the exchange, and opens the file once more to end
// it: the file goes back to its name.
func TestALineThatBeginsBeforeTheExchange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("A\nbeg")
	b, err := open(r.p)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	file, err := b.dir.OpenFile(b.name, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := b.move(file, 1, false); !errors.Is(err, errUnfinished) {
		t.Fatal(err)
	}
	r.echo("in\n")
	r.take()
	r.has("A", "begin")
	r.nothingLeft()
}

// Where two files cannot change places the inbox is moved, and a new one made.
func TestAFileSystemWithoutExchange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("A\n")
	if err := os.Chmod(r.p.Inbox, 0o620); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(r.file(takenName), 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := open(r.p)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	file, err := b.dir.OpenFile(b.name, os.O_RDONLY)
	if err == nil {
		err = errors.Join(b.makeLike(b.taken, b.fileName(1), file), b.moveInTwo(file, b.fileName(1)), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(r.p.Inbox); err != nil || info.Size() != 0 || info.Mode() != 0o620 {
		t.Errorf("%v, %v", info, err)
	}
	r.echo("B\n")
	r.take()
	r.has("A", "B")
}

// A file that comes back under a number that another one had, which is gone, is new mail.
func TestANumberThatAFileHad(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("A\nB\n")
	r.take()
	r.nothingLeft()
	for range 2 { // a file that is gone, and one that is there
		if err := os.WriteFile(r.file(filepath.Join(takenName, "inbox.jsonl.1")), []byte("C\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.take()
	}
	r.has("A", "B", "C", "C")
	r.nothingLeft()
}

// Two inboxes in one folder do not take each other's files.
func TestTwoInboxesInOneFolder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	urgent := *r
	urgent.p.Inbox, urgent.p.Urgent = r.file("urgent.jsonl"), true
	for range 2 {
		r.echo("A\n")
		urgent.echo("U\n")
		r.take()
		urgent.take()
	}
	r.has("A", "U", "A", "U")
	for _, e := range entriesOf(t, r.Reader) {
		if (e.Prompt == "U") != (e.Lane == 1) {
			t.Errorf("%+v", e)
		}
	}
}

// The directory may move, and what stays at the name stays known.
func TestADirectoryThatMoves(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("A\npart")
	r.take()
	to := filepath.Join(filepath.Dir(r.p.Dir), "moved")
	if err := os.Rename(r.p.Dir, to); err != nil {
		t.Fatal(err)
	}
	r.p.Dir, r.p.Inbox = to, filepath.Join(to, ".heartbeat", "inbox.jsonl")
	r.echo("ial\n")
	r.take()
	r.has("A", "partial")
}

// The lock of the directory keeps a second one away. Were there one, nothing came twice.
func TestTwoWhoTakeInOneInbox(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const each = 200
	got := r.takeWhile(func(ctx context.Context) error {
		var other sync.WaitGroup
		defer other.Wait()
		ctx, end := context.WithCancel(ctx)
		defer end()
		other.Go(func() {
			for ctx.Err() == nil {
				_, _ = takeAll(ctx, r.Store, r.p, r.now())
			}
		})
		return atOnce(ctx, 1, func(int) []string {
			return []string{"sh", "-c", `i=0; while [ $i -lt $1 ]; do echo "0 $i x" >> "$2"; i=$((i+1)); done`, "sh", fmt.Sprint(each), r.p.Inbox}
		})
	})
	r.inOrder(got, 1, each, func(int, int) string { return "x" })
}
