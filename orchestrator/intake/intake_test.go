package intake

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
	"heartbeat/queue/line"
)

// The cycle of heartbeat-rs's wrappers, > inbox; echo SAME >> inbox: each is done, however soon
// or late it comes.
func TestTheSameLineInEachCycleIsDoneEachTime(t *testing.T) {
	t.Parallel()
	for _, between := range []time.Duration{time.Millisecond, time.Hour} {
		t.Run(between.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			const cycles = 200
			for range cycles {
				r.put("")
				r.echo("SAME\n")
				if got := r.take(); got.Queued != 1 || got.Again.Lines != 0 || got.InPlace != nil {
					t.Fatalf("%+v", got)
				}
				r.later(between)
			}
			r.has(times(cycles, "SAME")...)
			r.nothingLeft()
		})
	}
}

// A cycle of several lines is done as often, too, and it is said that they came before.
func TestSeveralLinesThatComeAgainAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.now()
	for i := range 4 {
		r.put("A\nB\n")
		got := r.take()
		if got.Queued != 2 || (got.Again.Lines == 2) != (i > 0) {
			t.Fatalf("%+v", got)
		}
		if i > 0 && got.Again.Since.Sub(first).Abs() > time.Minute {
			t.Errorf("since %v, want %v", got.Again.Since, first)
		}
		r.later(24 * time.Hour)
	}
	r.later(knownFor + time.Hour)
	r.put("C\n")
	r.take() // the file of the last cycle is removed
	r.later(knownFor + time.Hour)
	r.put("D\n")
	r.take()
	r.later(time.Minute)
	r.take()
	r.put("A\nB\n")
	if got := r.take(); got.Again.Lines != 0 {
		t.Errorf("after seven days it is known still: %+v", got)
	}
}

