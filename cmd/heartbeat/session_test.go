package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/journal"
	"heartbeat/ptyrun"
)

// patience is how long tests wait for what other processes do.
const patience = testbed.Patience

// until waits for something that other processes bring about.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	if !testbed.Await(patience, is) {
		t.Fatalf("not within %v: %s", patience, what)
	}
}

// fleet is a world in which `heartbeat run` runs one agent, triage, with the
// stand-in for the client.
type fleet struct {
	*world
	log  testbed.Output
	cmd  *exec.Cmd
	done chan struct{}
}

// patiently gives a client as long to start as a busy machine needs, unless an agent's fields
// say how long it has.
func patiently(fields []string) []string {
	if slices.ContainsFunc(fields, func(field string) bool { return strings.HasPrefix(field, "start-timeout:") }) {
		return fields
	}
	return append(slices.Clone(fields), "start-timeout: "+patience.String())
}

// newFleet makes a fleet that does not run yet; fields are further lines of
// the agent, script is what the model does.
func newFleet(t *testing.T, script string, fields ...string) *fleet {
	t.Helper()
	f := &fleet{world: newWorld(t)}
	f.put("script.json", script)
	f.put("heartbeat.yaml", strings.Replace(oneAgent, "agents:\n", "shutdown-grace: none\nagents:\n", 1)+
		"    command: [heartbeat, simulate, --script, "+
		filepath.Join(f.dir, "script.json")+"]\n    permissions: {allow: [Bash]}\n    "+
		strings.Join(patiently(fields), "\n    ")+"\n")
	f.put("agents/triage/README", "")
	t.Cleanup(func() {
		f.stop()
		if t.Failed() {
			t.Logf("heartbeat run:\n%s", f.log.String())
		}
	})
	return f
}

// startFleet is newFleet, and runs it.
func startFleet(t *testing.T, script string, fields ...string) *fleet {
	t.Helper()
	f := newFleet(t, script, fields...)
	f.start()
	return f
}

// start starts `heartbeat run`.
func (f *fleet) start() {
	f.t.Helper()
	// Not the test's own context: it ends before the cleanup, which stops it.
	like := f.command("run")
	f.cmd, f.done = exec.Command(like.Path, like.Args[1:]...), make(chan struct{})
	f.cmd.Dir, f.cmd.Env = like.Dir, like.Env
	f.cmd.Stdout, f.cmd.Stderr = &f.log, &f.log
	if err := f.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(f.cmd, f.done)
}

// stop ends the run, with its session.
func (f *fleet) stop() {
	_ = f.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-f.done:
	case <-time.After(patience):
		f.t.Error("heartbeat run did not end")
		_ = f.cmd.Process.Kill()
	}
	if left := f.processes(); len(left) > 0 {
		f.t.Errorf("processes left: %q", left)
	}
}

// processes are those that have this world's state directory in their
// environment, where the system shows it.
func (f *fleet) processes() (commands []string) {
	f.environs(func(dir string, _ []byte) {
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		commands = append(commands, string(command))
	})
	return commands
}

func (f *fleet) environs(see func(dir string, env []byte)) {
	mark := []byte("HEARTBEAT_STATE_DIR=" + filepath.Join(f.dir, "state") + "\x00")
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if env, err := os.ReadFile(filepath.Join(dir, "environ")); err == nil && bytes.Contains(env, mark) {
			see(dir, env)
		}
	}
}

func (f *fleet) record() *hook.Record {
	r, err := hook.ReadRecord(filepath.Join(f.dir, "agents/triage/.heartbeat"))
	if err != nil || r == nil {
		return &hook.Record{}
	}
	return (*hook.Record)(r)
}

func (f *fleet) is(what string, is func(*hook.Record) bool) *hook.Record {
	f.t.Helper()
	until(f.t, what, func() bool { return is(f.record()) })
	return f.record()
}

