package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// What of an agent's directory is opened by a program of ours: the folders, and
// every file.
var intrudedPaths = []string{
	"", ".heartbeat", ".heartbeat/sessions",
	".heartbeat/inbox.jsonl", ".heartbeat/.inbox-offset", ".heartbeat/.inbox-meta", ".heartbeat/.in-flight", ".heartbeat/.responded",
	".heartbeat/.dead-letter.jsonl", ".heartbeat/.ids", ".heartbeat/.inbox.jsonl.kept", ".heartbeat/.hook-lock", ".heartbeat/.session-lock",
	".heartbeat/urgent.jsonl", ".heartbeat/.urgent-in-flight", ".heartbeat/.waiting.jsonl", ".heartbeat/later",
	".heartbeat/outbox.jsonl", ".heartbeat/outbox.1.jsonl", ".heartbeat/session.json", ".heartbeat/.session.json.tmp",
	".heartbeat/hook.log", ".heartbeat/hook.log.1", ".heartbeat/fleet.json", ".heartbeat/.gitignore",
	".claude", ".claude/settings.json", ".claude/settings.local.json", ".claude/rules", "CLAUDE.md", ".mcp.json", "in", "in/new.md",
}

// intruder is what stands at such a path instead.
type intruder struct {
	name string
	// put puts it there; neighbour is what the path leads to in another agent's
	// directory, victim a folder and a file of nobody's.
	put func(t *testing.T, path, neighbour, victim string) error
}

func intruders() []intruder {
	list := []intruder{
		{"FIFO", func(_ *testing.T, path, _, _ string) error { return syscall.Mkfifo(path, 0o600) }},
		{"socket", func(t *testing.T, path, _, _ string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
				t.Cleanup(func() { l.Close() })
			}
			return err
		}},
		{"folder", func(_ *testing.T, path, _, _ string) error { return os.MkdirAll(filepath.Join(path, "full"), 0o700) }},
		{"sparse file of 4 TB", func(_ *testing.T, path, _, _ string) error {
			return errors.Join(os.WriteFile(path, []byte("{\"begins\": \"as one of ours\"}\n"), 0o600), os.Truncate(path, 4<<40))
		}},
		{"link to a file", func(_ *testing.T, path, _, victim string) error {
			return os.Symlink(filepath.Join(victim, "precious"), path)
		}},
		{"link to a folder", func(_ *testing.T, path, _, victim string) error { return os.Symlink(victim, path) }},
		{"link to a neighbour", func(_ *testing.T, path, neighbour, _ string) error { return os.Symlink(neighbour, path) }},
		{"link to nowhere", func(_ *testing.T, path, _, victim string) error {
			return os.Symlink(filepath.Join(victim, "nowhere"), path)
		}},
	}
	if os.Geteuid() == 0 { // mknod(2) is for root; a container may refuse it all the same
		list = append(list, intruder{"device", func(_ *testing.T, path, _, _ string) error {
			err := syscall.Mknod(path, syscall.S_IFCHR|0o600, 5<<8) // /dev/tty: opening it waits for nothing and gives a terminal
			if errors.Is(err, syscall.EPERM) {
				err = syscall.Mkfifo(path, 0o600)
			}
			return err
		}})
	}
	return list
}

// siege is a fleet in which each agent but one, "good", has had one path replaced.
type siege struct {
	*world
	t      *testing.T
	agents []string // as the paths
	victim string
	taken  string // where what stood there was moved
}