// An editor, cp or rsync of a growing log brings back what it had: it is new mail, and told.
func TestALogThatIsCopiedAgainIsNewMail(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	log := r.file("log")
	var grown []byte
	want := []string{}
	for i := range 4 {
		grown = fmt.Appendf(grown, "line %d\n", i)
		if err := os.WriteFile(log, grown, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cp", log, r.p.Inbox).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		got := r.take()
		before := int64(i)
		if i < several {
			before = 0
		}
		if got.Queued != i+1 || got.Again.Lines != before {
			t.Errorf("%+v, want %d lines again", got, before)
		}
		want = append(want, strings.Split(strings.TrimSuffix(string(grown), "\n"), "\n")...)
	}
	r.has(want...)
}

// An editor that replaces the file by a new one with what it had read, and a line more.
func TestAnEditorThatSavesIsNewMail(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("A\nB\n")
	read, err := os.ReadFile(r.p.Inbox)
	if err != nil {
		t.Fatal(err)
	}
	r.take()
	temp := r.file(".inbox.swp")
	if err := errors.Join(os.WriteFile(temp, append(read, "C\n"...), 0o600), os.Rename(temp, r.p.Inbox)); err != nil {
		t.Fatal(err)
	}
	if got := r.take(); got.Queued != 3 || got.Again.Lines != 2 {
		t.Errorf("%+v", got)
	}
	r.has("A", "B", "A", "B", "C")
}

// An old .heartbeat that is restored is new mail, its folder of taken files included.
func TestAnOldFolderThatIsRestoredIsNewMail(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	home, old := r.file("."), filepath.Join(t.TempDir(), "old")
	r.echo("A\nB\n")
	r.take()
	r.echo("C\nD\n")
	copyTree(t, home, old)
	r.take()
	r.has("A", "B", "C", "D")
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
	copyTree(t, old, home)
	if got := r.take(); got.Queued != 4 || got.Again.Lines != 4 {
		t.Errorf("%+v", got)
	}
	r.has("A", "B", "C", "D", "A", "B", "C", "D")
	r.nothingLeft()
}

// With a cursor or a record in flight beside it, it is known to be done in part, and not by whom:
// nothing of it is taken in, and it is told.
func TestAnOldFolderWithItsCursorIsLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("A\n")
	r.take()
	for _, name := range []string{".inbox-offset", ".in-flight"} {
		if err := os.WriteFile(r.file(name), []byte("2"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.echo("B\nC\n")
	if got := r.take(); got.Queued != 0 || fmt.Sprint(got.Old) != "[.inbox-offset .in-flight]" {
		t.Errorf("%+v", got)
	}
	r.has("A")
	if err := errors.Join(os.Remove(r.file(".inbox-offset")), os.Remove(r.file(".in-flight"))); err != nil {
		t.Fatal(err)
	}
	r.take()
	r.has("A", "B", "C")
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// A writer that keeps the file open for days, through rotations, with or without O_APPEND.
func TestAWriterThatKeepsTheFileOpenIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	for _, flag := range []int{os.O_APPEND, 0} {
		r := newRig(t)
		w := r.open(flag)
		defer w.Close()
		want := []string{}
		for day := range 5 {
			for _, part := range []string{"from the writer, ", fmt.Sprintf("day %d\n", day)} {
				if _, err := w.WriteString(part); err != nil {
					t.Fatal(err)
				}
				r.take()
				r.later(12 * time.Hour)
			}
			want = append(want, fmt.Sprintf("from the writer, day %d", day))
			if day == 2 { // somebody rotates what is at the name
				if err := os.Rename(r.p.Inbox, r.file("inbox.1")); err != nil {
					t.Fatal(err)
				}
			}
			r.echo("from another\n")
			r.take()
			want = append(want, "from another")
		}
		r.has(want...)
		w.Close()
		r.nothingLeft()
	}
}

// A line without its newline is left to its writer; when that has gone without ending it, it
// counts as whole after 5 s.
func TestALastLineWithoutNewlineWaitsForItsWriter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.open(os.O_APPEND)
	defer w.Close()
	fmt.Fprint(w, "A\nB")
	got := r.take()
	r.has("A")
	if got.Due.IsZero() {
		t.Error("nobody looks again")
	}
	r.later(time.Minute)
	r.take()
	r.has("A") // it has the file open
	fmt.Fprint(w, "B\nC")
	r.ahead = 0
	r.take()
	r.has("A", "BB")
	w.Close()
	r.take()
	r.has("A", "BB")
	r.later(time.Minute)
	testbed.Await(10*time.Second, func() bool { r.take(); return len(r.prompts()) == 3 })
	r.has("A", "BB", "C")
	r.echo("D\n")
	r.take()
	r.has("A", "BB", "C", "D")
}

// While the last line lacks its newline nothing is exchanged: a writer that opens the file again
// for each piece is not torn apart. What somebody cuts meanwhile, and puts there again, is new.
func TestPiecesOfAWriterThatOpensTheFileForEach(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 20 {
		for _, piece := range []string{"a", "b", "c\nd", "e\n"} {
			r.echo(piece)
			r.take()
		}
	}
	want := []string{}
	for range 20 {
		want = append(want, "abc", "de")
	}
	r.has(want...)

	r.echo("A\npart of a line that is cut")
	r.take()
	r.put("")
	r.echo("A\n")
	r.take()
	r.has(append(want, "A", "A")...)
}

func TestAFleetThatWasStoppedForAWeekTakesAllInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	want := []string{}
	for i := range 2500 {
		r.echo(fmt.Sprintf("line %d\n", i))
		want = append(want, fmt.Sprintf("line %d", i))
	}
	r.later(7 * 24 * time.Hour)
	first, err := Take(t.Context(), r.Store, r.p, r.now())
	if err != nil || !first.More || first.Queued != mostLines {
		t.Errorf("%+v, %v", first, err)
	}
	r.echo("last\n")
	r.take()
	r.has(append(want, "last")...)
}

func TestTheFormsOfLines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.p.MaxEntry = 2000
	sent, err := line.Encode(line.Envelope{ID: "id-1", Source: "send", Prompt: "sent\nin two lines"})
	if err != nil {
		t.Fatal(err)
	}
	other, _ := line.Encode(line.Envelope{ID: "id-1", Source: "send", Prompt: "another"})
	checked, _ := line.Encode(line.Envelope{ID: "id-2", Source: "send", Checked: true, Prompt: "prove it"})
	known, _ := line.Encode(line.Envelope{ID: "id-3", Checked: true, Prompt: "known"})
	r.p.HasCheck = func(_ *store.View, id string) (bool, error) { return id == "id-3", nil }
	long := strings.Repeat("x", 3000)
	r.echo("\xef\xbb\xbf\"with a mark\"\n" + "  plain  \r\n" + "\n\n \t\n\"\"\n\x00\x00\n" + `"a\nb"` + "\n" + `{"a":1}` + "\n" +
		string(sent) + string(sent) + string(other) + string(checked) + string(known) +
		`{"heartbeat":1,"id":"x","pro` + "\n" + `"cut` + "\n" + "\x00\x00rest\n" + "bad \xff utf\n" + long + "\n" +
		`{"heartbeat":1,"id":"bad\nid","source":"` + strings.Repeat("s", 600) + `","prompt":"named"}` + "\n")
	got := r.take()
	r.has("with a mark", "plain", "a\nb", `{"a":1}`, "sent\nin two lines", "id-taken: another", "no-check: prove it", "known",
		`torn: {"heartbeat":1,"id":"x","pro`, `torn: "cut`, "torn: \x00\x00rest", "bad \uFFFD utf", "too-large: "+long, "named")
	if got.Queued != 8 || got.Dead != 6 || got.Duplicates != 1 {
		t.Errorf("%+v", got)
	}
	for _, e := range entriesOf(t, r.Reader) {
		switch {
		case e.Prompt == "plain" && string(e.Line) != "  plain  \r", strings.HasPrefix(e.Prompt, "bad") && string(e.Line) != "bad \xff utf":
			t.Errorf("of %q the bytes are not kept: %q", e.Prompt, e.Line)
		case e.Prompt == "sent\nin two lines" && (e.ID != "id-1" || e.Source != "send" || len(e.Line) > 0 || e.EntryID != line.Sum(sent[:len(sent)-1])):
			t.Errorf("%+v", e)
		case e.Prompt == "named" && (e.ID != "" || e.Source != ""):
			t.Errorf("%+v", e)
		case e.Prompt == "known" && (!e.Checked || e.State != queue.Queued):
			t.Errorf("%+v", e)
		}
	}
	r.echo(string(sent) + string(checked))
	if got := r.take(); got.Duplicates != 2 {
		t.Errorf("what has an id came twice: %+v", got)
	}
}