// outbox returns the replies so far.
func (f *fleet) outbox() string {
	data, err := os.ReadFile(filepath.Join(f.dir, "agents/triage/.heartbeat/outbox.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.t.Error(err)
	}
	return string(data)
}

// ends returns why the sessions so far ended.
func (f *fleet) ends() (why []string) {
	for e, err := range journal.Read(filepath.Join(f.dir, "state/fleet")) {
		if err == nil && e.Kind == journal.Ended {
			why = append(why, e.Reason.String())
		}
	}
	return why
}

// sit starts the program in a terminal of its own.
func (f *fleet) sit(args ...string) (*ptyrun.Child, *testbed.Output) {
	f.t.Helper()
	self := testbed.Program(f.t, "heartbeat")
	out := &testbed.Output{}
	child, err := ptyrun.Start(f.t.Context(), ptyrun.Config{
		Argv: append([]string{self}, args...), Dir: f.dir, Env: append(slices.Clone(f.env), "TERM=xterm-256color"),
		Rows: 30, Cols: 100, Output: out, Grace: time.Second,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { child.End(context.Background()) })
	// Until it says how to leave its terminal is not raw: Enter would be a newline.
	until(f.t, "it shows something", func() bool { return out.String() != "" })
	return child, out
}

func press(t *testing.T, child *ptyrun.Child, keys string) {
	t.Helper()
	if _, err := child.Write([]byte(keys)); err != nil {
		t.Fatal(err)
	}
}

// exited waits for a program's end.
func exited(t *testing.T, child *ptyrun.Child) int {
	t.Helper()
	select {
	case <-child.Done():
	case <-time.After(patience):
		t.Error("it did not end")
	}
	return child.End(context.Background()).Code
}

// A turn that shows nothing but its spinner.
func TestStall(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{"rules": [{"match": "hang", "steps": [{"hang": true}]}]}`,
		"stall-timeout: 1500ms", "max-restarts: 0")
	f.ok("send", "triage", "hang")
	until(t, "the session has ended", func() bool { return len(f.ends()) > 0 })
	if got := f.ends()[0]; !strings.HasPrefix(got, "stalled (no tool runs, and no hook, no new line in the transcript") {
		t.Errorf("it ended by %q", got)
	}
}

func TestSecretsStayOutOfFiles(t *testing.T) {
	t.Parallel()
	secret := strings.Join([]string{"s3cr3t", "v4lue"}, "-") // not in the program, which the state directory holds
	f := startFleet(t, `{"rules": [{"steps": [
		{"tool": "Bash", "command": "test \"$API_TOKEN\" = s3cr3t-$(echo v4lue) && test \"$PLAIN\" = yes && touch got; tr '\\0' ' ' </proc/$PPID/cmdline >argv"},
		{"reply": "ok"}]}]}`,
		"env-file: secrets.env", "env: {PLAIN: yes}")
	f.ok("send", "triage", "no file yet")
	until(t, "the launch fails", func() bool { return strings.Contains(f.log.String(), "cannot read env-file") })
	f.put("secrets.env", "API_TOKEN="+secret+"\n")
	if err := os.Chmod(filepath.Join(f.dir, "secrets.env"), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the entry is done", func() bool { return strings.Contains(f.outbox(), `"ok"`) })
	if _, err := os.Stat(filepath.Join(f.dir, "agents/triage/got")); err != nil {
		t.Errorf("the session has not got its variables: %v", err)
	}
	printed := f.log.String() + f.ok("status") + f.ok("status", "-o", "json")
	f.stop()
	if strings.Contains(printed, secret) {
		t.Error("the secret was printed")
	}
	err := filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "secrets.env" {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("the secret stands in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNormalEndIsNoFailure: a session that we ended has no exit code to be
// afraid of, in its record, the status and the journal; a run says what it did
// at its start and its end.
func TestNormalEndIsNoFailure(t *testing.T) {
	t.Parallel()
	w := patient(t)
	w.ok("apply")
	w.ok("send", "triage", "hello")
	o := w.run("run", "--once")
	if o.status != 0 {
		t.Fatalf("status %d: %s", o.status, o.stderr)
	}
	for _, want := range []string{" heartbeat runs fleet=", " agents=1 pid=", "agent ending agent=triage why=drained\n", ` heartbeat stopped why="nothing is left to do" done=1 dead-lettered=0 queued=0 after=`} {
		if !strings.Contains(o.stderr, want) {
			t.Errorf("the log lacks %q:\n%s", want, o.stderr)
		}
	}
	for _, text := range []string{w.get("agents/triage/.heartbeat/session.json"), w.ok("status", "-o", "json")} {
		if !strings.Contains(text, "drained") || strings.Contains(text, "exit_code") || strings.Contains(text, "SIGTERM") {
			t.Errorf("a normal end reads as a failure: %s", text)
		}
	}
}