func newSiege(t *testing.T) *siege {
	t.Helper()
	w := newWorld(t)
	s := &siege{world: w, t: t, victim: filepath.Join(w.dir, "victim"), taken: filepath.Join(w.dir, "taken")}
	w.put("victim/precious", "precious")
	w.put("taken/README", "")
	var yaml strings.Builder
	yaml.WriteString("version: 1\nname: fleet\nmax-sessions: 3\nshutdown-grace: 2s\ndefaults:\n  command: [heartbeat, simulate]\n  end-grace: 1s\nagents:\n")
	const agent = "  %s:\n    dir: agents/%[1]s\n    triggers:\n" +
		"      - {watch: [\"in/*.md\"], prompt: \"Look at {{.Path}}\"}\n      - {poll: [\"true\"], every: 1s}\n"
	yaml.WriteString(fmt.Sprintf(agent, "good"))
	for i := range intrudedPaths {
		name := fmt.Sprintf("p%02d", i)
		s.agents = append(s.agents, name)
		yaml.WriteString(fmt.Sprintf(agent, name))
	}
	w.put("heartbeat.yaml", yaml.String())
	for _, name := range append(s.agents, "good") {
		w.put("agents/"+name+"/in/README", "")
		w.put("agents/"+name+"/CLAUDE.md", "Be good.")
	}
	return s
}

// replace puts the intruder in place of each agent's path.
func (s *siege) replace(in intruder) {
	s.t.Helper()
	for i, rel := range intrudedPaths {
		dir := filepath.Join(s.dir, "agents", s.agents[i])
		path := filepath.Join(dir, rel)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.Rename(path, filepath.Join(s.taken, s.agents[i]))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err == nil {
			err = in.put(s.t, path, filepath.Join(s.dir, "agents", "good", rel), s.victim)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// siegePatience is far more than anything takes that does not block.
const siegePatience = time.Minute

// within runs the program and fails when it blocks or breaks. Whether it
// succeeds is its own affair.
func (s *siege) within(args ...string) outcome {
	s.t.Helper()
	cmd := s.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		s.t.Error(err)
		return outcome{}
	}
	blocked := time.AfterFunc(siegePatience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	_ = cmd.Wait()
	o := outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
	switch {
	case !blocked.Stop():
		s.t.Errorf("heartbeat %q blocks:\n%.3000s", args, o.stderr)
	case o.status < 0 || strings.Contains(o.stderr, "goroutine "):
		s.t.Errorf("heartbeat %q: status %d\n%s", args, o.status, o.stderr)
	}
	return o
}

// each runs commands for all agents, or a sample of both, a few at once.
func (s *siege) each(commands ...string) {
	s.t.Helper()
	slots := make(chan struct{}, 3)
	var all sync.WaitGroup
	turn := testbed.Turn(s.t, 1)
	for i, agent := range s.agents {
		for j, command := range commands {
			if (i+j+turn)%testbed.Stride(1) != 0 {
				continue
			}
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				s.within(strings.Fields(strings.ReplaceAll(command, "AGENT", agent))...)
			})
		}
	}
	all.Wait()
}

// served checks that the good agent does its work.
func (s *siege) served(prompt string) {
	s.t.Helper()
	if o := s.within("send", "good", "--wait", "--timeout", "50s", prompt); o.status != 0 || o.stdout != "done: "+prompt+"\n" {
		s.t.Errorf("the neighbour: status %d, %q\n%s", o.status, o.stdout, o.stderr)
	}
}

// ends stops a run.
func (s *siege) ends(r *running) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), siegePatience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = r.cmd.Process.Signal(syscall.SIGQUIT) })
	r.stop()
	if !stop() {
		s.t.Errorf("run does not end:\n%s", r.stderr)
	}
}

// A path that an agent can touch was replaced by a FIFO, and status, doctor,
// inbox and the scheduler hung; SIGTERM was ignored.
func TestWhateverAnAgentPutsInPlaceOfOurFiles(t *testing.T) {
	t.Parallel()
	for _, in := range testbed.SampleOf(t, intruders(), 30) {
		t.Run(in.name, func(t *testing.T) {
			t.Parallel()
			s := newSiege(t)
			s.ok("apply")
			r := s.background()
			s.served("before")
			s.replace(in)
			for _, command := range []string{"status", "status -o json", "doctor", "validate", "diff", "events", "history", "next", "apply", "reload"} {
				s.within(strings.Fields(command)...)
			}
			s.each("send AGENT hello", "inbox AGENT", "dead-letter AGENT", "replies AGENT", "logs AGENT", "logs AGENT --raw", "trigger AGENT")
			s.served("meanwhile")
			s.put("agents/good/in/one.md", "x")
			s.ends(r)
			s.each("recover AGENT")

			// What another agent has by now is none of ours.
			r = s.background()
			s.served("after a restart")
			s.within("status")
			s.ends(r)
			s.within("unapply")
			s.unharmed()
		})
	}
}

