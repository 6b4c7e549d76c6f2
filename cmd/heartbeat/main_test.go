package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(envRecord); path != "" {
		if err := record(path); err != nil {
			os.Exit(1)
		}
		return
	}
	if socket := os.Getenv(envAsk); socket != "" {
		if err := askSocket(socket); err != nil {
			os.Exit(1)
		}
		return
	}
	if killsItsScheduler() {
		return
	}
	os.Exit(testbed.Run(m))
}

// world is an empty machine: a directory, and an environment that knows
// nothing of ours.
type world struct {
	t   *testing.T
	dir string
	env []string
	// planted is true if the test puts files of its own into the state directory.
	planted bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	// t.TempDir has the test's name in it: too long for the paths of sockets.
	dir, err := os.MkdirTemp("", "w")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t}
	t.Cleanup(func() {
		if !t.Failed() && !w.planted {
			checkFiles(t, filepath.Join(dir, "state"))
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("cannot clean up: %v", err)
		}
	})
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w.dir = dir
	w.env = []string{
		// Under the race detector each process would sleep for a second as it ends.
		"GORACE=atexit_sleep_ms=0",
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"),
		"HEARTBEAT_STATE_DIR=" + filepath.Join(dir, "state"), "TMPDIR=" + dir,
	}
	return w
}

// oneAgent is the smallest fleet.
const oneAgent = "version: 1\nname: fleet\nagents:\n  triage:\n    dir: agents/triage\n"

func (w *world) put(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// untilLetGo is a step in which the turn of an agent in agents/NAME stays until letGo,
// however slow the machine is.
const untilLetGo = `{"await": "../../let-go"}`

// letGo ends the held step, now and later.
func (w *world) letGo() {
	w.t.Helper()
	w.put("let-go", "")
}

func (w *world) get(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// names lists a directory of the world; none is an empty one.
func (w *world) names(dir string) []string {
	w.t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, dir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// socket finds a socket by its name; "": there is none yet.
func (w *world) socket(name string) (found string) {
	_ = filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == name && e.Type()&fs.ModeSocket != 0 {
			found = path
		}
		return nil
	})
	return found
}

// outcome is how a run of the program ended.
type outcome struct {
	stdout, stderr string
	status         int
}

// command is a run of the program that has not been started.
func (w *world) command(args ...string) *exec.Cmd {
	self := testbed.Program(w.t, "heartbeat")
	cmd := exec.CommandContext(w.t.Context(), self, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.dir, w.env, 5*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

// run runs the program with stdin from /dev/null.
func (w *world) run(args ...string) outcome { return w.feed("", args...) }

// feed runs the program with text on a pipe as stdin; "" is /dev/null.
func (w *world) feed(stdin string, args ...string) outcome {
	w.t.Helper()
	cmd := w.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("heartbeat %q: %v", args, err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// noClient is what validate and apply say on a machine without a client.
var noClient = regexp.MustCompile(`(?m)^warning: claude, which .* would run, is not found in PATH .*\n`)

// stillAt is what a command says every ten seconds.
var stillAt = regexp.MustCompile(`(?m)^(\d+m)?\d+s: .*\n`)

// ok runs the program and expects that it succeeds in silence, also on a machine that is
// slow or without a client.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	o := w.run(args...)
	o.stderr = stillAt.ReplaceAllString(noClient.ReplaceAllString(o.stderr, ""), "")
	if o.status != 0 || o.stderr != "" {
		w.t.Fatalf("heartbeat %q: status %d\nstdout: %s\nstderr: %s", args, o.status, o.stdout, o.stderr)
	}
	return o.stdout
}

// done is ok where warnings may be printed.
func (w *world) done(args ...string) string {
	w.t.Helper()
	o := w.run(args...)
	if o.status != 0 {
		w.t.Fatalf("heartbeat %q: status %d\nstdout: %s\nstderr: %s", args, o.status, o.stdout, o.stderr)
	}
	return o.stdout
}

// reply is an envelope as a reader in another language sees it.
type reply struct {
	OK    *bool           `json:"ok"`
	Data  json.RawMessage `json:"data"`
	Error *struct {
		Code, Message, Hint *string
	} `json:"error"`
	Warnings []string `json:"warnings"`
	Meta     struct {
		DurationMS *int64 `json:"duration_ms"`
	} `json:"meta"`
	Heartbeat *bool `json:"heartbeat"`
}

// envelopeOf parses the last line of stdout and checks its shape.
func envelopeOf(t *testing.T, o outcome) reply {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
	var r reply
	dec := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		t.Fatalf("the last line is no envelope: %v\n%s\nstderr: %s", err, o.stdout, o.stderr)
	}
	switch {
	case r.OK == nil, r.Meta.DurationMS == nil, r.Warnings == nil, r.Heartbeat != nil:
		t.Fatalf("the envelope lacks a field or has one too many: %s", o.stdout)
	case *r.OK != (o.status == 0), *r.OK != (r.Error == nil):
		t.Fatalf("ok, error and exit status %d do not agree: %s", o.status, o.stdout)
	case r.Error != nil && (r.Error.Code == nil || r.Error.Message == nil || r.Error.Hint == nil):
		t.Fatalf("the error lacks a field: %s", o.stdout)
	}
	return r
}

// into runs the program with -o json and reads the data.
func (w *world) into(data any, args ...string) {
	w.t.Helper()
	o := w.run(append(args, "-o", "json")...)
	r := envelopeOf(w.t, o)
	if !*r.OK {
		w.t.Fatalf("heartbeat %q: %s", args, o.stdout)
	}
	if err := json.Unmarshal(r.Data, data); err != nil {
		w.t.Fatal(err)
	}
}
