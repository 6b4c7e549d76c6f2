package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"heartbeat/hook"
	"heartbeat/internal/testbed"
	"heartbeat/ptyrun"
)

// given are a command's arguments, where it needs other ones than an agent.
var given = map[string][]string{
	"run": {"--once"}, "send": {"triage", "a prompt"}, "launch": {"--", "echo", "hello"}, "completion": {"bash"},
	"attach": {"triage", "--read-only"},
}

// elsewhereTried are commands that are no matter of a table: they have tests of
// their own.
var elsewhereTried = []string{
	"simulate",          // stands in for the client
	"service install",   // changes the machine
	"service uninstall", // changes the machine
}

// everyCommand calls do with the words of each command line that the program
// understands, so that a new command is among them by itself.
func everyCommand(t *testing.T, do func(name string, args []string)) {
	t.Helper()
	parser, err := newParser(&cli{}, stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	var walk func(node *kong.Node, path []string)
	walk = func(node *kong.Node, path []string) {
		for _, child := range node.Children {
			words := append(slices.Clone(path), child.Name)
			name := strings.Join(words, " ")
			switch {
			case child.Hidden || slices.Contains(elsewhereTried, name):
				continue
			case len(child.Children) > 0:
				walk(child, words)
				continue
			}
			n++
			args, ok := given[name]
			if !ok {
				args = arguments(child)
			}
			do(name, append(words, args...))
		}
	}
	walk(parser.Model.Node, nil)
	if n < 30 {
		t.Errorf("only %d commands", n)
	}
}

var (
	colour  = regexp.MustCompile("\x1b\\[[0-9;]*m")
	noRoom  = regexp.MustCompile(`no space (is )?left|is the disk full`)
	crashed = regexp.MustCompile(`(?i)panic:|goroutine |broken pipe|runtime error`)
)

// TestEachCommandUnderEachCondition: nobody reads its output, there is no room for
// it, there is no terminal, or one of 20 columns where no colours are wanted.
func TestEachCommandUnderEachCondition(t *testing.T) {
	t.Parallel()
	self := testbed.Program(t, "heartbeat")
	everyCommand(t, func(name string, args []string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world := func() *world {
				w := newWorld(t)
				w.env = append(w.env, "EDITOR=true")
				w.put("heartbeat.yaml", simulated)
				w.put("agents/triage/.heartbeat/.dead-letter.jsonl", `{"entry_id":"e","raw_line":"given up","reason":"poison","delivery_id":"d","attempts":5}`+"\n")
				return w
			}
			plain := world().run(args...)
			if text := plain.stdout + plain.stderr; strings.Contains(text, "\x1b") || crashed.MatchString(text) {
				t.Errorf("without a terminal: %q", text)
			}

			r, closed, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			defer closed.Close()
			status, errs := intoFile(world(), closed, args)
			if status != plain.status || crashed.MatchString(errs) {
				t.Errorf("heartbeat %q | true: status %d, want %d: %s", args, status, plain.status, errs)
			}

			if full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
				defer full.Close()
				status, errs := intoFile(world(), full, args)
				switch {
				case crashed.MatchString(errs):
					t.Errorf("heartbeat %q > /dev/full: %s", args, errs)
				case name == "launch": // its status is its child's, which it does not disturb
				case plain.status == 0 && plain.stdout != "" && (status == 0 || !noRoom.MatchString(errs)):
					t.Errorf("heartbeat %q > /dev/full: status %d: %s", args, status, errs)
				case plain.status != 0 && status == 0:
					t.Errorf("heartbeat %q > /dev/full: status %d, want %d", args, status, plain.status)
				}
			}

			w, screen := world(), &testbed.Output{}
			child, err := ptyrun.Start(t.Context(), ptyrun.Config{
				Argv: append([]string{self}, args...), Dir: w.dir, Env: append(w.env, "TERM=xterm-256color", "NO_COLOR=1"), Output: screen,
				Rows: 24, Cols: 20, Grace: time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			<-child.Done()
			if exit := child.End(t.Context()); exit.Signal != "" || exit.Code != plain.status {
				t.Errorf("heartbeat %q in 20 columns: %+v, want status %d: %q", args, exit, plain.status, screen.String())
			}
			if colour.MatchString(screen.String()) || crashed.MatchString(screen.String()) {
				t.Errorf("heartbeat %q with NO_COLOR: %q", args, screen.String())
			}
		})
	})
}