// unharmed checks what links led to.
func (s *siege) unharmed() {
	s.t.Helper()
	names, err := os.ReadDir(s.victim)
	if data := s.get("victim/precious"); err != nil || len(names) != 1 || data != "precious" {
		s.t.Errorf("the victim holds %v (%v), and %q", names, err, data)
	}
	prompts := map[string]int{}
	for line := range strings.Lines(s.get("agents/good/.heartbeat/outbox.jsonl")) {
		_, reply, _ := strings.Cut(line, `"reply":"`)
		reply, _, _ = strings.Cut(reply, `"`)
		prompts[reply]++
	}
	for reply, n := range prompts {
		if n > 1 || !strings.HasPrefix(reply, "done: before") && !strings.HasPrefix(reply, "done: meanwhile") &&
			!strings.HasPrefix(reply, "done: after a restart") && !strings.HasPrefix(reply, "done: Look at in/one.md") {
			s.t.Errorf("the neighbour did %q %d times", reply, n)
		}
	}
	if log := s.get("agents/good/.heartbeat/inbox.jsonl"); strings.Contains(log, "hello") {
		s.t.Errorf("the neighbour was sent what was another's: %s", log)
	}
}

// What of a fleet's state directory is opened by a program of ours.
var intrudedState = []string{
	"heartbeat.lock", "journal.jsonl", "journal.1.jsonl", "owner.json", "identities.json", "paused.json", "applied", "live/left.json",
	"agents/good.json", "conversations/good.json", "triggers/good.json", ".apply-lock",
}

// A FIFO in the state directory stopped events, history and, where it stood among
// what sessions had left, the scheduler, which then ignored SIGTERM.
func TestWhateverStandsInPlaceOfTheState(t *testing.T) {
	t.Parallel()
	for _, in := range testbed.SampleOf(t, intruders(), 10) {
		t.Run(in.name, func(t *testing.T) {
			t.Parallel()
			s := newSiege(t)
			s.planted = true
			s.ok("apply")
			r := s.background()
			s.served("before")
			var state string
			for _, kv := range s.env {
				if base, ok := strings.CutPrefix(kv, "HEARTBEAT_STATE_DIR="); ok {
					state = filepath.Join(base, "fleet")
				}
			}
			replace := func(rel string) {
				t.Helper()
				path := filepath.Join(state, rel)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(path, path+".away"); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				if err := in.put(t, path, filepath.Join(s.dir, "agents/good/CLAUDE.md"), s.victim); err != nil {
					t.Fatal(err)
				}
			}
			for _, rel := range intrudedState {
				replace(rel)
			}
			s.within("send", "good", "meanwhile")
			for _, command := range []string{"status", "doctor", "validate", "diff", "events", "history", "next", "apply", "pause good", "resume good", "trigger good", "reload", "logs good", "screen good"} {
				s.within(strings.Fields(command)...)
			}
			replace("heartbeat.db")
			select {
			case <-r.done: // it can keep nothing any more
			case <-time.After(patience):
				t.Error("the run goes on without its store")
				s.ends(r)
			}
			for _, command := range []string{"status", "doctor", "events", "history", "pause good", "resume good", "backup"} {
				s.within(strings.Fields(command)...)
			}
			s.within("run", "--once", "--once-timeout", "2s")
			if names, err := os.ReadDir(s.victim); err != nil || len(names) != 1 || s.get("victim/precious") != "precious" {
				t.Errorf("the victim holds %v (%v)", names, err)
			}
		})
	}
}
