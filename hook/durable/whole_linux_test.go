package durable

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"heartbeat/internal/testbed"
)

// A prompt that the kernel split was torn in two, and an echo's line with it,
// when there was room again for the second half: send said that it was queued.
func TestALineThatTheKernelSplitsLeavesNothing(t *testing.T) {
	if !testbed.Alone(t) {
		return
	}
	const before, line = "somebody's line\n", "one whole line of ours\n"
	for _, tail := range []string{"", "not ended"} {
		data := line
		if tail != "" {
			data = "\n" + line
		}
		for room := range len(data) + 1 {
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, []byte(before+tail), 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			testbed.LimitFiles(t, uint64(len(before+tail)+room))
			err = WriteWhole(file, []byte(data))
			testbed.LimitFiles(t, math.MaxUint64)
			if _, err := file.WriteString("an echo\n"); err != nil {
				t.Fatal(err)
			}
			got, _ := os.ReadFile(path)
			want := before + tail + data + "an echo\n"
			if room < len(data) {
				want = before + tail + "an echo\n"
				if tail != "" && room > 0 {
					want = before + tail + "\nan echo\n"
				}
			}
			if (err == nil) != (room == len(data)) || withoutBlanks(string(got)) != withoutBlanks(want) {
				t.Errorf("room for %d of %q: %v, left %q, want %q and blanks", room, data, err, got, want)
			}
			file.Close()
		}
	}
}

// withoutBlanks drops blank lines.
func withoutBlanks(s string) string {
	var b strings.Builder
	for l := range strings.Lines(s) {
		if strings.TrimSpace(l) != "" {
			b.WriteString(l)
		}
	}
	return b.String()
}

func TestALineIsOneWrite(t *testing.T) {
	if !testbed.Alone(t) {
		return
	}
	runtime.LockOSThread()
	data := []byte(strings.Repeat("x", 10_000) + "\n")
	for _, k := range []struct {
		limit  uint64
		writes int
		err    error
	}{
		{math.MaxUint64, 1, nil},
		{5000, 2, io.ErrShortWrite}, // the part, and the blanks in its place
		{0, 1, syscall.EFBIG},
	} {
		file, err := os.OpenFile(filepath.Join(t.TempDir(), "f"), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		testbed.LimitFiles(t, k.limit)
		before := writes(t)
		err = WriteWhole(file, data)
		n := writes(t) - before
		testbed.LimitFiles(t, math.MaxUint64)
		if n != k.writes || !errors.Is(err, k.err) {
			t.Errorf("limit %d: %d writes, %v; want %d, %v", k.limit, n, err, k.writes, k.err)
		}
		file.Close()
	}
}

// writes is how often this thread has called write(2) and the like.
func writes(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/thread-self/io")
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(data)) {
		if n, ok := strings.CutPrefix(l, "syscw: "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(n))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no syscw")
	return 0
}

// Others append between the part and its taking back, without any lock.
func TestWhatOthersAppendMeanwhileStays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	other, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for i, part := range []string{`{"heartbeat":1,"id`, "\n" + `{"heart`, "x"} {
		_, _ = other.WriteString("before\n")
		if n, err := writeOnce(file, []byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
		_, _ = other.WriteString("after\n")
		if err := takeBack(file, []byte(part)); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(path)
		if want := strings.Repeat("before\nafter\n", i+1); withoutBlanks(string(got)) != want {
			t.Errorf("left %q, want %q and blanks", got, want)
		}
	}
}
