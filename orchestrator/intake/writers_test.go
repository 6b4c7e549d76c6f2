package intake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// takeWhile takes in until the writers have ended, and then what is left. It gives back all
// prompts.
func (r *rig) takeWhile(write func(ctx context.Context) error) []string {
	r.Helper()
	ctx, end := context.WithTimeout(r.Context(), 2*time.Minute)
	defer end()
	written := make(chan error, 1)
	go func() { written <- write(ctx) }()
	for {
		if _, err := takeAll(ctx, r.Store, r.p, r.now()); err != nil && !errors.Is(err, errOther) {
			r.Fatal(err)
		}
		select {
		case err := <-written:
			if err != nil {
				r.Fatal(err)
			}
			r.nothingLeft()
			return r.prompts()
		default:
		}
	}
}

// inOrder checks that each writer's lines are there, whole, once, and in its order. A line is
// "WRITER NUMBER" and what follows.
func (r *rig) inOrder(got []string, writers, each int, rest func(writer, n int) string) {
	r.Helper()
	next := map[int]int{}
	for _, line := range got {
		w, after, _ := strings.Cut(line, " ")
		number, tail, _ := strings.Cut(after, " ")
		writer, err := strconv.Atoi(w)
		n, err2 := strconv.Atoi(number)
		if err := errors.Join(err, err2); err != nil || tail != rest(writer, n) {
			r.Fatalf("a line is not whole: %.200q, %v", line, err)
		}
		if n != next[writer] {
			r.Fatalf("after line %d of writer %d comes %d", next[writer]-1, writer, n)
		}
		next[writer]++
	}
	for w := range writers {
		if next[w] != each {
			r.Errorf("of writer %d there are %d lines, want %d", w, next[w], each)
		}
	}
}

// atOnce runs processes at once.
func atOnce(ctx context.Context, n int, command func(i int) []string) error {
	var wait sync.WaitGroup
	failed := make([]error, n)
	for i := range n {
		wait.Go(func() {
			c := command(i)
			if out, err := exec.CommandContext(ctx, c[0], c[1:]...).CombinedOutput(); err != nil {
				failed[i] = fmt.Errorf("%v: %s", err, out)
			}
		})
	}
	wait.Wait()
	return errors.Join(failed...)
}

// Many shells append at once, each with its own open for each line, and each holding it open.
func TestManyShellsAppendAtOnce(t *testing.T) {
	t.Parallel()
	const writers, each = 6, 150
	for name, script := range map[string]string{
		"open for each line": `i=0; while [ $i -lt $2 ]; do echo "$1 $i some text" >> "$3"; i=$((i+1)); done`,
		"open all the time":  `exec 3>>"$3"; i=0; while [ $i -lt $2 ]; do echo "$1 $i some text" >&3; i=$((i+1)); done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			got := r.takeWhile(func(ctx context.Context) error {
				return atOnce(ctx, writers, func(i int) []string {
					return []string{"sh", "-c", script, "sh", strconv.Itoa(i), strconv.Itoa(each), r.p.Inbox}
				})
			})
			r.inOrder(got, writers, each, func(int, int) string { return "some text" })
		})
	}
}

// One process after the other writes its lines in pieces: dd with and without O_APPEND, and a
// shell that opens the file for each piece.
func TestWritersInPieces(t *testing.T) {
	t.Parallel()
	const each = 60
	long := strings.Repeat("0123456789", 500)
	for name, script := range map[string]string{
		"dd, appending":            `i=0; while [ $i -lt $2 ]; do echo "$1 $i $4" | dd bs=700 oflag=append conv=notrunc of="$3" status=none; i=$((i+1)); done`,
		"dd, at its own place":     `exec 3<>"$3"; i=0; while [ $i -lt $2 ]; do echo "$1 $i $4" | dd bs=700 status=none >&3; i=$((i+1)); done`,
		"open for each piece":      `i=0; while [ $i -lt $2 ]; do printf "$1 $i " >> "$3"; printf '%s' "$4" >> "$3"; echo >> "$3"; i=$((i+1)); done`,
		"truncating, then holding": `exec 3>"$3"; i=0; while [ $i -lt $2 ]; do printf "$1 $i " >&3; echo "$4" >&3; i=$((i+1)); done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			got := r.takeWhile(func(ctx context.Context) error {
				return atOnce(ctx, 1, func(i int) []string {
					return []string{"sh", "-c", script, "sh", strconv.Itoa(i), strconv.Itoa(each), r.p.Inbox, long}
				})
			})
			r.inOrder(got, 1, each, func(int, int) string { return long })
		})
	}
}

// The cycle of heartbeat-rs's wrappers at full speed: what the shell cuts before anybody saw it
// was never accepted; what is taken in comes once, in order, and the last one is done.
func TestTheSeedsScriptAsFastAsItGoes(t *testing.T) {
	t.Parallel()
	const cycles = 300
	r := newRig(t)
	got := r.takeWhile(func(ctx context.Context) error {
		return atOnce(ctx, 1, func(int) []string {
			return []string{"sh", "-c", `i=0; while [ $i -lt $1 ]; do > "$2"; echo "0 $i text" >> "$2"; sleep 0.001; i=$((i+1)); done`, "sh", strconv.Itoa(cycles), r.p.Inbox}
		})
	})
	before := -1
	for _, line := range got {
		var n int
		if _, err := fmt.Sscanf(line, "0 %d text", &n); err != nil || n <= before {
			t.Fatalf("%q after %d, %v", line, before, err)
		}
		before = n
	}
	if before != cycles-1 {
		t.Errorf("the last line is %d", before)
	}
	t.Logf("%d of %d cycles were seen", len(got), cycles)
}

// A writer is killed in the midst of a long line: what it has left is one line, and spoils none.
func TestAWriterThatIsKilledInALine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("before\n")
	cmd := exec.Command("sh", "-c", `exec 3>>"$1"; printf 'half a line' >&3; echo ready; sleep 100 3>&-; echo ' and its end' >&3`, "sh", r.p.Inbox)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	r.later(20 * time.Second)
	r.take()
	r.has("before")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !testbed.Await(10*time.Second, func() bool { r.take(); return len(r.prompts()) == 2 }) {
		t.Error("it is never taken")
	}
	r.echo("after\n")
	r.take()
	r.has("before", "half a line", "after")
}

// Somebody reads the store while all this goes on: a look is never far off.
func TestALookWhileItIsTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const each = 300
	got := r.takeWhile(func(ctx context.Context) error {
		for i := range each {
			f, err := os.OpenFile(r.p.Inbox, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(f, "0 %d x\n", i)
			w, lookErr := Look(ctx, r.Reader, r.p, 1)
			if err := errors.Join(err, lookErr, f.Close()); err != nil || w.Lines > each {
				return fmt.Errorf("%+v, %w", w, err)
			}
		}
		return nil
	})
	r.inOrder(got, 1, each, func(int, int) string { return "x" })
	if err := r.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
