package screen

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

func TestText(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		output string
		want   []string
	}{
		"nothing":           {"", nil},
		"lines":             {"one\r\ntwo  \r\n\r\n", []string{"one", "two"}},
		"blank rows inside": {"one\r\n\r\n\r\ntwo", []string{"one", "", "", "two"}},
		"cursor":            {"\x1b[3;5Hx\x1b[1;1Hy", []string{"y", "", "    x"}},
		"erase":             {"hello\x1b[2J\x1b[Hbye", []string{"bye"}},
		"wraps":             {strings.Repeat("a", 25), []string{strings.Repeat("a", 20), "aaaaa"}},
		"scrolls":           {"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7", []string{"2", "3", "4", "5", "6", "7"}},
		"alternate screen":  {"main\x1b[?1049h\x1b[Halt", []string{"alt"}},
		"and back":          {"main\x1b[?1049h\x1b[Halt\x1b[?1049l", []string{"main"}},
		"colour":            {"\x1b[1;38;2;1;2;3mred\x1b[0m!", []string{"red!"}},
		// The client's title: E2 9C B3 holds the byte 0x9C.
		"window title":         {"\x1b]0;✳ Claude Code\x07> ", []string{">"}},
		"title ended by ST":    {"\x1b]0;✳ Claude Code\x1b\\ok", []string{"ok"}},
		"hyperlink":            {"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", []string{"link"}},
		"DCS keeps BEL":        {"\x1bPq\x07rest\x1b\\ok", []string{"ok"}},
		"string broken off":    {"\x1b]0;title\x1b[3Cok", []string{"   ok"}},
		"cancelled":            {"\x1b]0;title\x18ok", []string{"ok"}},
		"queries do not block": {"\x1b[c\x1b[>0q\x1b[?u\x1b[6nok", []string{"ok"}},
		"wide":                 {"你好!", []string{"你好!"}},
		"eight-bit control":    {"a\x9dtitle\x9cb", []string{"atitleb"}},
		"control inside":       {"\x1b\n]0;t\x07ok", []string{"", "ok"}},
		"endless repeat":       {"x\x1b[2000000000b\x1b[2J\x1b[Hok", []string{"ok"}},
		"leading zeros":        {"x\x1b[0000000003Cok", []string{"x   ok"}},
		"cut character":        {"\xe2\x9c\x1b[1mok", nil}, // any first row, no hang
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Text(6, 20, []byte(tt.output))
			if name == "cut character" {
				if len(got) != 1 || !strings.HasSuffix(got[0], "ok") {
					t.Errorf("got %q", got)
				}
				return
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A live screen shows the same however the output is cut, and may be read,
// written and resized at once.
func TestScreen(t *testing.T) {
	t.Parallel()
	output := []byte("\x1b]0;✳ Claude Code\x07\x1b[2J\x1b[2;3H\x1b[31m> Ready ✳ 你好\x1b[0m\x1b[4;1Hlast")
	want := Text(10, 40, output)
	if len(want) != 4 {
		t.Fatalf("got %q", want)
	}
	for size := 1; size <= len(output); size++ {
		s := New(10, 40)
		for chunk := range slices.Chunk(output, size) {
			if n, err := s.Write(chunk); n != len(chunk) || err != nil {
				t.Fatal(n, err)
			}
		}
		if got := s.Lines(); !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: %q, want %q", size, got, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := New(0, 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			_, _ = s.Write(output)
		}
	}()
	for i := range 50 {
		if err := s.Resize(i%12, i%50); err != nil {
			t.Error(err)
		}
		s.Lines()
	}
	<-done
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Write(output); err == nil {
		t.Error("a closed screen shows output")
	}
}

// Not parallel: it counts goroutines.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		Text(5, 5, []byte("x\x1b[c"))
	}
	for deadline := time.Now().Add(testbed.Patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
}

// No output hangs or kills the reader of a screen.
func FuzzScreen(f *testing.F) {
	f.Add([]byte("\x1b[c\x1b[5;5H\x1b[2Kx\x1b[10000S\x1b[?6h\x1b[3;2r"))
	f.Fuzz(func(t *testing.T, output []byte) {
		lines := Text(6, 20, output)
		if len(lines) > 6 {
			t.Errorf("%d lines", len(lines))
		}
	})
}

// Escape-sequence garbage neither hangs the reader of a screen nor makes the
// screen grow: a kilobyte of "repeat it 9999 times" took 1.4 s, and a frame of
// 64 KB a minute and a half.
func TestGarbageIsPassedOver(t *testing.T) {
	for name, garbage := range map[string]string{
		"repeat": "a\x1b[9999b", "reset": "\x1bc", "insert lines": "\x1b[9999L", "scroll": "\x1b[9999S",
		"combining": "\u0301", "joined": "👩\u200d", "alternate screens": "\x1b[?1049h\x1b[?1049l", "queries": "\x1b[c\x1b[6n",
		"parameters": "\x1b[" + strings.Repeat("1;", 500) + "m", "an endless title": "\x1b]0;x", "not UTF-8": "\xff\xc3",
	} {
		s := New(50, 200)
		const limit = 200 * time.Millisecond
		before := heap()
		begun := time.Now()
		if err := s.Show([]byte(strings.Repeat(garbage, (1<<20)/len(garbage))), limit); err != nil && !errors.Is(err, ErrSlow) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(begun); took > limit+30*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
		if grown := heap() - before; grown > 4<<20 {
			t.Errorf("%s: the screen has grown by %d bytes", name, grown)
		}
		// What comes then is shown.
		if err := s.Show([]byte("\x18\x1b\\\x1bc\x1b[2J\x1b[Hfine"), time.Minute); err != nil || s.Lines()[0] != "fine" {
			t.Errorf("%s: then %q, %v", name, s.Lines(), err)
		}
		_ = s.Close()
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
