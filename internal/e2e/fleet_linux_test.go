package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook"
	hookclient "heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/internal/fakeapi"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
	"heartbeat/ptyrun/screen"
)

// fleet is a lab in which `heartbeat run` drives the client.
type fleet struct {
	*Lab
	bin  string
	file string
	// managed is a folder to lay over /etc for our programs alone, or "".
	managed string
}

// agentYAML is one agent in the lab's workspace; %s is more of its fields,
// indented by four blanks.
const agentYAML = `version: 1
shutdown-grace: none
agents:
  a:
    dir: %s
    command: %s
    permissions:
      allow: [Bash]
    end-grace: 5s
%s`

// newFleet prepares a lab with one agent, "a", in its workspace. fields are
// further fields of the agent, one a line. Its client has as long to start as a busy
// machine needs.
func newFleet(t *testing.T, c client, fields []string, rules ...fakeapi.Rule) *fleet {
	t.Helper()
	l := newLab(t, c, nil, rules...)
	f := &fleet{Lab: l, bin: testbed.Programs(t), file: filepath.Join(l.Dir, "heartbeat.yaml")}
	command := fmt.Sprintf("[%q]", c.path)
	if !c.real {
		command = fmt.Sprintf("[heartbeat, simulate, --script, %q]", filepath.Join(l.Dir, "script.json"))
		l.Setenv("SIMULATE_LOG=" + filepath.Join(l.Dir, "model.jsonl"))
	}
	var more strings.Builder
	if !slices.ContainsFunc(fields, func(field string) bool { return strings.HasPrefix(field, "start-timeout:") }) {
		fields = append(slices.Clone(fields), "start-timeout: "+patience.String())
	}
	for _, field := range fields {
		more.WriteString("    " + field + "\n")
	}
	f.write(f.file, fmt.Sprintf(agentYAML, strconv.Quote(l.Work), command, more.String()))
	l.Setenv("HEARTBEAT_STATE_DIR="+filepath.Join(l.Dir, "state"), "HEARTBEAT_FILE="+f.file)
	return f
}

func (f *fleet) write(path, text string) {
	f.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// overlay runs a program that sees a folder laid over /etc, which nobody else
// does: $0 is the folder, with room for the kernel's own in it.
const overlay = `mount -t overlay overlay -o "lowerdir=/etc,upperdir=$0/upper,workdir=$0/work" /etc && exec "$@"`

// program is a command of ours.
func (f *fleet) program(args ...string) *exec.Cmd {
	argv := append([]string{filepath.Join(f.bin, "heartbeat")}, args...)
	if f.managed != "" {
		argv = append([]string{"unshare", "-m", "sh", "-c", overlay, f.managed}, argv...)
	}
	return exec.Command(argv[0], argv[1:]...)
}

// heartbeat runs a command to its end.
func (f *fleet) heartbeat(stdin string, args ...string) (stdout, stderr string, code int) {
	f.t.Helper()
	cmd := f.program(args...)
	var out, err bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &err
	cmd.Env, cmd.Dir = f.Env(), f.Dir
	if e := cmd.Run(); e != nil && cmd.ProcessState == nil {
		f.t.Fatal(e)
	}
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

// must is heartbeat where only success will do.
func (f *fleet) must(stdin string, args ...string) string {
	f.t.Helper()
	out, errs, code := f.heartbeat(stdin, args...)
	if code != 0 {
		f.t.Fatalf("heartbeat %s: exit %d\n%s%s%s", strings.Join(args, " "), code, out, errs, f.hookLog())
	}
	return out
}

func (f *fleet) send(text string) { f.t.Helper(); f.must(text, "send", "a", "-") }

// scheduler is a running `heartbeat run`.
type scheduler struct {
	f      *fleet
	cmd    *exec.Cmd
	stderr *testbed.Output
	done   chan struct{}
}

// start starts `heartbeat run` and ends it with the test.
func (f *fleet) start(args ...string) *scheduler {
	f.t.Helper()
	s := &scheduler{f: f, stderr: &testbed.Output{}, done: make(chan struct{})}
	s.cmd = f.program(append([]string{"run"}, args...)...)
	s.cmd.Env, s.cmd.Dir = f.Env(), f.Dir
	s.cmd.Stdout, s.cmd.Stderr = s.stderr, s.stderr
	if err := s.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.done)
	}()
	f.t.Cleanup(func() {
		if f.t.Failed() {
			f.t.Logf("the session: %+v\nits terminal:\n%s", f.session(), f.terminal())
		}
		s.stop()
		if f.t.Failed() {
			f.t.Logf("heartbeat run:\n%s\nhook.log:\n%s", s.stderr, f.hookLog())
		}
	})
	return s
}