// A line that is too long is kept in a file that its dead letter names.
func TestALineThatIsTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	large := strings.Repeat("0123456789", 300_000)
	huge := strings.Repeat("y", mostKept+block+17)
	r.echo("A\n" + large + "\n" + huge + "\nB\n" + huge)
	r.take()
	r.echo(huge)
	r.take()
	r.echo("\nC\n")
	r.take()
	var short []string
	for _, e := range entriesOf(t, r.Reader) {
		if e.Reason != queue.TooLarge {
			short = append(short, e.Prompt)
			continue
		}
		_, name, _ := strings.Cut(e.Cause, "kept as ")
		name, _, _ = strings.Cut(name, ",")
		data, err := os.ReadFile(filepath.Join(r.p.Dir, name))
		if err != nil || !strings.HasPrefix(string(data), e.Prompt) || len(data) != len(large) && len(data) != mostKept {
			t.Errorf("%s: %v, %d bytes", e.Cause, err, len(data))
		}
	}
	if fmt.Sprint(short) != "[A B C]" {
		t.Errorf("%q", short)
	}
	for range 3 * mostLarge {
		r.echo(large + "\n")
	}
	r.take()
	if all, err := filepath.Glob(r.file(largeName + "*")); err != nil || len(all) != mostLarge {
		t.Errorf("%d files are kept, %v", len(all), err)
	}
}

// Where a file cannot be exchanged it stays, the position counts, and that is told.
func TestAFolderThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Log("root may write everything: the folder taken is made something else")
	}
	r := newRig(t)
	if err := errors.Join(os.WriteFile(r.p.Inbox, nil, 0o600), os.Symlink("/nowhere", r.file(takenName))); err != nil {
		t.Fatal(err)
	}
	r.echo("A\nB\n")
	if got := r.take(); !errors.Is(got.InPlace, durable.ErrNotFolder) {
		t.Errorf("%+v", got)
	}
	r.take()
	r.echo("C\n")
	r.take()
	r.has("A", "B", "C")
	r.put("A\nB\n") // it is shorter than it was
	if got := r.take(); got.InPlace == nil {
		t.Error("that an equal refill is not seen is not told")
	}
	r.put("D\nE\nF\n") // it has grown, and begins in another way
	r.take()
	r.put("")
	r.take() // it is seen to be empty
	r.put("D\nE\nF\n")
	r.take()
	r.has("A", "B", "C", "A", "B", "D", "E", "F", "D", "E", "F")
	if err := os.Remove(r.file(takenName)); err != nil {
		t.Fatal(err)
	}
	if got := r.take(); got.InPlace != nil || got.Queued != 0 {
		t.Errorf("%+v", got)
	}
	r.echo("G\n")
	r.take()
	r.has("A", "B", "C", "A", "B", "D", "E", "F", "D", "E", "F", "G")
}

// A file of the same mode stands at the name, and a link within the folder leads to it.
func TestWhatStandsAtTheNameAfterwards(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	real := r.file("real.txt")
	if err := errors.Join(os.Symlink("real.txt", r.p.Inbox)); err != nil {
		t.Fatal(err)
	}
	r.take() // it leads nowhere yet
	if err := errors.Join(os.WriteFile(real, []byte("A\n"), 0o600), os.Chmod(real, 0o666)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(real, 1234, 4321); err != nil {
			t.Fatal(err)
		}
	}
	r.take()
	info, err := os.Lstat(real)
	if err != nil || info.Mode() != 0o666 || info.Size() != 0 {
		t.Fatalf("%v, %v", info, err)
	}
	if stat := info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 && (stat.Uid != 1234 || stat.Gid != 4321) {
		t.Errorf("it has another owner: %d, %d", stat.Uid, stat.Gid)
	}
	r.echo("B\n")
	r.take()
	r.has("A", "B")
	if err := errors.Join(os.Remove(r.p.Inbox), os.Symlink("/etc/hostname", r.p.Inbox)); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(t.Context(), r.Store, r.p, r.now()); err == nil {
		t.Error("a link into another folder is followed")
	}
}

