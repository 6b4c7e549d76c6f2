package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/ptyrun"
)

// patience is how long tests wait for what other processes do.
const patience = time.Minute

// until waits for something that other processes bring about.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// said is what a program has written so far.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// fleet is a world in which `heartbeat run` runs one agent, triage, with the
// stand-in for the client.
type fleet struct {
	*world
	log  said
	cmd  *exec.Cmd
	done chan struct{}
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
		strings.Join(fields, "\n    ")+"\n")
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
	return r
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
	data, err := os.ReadFile(filepath.Join(f.dir, "state/fleet/journal.jsonl"))
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(data) {
		var e struct{ Kind, Reason string }
		if json.Unmarshal(line, &e) == nil && e.Kind == "ended" {
			why = append(why, e.Reason)
		}
	}
	return why
}

// sit starts the program in a terminal of its own.
func (f *fleet) sit(args ...string) (*ptyrun.Child, *said) {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	out := &said{}
	child, err := ptyrun.Start(f.t.Context(), ptyrun.Config{
		Argv: append([]string{self}, args...), Dir: f.dir, Env: append(slices.Clone(f.env), "TERM=xterm-256color"),
		Rows: 30, Cols: 100, Output: out, Grace: time.Second,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { child.End(context.Background()) })
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

// change changes the session's record as the shim does.
func (f *fleet) change(how func(*hook.Record)) {
	f.t.Helper()
	home := filepath.Join(f.dir, "agents/triage/.heartbeat")
	q, err := inbox.Open(inbox.Place{Inbox: filepath.Join(home, "inbox.jsonl"), Home: home})
	if err != nil {
		f.t.Fatal(err)
	}
	defer q.Close()
	unlock, err := q.Lock(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	defer unlock()
	r := f.record()
	how(r)
	if err := r.Write(home); err != nil {
		f.t.Fatal(err)
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{}`, "mode: persist", "idle-grace: 500ms")
	f.ok("send", "triage", "first")
	first := f.is("the first is done and a hook waits", func(r *hook.Record) bool {
		return r.Acknowledged == 1 && r.Phase == hook.Waiting
	})

	// Who joins and leaves disturbs nothing.
	child, out := f.sit("attach", "triage")
	until(t, "it shows what was said", func() bool { return strings.Contains(out.String(), "done: first") })
	f.is("somebody is there", func(r *hook.Record) bool { return r.Attached == 1 })
	press(t, child, "\x1c")
	if code := exited(t, child); code != 0 || !strings.Contains(out.String(), "detached from triage") {
		t.Errorf("status %d: %q", code, out.String())
	}
	if left := out.String(); !strings.Contains(left[strings.LastIndex(left, "done: first"):], "\x1b[?2004l") {
		t.Errorf("the terminal is not put back: %q", left)
	}
	f.is("nobody is there", func(r *hook.Record) bool { return r.Attached == 0 })
	f.ok("send", "triage", "second")
	f.is("the second is done in the same session", func(r *hook.Record) bool {
		return r.Session == first.Session && r.Acknowledged == 2 && r.Phase == hook.Waiting
	})

	// Who types has the session for themselves.
	child, out = f.sit("attach", "triage")
	looker := f.command("attach", "triage", "--read-only")
	seen := &said{}
	looker.Stdout = seen
	if err := looker.Start(); err != nil {
		t.Fatal(err)
	}
	f.is("somebody is there; a looker does not count", func(r *hook.Record) bool { return r.Attached == 1 })
	press(t, child, "\x1b")
	f.is("the waiting hook has ended", func(r *hook.Record) bool {
		return time.Since(r.TypedAt) < time.Minute && r.Phase == hook.Unattended
	})
	press(t, child, "a word from a person\r")
	for _, o := range []*said{out, seen} {
		until(t, "an answer", func() bool { return strings.Contains(o.String(), "done: a word from a person") })
	}
	f.is("the session waits again", func(r *hook.Record) bool { return r.Phase == hook.Waiting })
	if o := f.ok("screen", "triage"); !strings.Contains(o, "done: a word from a person") {
		t.Errorf("heartbeat screen: %s", o)
	}
	var p struct {
		Agent string
		Size  struct{ Rows, Cols int }
		Lines []string
	}
	f.into(&p, "screen", "triage")
	if p.Agent != "triage" || p.Size.Rows != 30 || p.Size.Cols != 100 || len(p.Lines) == 0 {
		t.Errorf("heartbeat screen -o json: %+v", p)
	}
	f.ok("send", "triage", "third")
	until(t, "status says why it is not handed over", func() bool {
		return strings.Contains(f.ok("status"), "triage: a person has typed in its session; prompts go on in 1m")
	})
	press(t, child, "\x1c")
	exited(t, child)
	left := f.is("the person has left", func(r *hook.Record) bool { return r.Attached == 0 })
	until(t, "three times idle-grace pass", func() bool { return time.Since(left.TypedAt) > 3*time.Second })
	if r := f.record(); r.Session != first.Session || r.Phase != hook.Waiting || strings.Contains(f.outbox(), "third") {
		t.Errorf("a session in which somebody has just typed was ended or given work: %s %s", r.Session, r.Phase)
	}
	f.change(func(r *hook.Record) { r.Policy.TypingPause = time.Millisecond }) // two minutes later
	f.is("the third is done in the same session", func(r *hook.Record) bool {
		return r.Session == first.Session && r.Acknowledged == 3 && r.Phase == hook.Waiting
	})
	if got := f.ends(); len(got) != 0 {
		t.Errorf("a session ended by %q", got)
	}
	if err := looker.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := looker.Wait(); err != nil || !strings.Contains(seen.String(), "detached from triage") {
		t.Errorf("the looker: %v %q", err, seen.String())
	}
}

// TestASessionThatAPersonBrokeOff: after Esc no hook waits any more. The
// session is the person's while they are there, and status says why it is
// handed nothing.
func TestASessionThatAPersonBrokeOff(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{}`, "mode: persist", "idle-grace: 500ms")
	f.ok("send", "triage", "first")
	f.is("a hook waits", func(r *hook.Record) bool { return r.Acknowledged == 1 && r.Phase == hook.Waiting })
	child, _ := f.sit("attach", "triage")
	f.is("somebody is there", func(r *hook.Record) bool { return r.Attached == 1 })
	press(t, child, "\x1b")
	alone := f.is("the waiting hook has ended", func(r *hook.Record) bool { return r.Phase == hook.Unattended })
	f.ok("send", "triage", "second")
	until(t, "three times idle-grace pass", func() bool { return time.Since(alone.Since) > 1500*time.Millisecond })
	if o := f.ok("status"); !strings.Contains(o, "triage: a person has its session for themselves") {
		t.Errorf("status does not say why nothing is handed over:\n%s", o)
	}
	if r := f.record(); r.Session != alone.Session || r.Phase != hook.Unattended {
		t.Errorf("a session that somebody uses was ended or given work: %s %s", r.Session, r.Phase)
	}
	press(t, child, "\x1c")
	exited(t, child)
	until(t, "the second is done", func() bool { return strings.Contains(f.outbox(), "done: second") })
	if got := f.ends(); len(got) != 1 || !strings.HasPrefix(got[0], "released (the person who had joined it has left") {
		t.Errorf("the session that the person had used ended by %q", got)
	}
}

// TestWhatAPersonTypesInATurnRunsFirst: it was swallowed when they left
// before the turn's end, and what was queued ran before it.
func TestWhatAPersonTypesInATurnRunsFirst(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"drain", "persist"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, `{"rules": [{"match": "slow", "steps": [{"delay": "4s"}, {"reply": "done: slow"}]}]}`, "mode: "+mode)
			f.ok("send", "triage", "slow")
			f.ok("send", "triage", "second")
			f.is("a turn", func(r *hook.Record) bool { return r.Phase == hook.Turn })
			child, out := f.sit("attach", "triage")
			f.is("somebody is there", func(r *hook.Record) bool { return r.Attached == 1 })
			press(t, child, "please also do this\r")
			f.is("it was submitted", func(r *hook.Record) bool { return r.Line.Submitted == 1 })
			press(t, child, "\x1c")
			if exited(t, child); strings.Contains(out.String(), "done: slow") {
				t.Fatal("the turn was over before they left")
			}
			until(t, "it is done", func() bool { return strings.Contains(f.run("logs", "triage").stdout, "done: please also do this") })
			r := f.is("the session waits", func(r *hook.Record) bool { return r.Phase == hook.Waiting })
			if r.Acknowledged != 1 || strings.Contains(f.outbox(), "done: second") {
				t.Errorf("the queue went on before two minutes were over: %+v", r)
			}
			f.change(func(r *hook.Record) { r.Policy.TypingPause = time.Millisecond })
			until(t, "the second is done", func() bool { return strings.Contains(f.outbox(), "done: second") })
			if again := f.record(); again.Session != r.Session {
				t.Errorf("not in the same session: %+v", again)
			}
		})
	}
}

func TestAttachToNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	for _, args := range [][]string{{"attach", "triage", "--read-only"}, {"screen", "triage"}} {
		o := w.run(args...)
		if o.status != 3 || o.stdout != "" || !strings.Contains(o.stderr, `cannot join agent "triage": no session is running`) ||
			!strings.Contains(o.stderr, "hint: heartbeat status triage") {
			t.Errorf("%q: %+v", args, o)
		}
	}
	for _, tt := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"attach", "triage"}, 2, "attach needs a terminal"},
		{[]string{"attach", "triage", "--detach-keys", "ctrl-1"}, 2, `--detach-keys: "ctrl-1" is not a key`},
		{[]string{"attach", "traige", "--read-only"}, 1, "did you mean triage?"},
	} {
		if o := w.run(tt.args...); o.status != tt.status || !strings.Contains(o.stderr, tt.stderr) {
			t.Errorf("%q: %+v", tt.args, o)
		}
	}
}

// A turn that shows nothing but its spinner.
func TestStall(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{"rules": [{"match": "hang", "steps": [{"hang": true}]}]}`,
		"stall-timeout: 1500ms", "max-restarts: 0")
	f.ok("send", "triage", "hang")
	until(t, "the session has ended", func() bool { return len(f.ends()) > 0 })
	if got := f.ends()[0]; !strings.HasPrefix(got, "stalled (no hook, no new line in the transcript") {
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