// stop ends the run as a person would, with Ctrl-C, and waits for it. One that has just
// been started hears it, too: before, it would end without what it has to do at the end.
func (s *scheduler) stop() {
	s.f.t.Helper()
	testbed.Await(patience, func() bool {
		select {
		case <-s.done:
			return true
		default:
			return strings.Contains(s.stderr.String(), "heartbeat runs")
		}
	})
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-s.done:
	case <-time.After(patience):
		s.f.t.Errorf("heartbeat run did not end within %v of SIGINT", patience)
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

func (f *fleet) home() string { return filepath.Join(f.Work, ".heartbeat") }

func (f *fleet) hookLog() string {
	b, _ := os.ReadFile(filepath.Join(f.home(), "hook.log"))
	return string(b)
}

// outbox returns the acknowledged entries.
func (f *fleet) outbox() []promise.Reply {
	f.t.Helper()
	return readLines[promise.Reply](f.t, filepath.Join(f.home(), "outbox.jsonl"))
}

func (f *fleet) dead() []promise.Dead {
	f.t.Helper()
	return readLines[promise.Dead](f.t, filepath.Join(f.home(), ".dead-letter.jsonl"))
}

// ask is a [promise.Ask].
func (f *fleet) ask(args ...string) ([]byte, error) {
	out, errs, code := f.heartbeat("", args...)
	if code != 0 {
		return nil, fmt.Errorf("heartbeat %q: exit %d: %s%s", args, code, out, errs)
	}
	return []byte(out), nil
}

// queueOf is what an agent has in flight and queued.
func (f *fleet) queueOf(agent string) []promise.Queued {
	f.t.Helper()
	all, err := promise.Ask(f.ask).Inbox(agent)
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// phase waits for the live session to be in a phase.
func (f *fleet) phase(want hook.Phase) {
	f.t.Helper()
	f.Until("phase "+string(want), func() bool { return f.session().Phase == want })
}

// terminal is what the newest session's terminal shows.
func (f *fleet) terminal() string {
	path := newest(filepath.Join(f.home(), "sessions", "*.log"))
	if path == "" {
		return ""
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	var shown []string
	for _, l := range screen.Text(50, 200, b) {
		if strings.TrimSpace(l) != "" {
			shown = append(shown, l)
		}
	}
	return strings.Join(shown, "\n")
}

func readLines[T any](t *testing.T, path string) []T {
	t.Helper()
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out []T
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return out
		}
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s: %v: %q", path, err, line)
		}
		out = append(out, v)
	}
}

// calls returns what reached the model, a list of new prompts for each call,
// whichever client it was.
func (f *fleet) calls() [][]string {
	f.t.Helper()
	if f.client.real {
		return f.ModelCalls()
	}
	var out [][]string
	for _, r := range readLines[struct{ Prompts []string }](f.t, filepath.Join(f.Dir, "model.jsonl")) {
		out = append(out, r.Prompts)
	}
	return out
}

// prompts returns the texts of all calls without the client's frame.
func (f *fleet) prompts() []string {
	f.t.Helper()
	var out []string
	for _, call := range f.calls() {
		for _, p := range call {
			out = append(out, unframe(p))
		}
	}
	return out
}

// whole returns what the model was asked to do: the text that it was given or, where
// the client would have cut that, what the file holds that it names.
func (f *fleet) whole(given string) string {
	f.t.Helper()
	_, rest, ok := strings.Cut(given, "too long to be handed over itself. It is in the file \"")
	path, _, named := strings.Cut(rest, `"`)
	if !ok || !named {
		return given
	}
	data, err := os.ReadFile(path)
	if err != nil || filepath.Dir(path) != f.home() || len(data) <= hookclient.MostWhole {
		f.t.Fatalf("%.300q names a file of %d bytes: %v", given, len(data), err)
	}
	return string(data)
}

// unframe takes off what the client and the kick-off put before an entry.
func unframe(prompt string) string {
	if rest, ok := strings.CutPrefix(prompt, handover.KickoffPrompt("")); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(prompt, "Stop hook feedback:\n["); ok {
		if _, text, ok := strings.Cut(rest, "]: "); ok {
			return text
		}
	}
	return prompt
}

// processes returns the processes whose environment has this lab's state
// directory: everything that `heartbeat run` started.
func (f *fleet) processes() []int {
	mark := []byte("HEARTBEAT_STATE_DIR=" + filepath.Join(f.Dir, "state") + "\x00")
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var out []int
	for _, d := range dirs {
		env, err := os.ReadFile(filepath.Join(d, "environ"))
		if err == nil && bytes.Contains(env, mark) {
			pid, _ := strconv.Atoi(filepath.Base(d))
			out = append(out, pid)
		}
	}
	return out
}

// gone waits until no process of the fleet is left. What the model's tools leave behind would
// last far longer.
func (f *fleet) gone() {
	f.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := f.processes()
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("processes left after %v: %v", patience, left)
		}
	}
}
