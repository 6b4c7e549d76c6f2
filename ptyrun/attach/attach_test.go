package attach

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
	"heartbeat/ptyrun"
)

const patience = 10 * time.Second

// until waits for something that other processes bring about.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	pause, end := 50*time.Microsecond, time.Now().Add(patience)
	for ; !is(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		pause = min(2*pause, 5*time.Millisecond)
	}
}

// fakeTerminal notes what is done with it.
type fakeTerminal struct {
	mu    sync.Mutex
	typed bytes.Buffer
	sizes []Size
}

func (f *fakeTerminal) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.typed.Write(p)
}

func (f *fakeTerminal) Resize(rows, cols int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sizes = append(f.sizes, Size{rows, cols})
	return nil
}

func (f *fakeTerminal) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.typed.String()
}

func (f *fakeTerminal) size() Size {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sizes) == 0 {
		return Size{}
	}
	return f.sizes[len(f.sizes)-1]
}

var usual = Size{50, 200}

// open makes a desk for a terminal.
func open(t *testing.T, term Terminal) (*Desk, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "hb") // t.TempDir() can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "a.tty")
	d, err := Listen(path, Config{Agent: "a", Session: "s", Size: usual, Person: func(int) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if term != nil {
		d.Serve(term)
	}
	t.Cleanup(func() { d.Close("the test is over") })
	return d, path
}

func join(t *testing.T, path string, g Guest) *Viewer {
	t.Helper()
	v, err := Join(t.Context(), path, g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// collect gathers what a viewer is told.
type collect struct {
	mu     sync.Mutex
	past   bytes.Buffer
	output bytes.Buffer
	sizes  []Size
	ended  string
	closed bool
}

func gather(v *Viewer) *collect {
	c := &collect{}
	go func() {
		for {
			e, err := v.Next()
			c.mu.Lock()
			c.past.Write(e.Past)
			c.output.Write(e.Output)
			if e.Size.valid() {
				c.sizes = append(c.sizes, e.Size)
			}
			c.ended += e.Ended
			c.closed = err != nil
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return c
}

func (c *collect) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output.String()
}

func (c *collect) is(f func(c *collect) bool) func() bool {
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return f(c)
	}
}

func TestSeveralGuests(t *testing.T) {
	t.Parallel()
	term := &fakeTerminal{}
	d, path := open(t, term)
	d.Write([]byte("before \x1b[?2004h"))
	one, two := join(t, path, Guest{}), join(t, path, Guest{ReadOnly: true})
	if one.Session.Agent != "a" || one.Session.Session != "s" || one.Session.Size != usual {
		t.Errorf("told of %+v", one.Session)
	}
	if got := string(two.Session.Modes); got != "\x1b[?2004h" {
		t.Errorf("modes %q", got)
	}
	a, b := gather(one), gather(two)
	d.Write([]byte("after"))
	for _, c := range []*collect{a, b} {
		until(t, "output", c.is(func(c *collect) bool {
			return c.output.String() == "after" && c.past.String() == "before \x1b[?2004h"
		}))
	}
	if n, typed, _ := d.People(); n != 1 || !typed.IsZero() {
		t.Errorf("%d people, last key %v; want 1, never", n, typed)
	}
	if err := errors.Join(two.Type([]byte("no")), two.Resize(Size{10, 10}), one.Type([]byte("\x1b[I"))); err != nil {
		t.Fatal(err)
	}
	until(t, "a report arrives", func() bool { return term.text() == "\x1b[I" })
	if _, typed, _ := d.People(); !typed.IsZero() {
		t.Error("a terminal's notice of focus counts as typing")
	}
	before := time.Now()
	if err := one.Type([]byte("yes")); err != nil {
		t.Fatal(err)
	}
	until(t, "keys arrive", func() bool { return term.text() == "\x1b[Iyes" })
	if _, typed, _ := d.People(); typed.Before(before) {
		t.Errorf("last key at %v, want after %v", typed, before)
	}
	one.Close()
	until(t, "somebody leaves", func() bool { n, _, _ := d.People(); return n == 0 })
	if err := d.Close("drained"); err != nil {
		t.Fatal(err)
	}
	until(t, "the end is told", b.is(func(c *collect) bool { return c.ended == "drained" && c.closed }))
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if _, err := Join(t.Context(), path, Guest{}); !errors.Is(err, ErrNobody) {
		t.Errorf("joined a session that is over: %v", err)
	}
}

func TestSocketIsPrivate(t *testing.T) {
	t.Parallel()
	_, path := open(t, &fakeTerminal{})
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

// What kill -9 leaves of a shim is a socket that nobody listens on.
func TestDeadSocketIsReplaced(t *testing.T) {
	t.Parallel()
	d, path := open(t, &fakeTerminal{})
	d.listener.SetUnlinkOnClose(false)
	d.Close("")
	if _, err := Join(t.Context(), path, Guest{}); !errors.Is(err, ErrNobody) {
		t.Fatalf("joined nobody: %v", err)
	}
	again, err := Listen(path, Config{Size: usual})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close("")
	again.Serve(&fakeTerminal{})
	join(t, path, Guest{ReadOnly: true})
}

func TestWindow(t *testing.T) {
	t.Parallel()
	term := &fakeTerminal{}
	_, path := open(t, term)
	is := func(want Size) {
		t.Helper()
		until(t, "the size", func() bool { return term.size() == want })
	}
	one := join(t, path, Guest{Size: Size{30, 100}})
	c := gather(one)
	is(Size{30, 100})
	term.mu.Lock()
	if !slices.Contains(term.sizes, Size{30, 99}) {
		t.Errorf("no nudge: %v", term.sizes)
	}
	term.mu.Unlock()
	two := join(t, path, Guest{Size: Size{20, 80}})
	gather(two)
	is(Size{20, 80})
	until(t, "the first is told", c.is(func(c *collect) bool { return slices.Contains(c.sizes, Size{20, 80}) }))
	if err := one.Resize(Size{40, 120}); err != nil {
		t.Fatal(err)
	}
	is(Size{40, 120})
	looker := join(t, path, Guest{ReadOnly: true, Size: Size{5, 5}})
	gather(looker)
	is(Size{40, 120})
	one.Close()
	is(Size{20, 80})
	two.Close()
	is(usual)
	if err := looker.Resize(Size{0, 0}); err != nil {
		t.Fatal(err)
	}
}

// The desk is between the terminal and its log: it must not wait for anybody.
func TestSlowGuestBlocksNobody(t *testing.T) {
	t.Parallel()
	term := &fakeTerminal{}
	d, path := open(t, term)
	slow := join(t, path, Guest{ReadOnly: true})
	quick := gather(join(t, path, Guest{ReadOnly: true}))
	is := func(want Size) { t.Helper(); until(t, "the window", func() bool { return term.size() == want }) }
	is(usual) // the nudges of the joining are over
	piece := bytes.Repeat([]byte("x"), 32<<10)
	const pieces = 320
	longest, quickest := time.Duration(0), 0
	for range pieces {
		began := time.Now()
		d.Write(piece)
		longest = max(longest, time.Since(began))
		quickest += len(piece)
		until(t, "the quick one gets all", quick.is(func(c *collect) bool { return c.output.Len() >= quickest }))
	}
	if longest > time.Second {
		t.Errorf("a write took %v", longest)
	}
	term.mu.Lock()
	nudges := len(term.sizes)
	term.mu.Unlock()
	c := gather(slow)
	until(t, "the slow one is brought up to date", func() bool {
		term.mu.Lock()
		defer term.mu.Unlock()
		return strings.Contains(c.text(), "\x18\x1b[0m") && len(term.sizes) > nudges
	})
	if n := len(c.text()); n >= pieces*len(piece) {
		t.Errorf("it got all %d bytes: nothing was dropped", n)
	}
	d.Write([]byte("the end"))
	until(t, "output goes on", func() bool { return strings.HasSuffix(c.text(), "the end") })
}

// A guest who does not read at all does not delay the session's end.
func TestStuckGuestDelaysNoEnd(t *testing.T) {
	t.Parallel()
	d, path := open(t, &fakeTerminal{})
	join(t, path, Guest{ReadOnly: true})
	for range 30 {
		d.Write(bytes.Repeat([]byte("x"), 32<<10))
	}
	began := time.Now()
	d.Close("over")
	if took := time.Since(began); took > testbed.Patience {
		t.Errorf("Close took %v", took)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	_, path := open(t, &fakeTerminal{})
	for name, sent := range map[string][]byte{
		"another protocol": []byte("GET / HTTP/1.1\r\n\r\n"),
		"no greeting":      appendFrame(nil, frameInput, []byte("rm -rf")),
		"no JSON":          appendFrame(nil, frameHello, []byte("{")),
	} {
		v, err := dial(t, path)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.send(sent); err != nil {
			t.Fatal(err)
		}
		if e, err := v.Next(); err == nil {
			t.Errorf("%s: got %+v", name, e)
		}
		v.Close()
	}
}

// A real program in a real terminal, and one that paints when its window
// changes.
func TestRealTerminal(t *testing.T) {
	t.Parallel()
	d, path := open(t, nil)
	child, err := ptyrun.Start(t.Context(), ptyrun.Config{
		Argv: []string{"sh", "-c", `trap 'printf "\033[2J\033[Hsize %s\r\n" "$(stty size)"' WINCH
printf 'started\r\n'; while :; do read -r line && printf 'got %s\r\n' "$line"; done`},
		Output: d, Grace: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer child.End(context.Background())
	d.Serve(child)
	until(t, "it has set its trap", func() bool { _, written := child.Activity(); return written > 0 })
	v := join(t, path, Guest{})
	c := gather(v)
	until(t, "the nudge makes it paint", func() bool { return strings.Contains(c.text(), "size 50 200") })
	if err := v.Type([]byte("hello\r")); err != nil {
		t.Fatal(err)
	}
	until(t, "an answer", func() bool { return strings.Contains(c.text(), "got hello") })

	looker := join(t, path, Guest{ReadOnly: true})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := looker.Look(ctx)
	if err != nil || p.Size != usual || !slices.Contains(p.Lines, "size 50 200") {
		t.Errorf("a picture: %+v, %v", p, err)
	}
}

// Where a link lies in the socket's place, it is removed and not followed.
func TestLinkInTheSocketsPlace(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "hb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	victim, path := filepath.Join(dir, "precious"), filepath.Join(dir, "a.tty")
	for _, target := range []string{victim, filepath.Join(dir, "dangling")} {
		if err := errors.Join(os.WriteFile(victim, []byte("x"), 0o644), os.Symlink(target, path)); err != nil {
			t.Fatal(err)
		}
		d, err := Listen(path, Config{Size: usual})
		if err != nil {
			t.Fatal(err)
		}
		d.Serve(&fakeTerminal{})
		join(t, path, Guest{ReadOnly: true}).Close()
		d.Close("")
		if info, err := os.Lstat(victim); err != nil || info.Mode() != 0o644 {
			t.Errorf("the link to %s was followed: %v, %v", target, info, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "dangling")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the dangling link was followed: %v", err)
		}
	}
}

// TestWhoKeepsThePlacesKeepsNobodyOut: connections that say nothing, and guests that only
// look, as each process of this user may. Who joins and may type takes a place of theirs,
// and who is there stays.
func TestWhoKeepsThePlacesKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	d, path := open(t, &fakeTerminal{})
	guest := gather(join(t, path, Guest{}))
	var ended atomic.Int32
	for range 3 * room.Served {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		go func() {
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
				ended.Add(1)
			}
		}()
	}
	var looking []*collect
	for range maxGuests + 5 {
		looking = append(looking, gather(join(t, path, Guest{ReadOnly: true})))
	}
	late := gather(join(t, path, Guest{}))
	until(t, "most that say nothing have made room", func() bool { return int(ended.Load()) >= room.Served })
	d.Write([]byte("still here"))
	for _, there := range []*collect{guest, late, looking[len(looking)-1]} {
		until(t, "who is there sees the output", there.is(func(c *collect) bool { return strings.Contains(c.output.String(), "still here") }))
	}
	until(t, "who looked first has left", looking[0].is(func(c *collect) bool { return strings.HasPrefix(c.ended, "too many look on") }))
	if n, _, _ := d.People(); n != 2 {
		t.Errorf("%d may type", n)
	}
}

// TestWhoLeavesOnPurposeIsDone: what they have typed keeps nobody waiting any more,
// unless somebody else who has typed is still there. A connection that is lost is no
// purpose.
func TestWhoLeavesOnPurposeIsDone(t *testing.T) {
	t.Parallel()
	term := &fakeTerminal{}
	d, path := open(t, term)
	one, two, looker := join(t, path, Guest{}), join(t, path, Guest{}), join(t, path, Guest{ReadOnly: true})
	typed := func() bool { _, typed, done := d.People(); return typed.After(done) }
	for i, v := range []*Viewer{one, two} {
		if err := v.Type([]byte("x")); err != nil {
			t.Fatal(err)
		}
		until(t, "keys arrive", func() bool { return len(term.text()) == i+1 })
	}
	there := func(n int) func() bool { return func() bool { is, _, _ := d.People(); return is == n } }
	if err := errors.Join(looker.Leave(), looker.Close(), one.Leave(), one.Close()); err != nil {
		t.Fatal(err)
	}
	if until(t, "the first has left", there(1)); !typed() {
		t.Error("somebody else who has typed is there, and does not count")
	}
	two.Close()
	if until(t, "the second's connection is lost", there(0)); !typed() {
		t.Error("a lost connection counts as left")
	}
	three := join(t, path, Guest{})
	if err := errors.Join(three.Leave(), three.Close()); err != nil {
		t.Fatal(err)
	}
	until(t, "it is done with", func() bool { return !typed() })
}

// TestOnlyAPersonTypes: who is no person looks, and neither types nor takes the window;
// by default nobody types.
func TestOnlyAPersonTypes(t *testing.T) {
	t.Parallel()
	for name, person := range map[string]func(int) error{
		"a session's process": func(pid int) error {
			if pid != os.Getpid() {
				return nil
			}
			return errors.New("a session of agent \"a\" asks")
		},
		"by default": nil,
	} {
		term := &fakeTerminal{}
		d, path := open(t, nil)
		d.cfg.Person = person
		d.Serve(term)
		looker := join(t, path, Guest{ReadOnly: true, Size: Size{10, 10}})
		if err := errors.Join(looker.Type([]byte("x")), looker.Resize(Size{11, 11}), looker.Leave()); err != nil {
			t.Fatal(err)
		}
		if v, err := Join(t.Context(), path, Guest{Size: Size{10, 10}}); err == nil {
			_ = v.Close()
			t.Errorf("%s joins, and may type", name)
		} else if person != nil && !strings.Contains(err.Error(), "a session of agent") {
			t.Errorf("%s: %v", name, err)
		}
		d.Write([]byte("still here"))
		until(t, "who looks sees the output", gather(looker).is(func(c *collect) bool { return strings.Contains(c.output.String(), "still here") }))
		if n, typed, _ := d.People(); n != 0 || !typed.IsZero() || term.text() != "" {
			t.Errorf("%s: %d are there, typed %v: %q", name, n, typed, term.text())
		}
	}
}