// intoFile runs a command with a stdout of its own, and returns its status and what
// it has said on stderr.
func intoFile(w *world, out *os.File, args []string) (int, string) {
	cmd, errs := w.command(args...), &testbed.Output{}
	cmd.Stdout, cmd.Stderr = out, errs
	_ = cmd.Run() // the status says it
	return cmd.ProcessState.ExitCode(), errs.String()
}

// TestActsThatNobodyReads are carried out all the same, and a full stdout does not
// take back what was done.
func TestActsThatNobodyReads(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{`+stuck+`}`, "mode: persist")
	f.runs()
	r, closed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer closed.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here: ", err)
	}
	defer full.Close()
	for out, want := range map[*os.File]int{closed: exitOK, full: exitError} {
		act := func(done func() bool, args ...string) {
			t.Helper()
			if status, errs := intoFile(f.world, out, args); status != want || crashed.MatchString(errs) {
				t.Errorf("%q: status %d, want %d: %s", args, status, want, errs)
			}
			until(t, strings.Join(args, " ")+" is carried out", done)
		}
		state := func(want string) func() bool { return func() bool { return f.agent("triage").State == want } }
		before := len(f.ends())
		ended := func() bool { return len(f.ends()) > before }
		act(func() bool { return strings.Contains(f.inFlight(), `"state":"started"`) }, "send", "triage", "stuck")
		act(ended, "cancel", "triage")
		until(t, "it is idle", state("idle"))
		act(state("held"), "pause", "triage")
		act(state("idle"), "resume", "triage")
		f.ok("send", "triage", "hello")
		f.is("its session waits", func(r *hook.Record) bool { return r.Phase == hook.Waiting })
		before = len(f.ends())
		act(ended, "restart", "triage", "--now")
	}
}

// onAFullDisk runs "$@" in a fleet that stands on a disk of its own, $0, with nothing
// left on it, and prints what is kept then.
const onAFullDisk = `mount -t tmpfs -o size=1m none "$0" && cd "$0" && printf %s "$FLEET" > heartbeat.yaml && mkdir -p agents/triage && hb=$1 &&
{ "$hb" pause triage && "$hb" resume triage; } > /dev/null && "$hb" send triage "the first" && { cat /dev/zero > filler 2> /dev/null
"$@"; s=$?; rm filler; "$hb" status; cat agents/triage/.heartbeat/inbox.jsonl; exit $s; }`

// TestActsOnAFullDisk: what cannot be kept is not said to be done, and what was there
// stays.
func TestActsOnAFullDisk(t *testing.T) {
	t.Parallel()
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs root and unshare(1): ", err)
	}
	for _, args := range [][]string{{"pause", "triage"}, {"send", "triage", strings.Repeat("the second ", 1000)}} {
		w := newWorld(t)
		cmd := w.command(args...)
		cmd.Path, cmd.Args = unshare, append([]string{"unshare", "-m", "sh", "-c", onAFullDisk, w.dir, cmd.Path}, args...)
		cmd.Env = append(w.env, "FLEET="+simulated)
		out, errs := &testbed.Output{}, &testbed.Output{}
		cmd.Stdout, cmd.Stderr = out, errs
		_ = cmd.Run() // the status says it
		if status := cmd.ProcessState.ExitCode(); status != exitError || !noRoom.MatchString(errs.String()) || crashed.MatchString(errs.String()) {
			t.Errorf("%q: status %d: %s", args[0], status, errs.String())
		}
		if got := out.String(); strings.Contains(got, "paused") || !strings.Contains(got, `"the first"`) || strings.Contains(got, "the second") {
			t.Errorf("%q: what is kept is %q", args[0], got)
		}
	}
}