// What was taken in means nothing any more in the agent's directory.
func TestAFolderThatIsCleaned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.open(os.O_APPEND)
	defer w.Close()
	r.echo("A\nB\n")
	r.take()
	if err := os.RemoveAll(r.file(".")); err != nil {
		t.Fatal(err)
	}
	r.take()
	if err := os.Mkdir(r.file("."), 0o700); err != nil {
		t.Fatal(err)
	}
	r.take()
	r.echo("C\n")
	r.take()
	r.has("A", "B", "C")
	if waiting, err := Look(t.Context(), r.Reader, r.p, 3); err != nil || waiting.Lines != 0 {
		t.Errorf("%+v, %v", waiting, err)
	}
}

// A hostile directory: each taking ends soon, takes what is mail, and follows nothing.
func TestAHostileDirectory(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(r *rig) error{
		"fifo":   func(r *rig) error { return syscall.Mkfifo(r.p.Inbox, 0o600) },
		"folder": func(r *rig) error { return os.Mkdir(r.p.Inbox, 0o700) },
		"socket": func(r *rig) error { return syscall.Mknod(r.p.Inbox, syscall.S_IFSOCK|0o600, 0) },
		"sparse": func(r *rig) error {
			f := r.open(0)
			return errors.Join(f.Truncate(4<<40), f.Close())
		},
		"sparse, with a line": func(r *rig) error {
			f := r.open(0)
			_, err := f.WriteAt([]byte("\nA\n"), 4<<40)
			return errors.Join(err, f.Close())
		},
		"loop": func(r *rig) error { return os.Symlink("inbox.jsonl", r.p.Inbox) },
		"taken is full of others": func(r *rig) error {
			err := os.Mkdir(r.file(takenName), 0o700)
			for i, make := range []func(string) error{
				func(p string) error { return syscall.Mkfifo(p, 0o600) },
				func(p string) error { return os.Mkdir(p, 0o700) },
				func(p string) error { return os.Symlink("/etc/passwd", p) },
			} {
				err = errors.Join(err, make(r.file(fmt.Sprintf("%s/inbox.jsonl.%d", takenName, i+1))))
			}
			for _, n := range []string{"inbox.jsonl.9223372036854775807", "inbox.jsonl.-1", "inbox.jsonl.007", "x"} {
				err = errors.Join(err, os.WriteFile(r.file(takenName+"/"+n), []byte("not mail\n"), 0o600))
			}
			return errors.Join(err, os.WriteFile(r.p.Inbox, []byte("A\n"), 0o600))
		},
		"hard link": func(r *rig) error {
			err := os.WriteFile(r.file("other"), []byte("A\n"), 0o600)
			return errors.Join(err, os.Link(r.file("other"), r.p.Inbox))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if err := harm(r); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			for range 3 {
				_, err := takeAll(t.Context(), r.Store, r.p, r.now())
				t.Log(err)
				r.later(time.Minute)
			}
			_, err := Look(t.Context(), r.Reader, r.p, 3)
			t.Log(err)
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			for _, e := range entriesOf(t, r.Reader) {
				if e.Prompt != "A" && e.Reason != queue.TooLarge {
					t.Errorf("%+v", e)
				}
			}
			if name == "hard link" {
				if data, err := os.ReadFile(r.file("other")); err != nil || string(data) != "A\n" {
					t.Errorf("%q, %v", data, err)
				}
			}
			if err := os.RemoveAll(r.p.Inbox); err != nil {
				t.Fatal(err)
			}
			r.echo("B\n")
			r.take()
			all := r.prompts()
			if len(all) == 0 || all[len(all)-1] != "B" {
				t.Errorf("%.300q", all)
			}
		})
	}
}

// A look counts what is not taken in, wherever it stands, and changes nothing.
func TestALook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.open(os.O_APPEND)
	defer w.Close()
	look := func(lines int, first ...string) {
		t.Helper()
		got, err := Look(t.Context(), r.Reader, r.p, 2)
		var prompts []string
		for _, c := range got.First {
			prompts = append(prompts, c.Prompt)
		}
		if err != nil || got.Lines != lines || got.AtLeast || fmt.Sprint(prompts) != fmt.Sprint(first) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	look(0)
	fmt.Fprint(w, "A\n\nB\nC\npart")
	look(3, "A", "B")
	r.take()
	look(0)
	fmt.Fprint(w, "ial\n")
	look(1, "partial")
	r.take()
	look(0)
	fmt.Fprint(w, "D\n")
	r.echo("E\n")
	look(2, "D", "E")
	r.take()
	r.has("A", "B", "C", "partial", "D", "E")
	look(0)
}
