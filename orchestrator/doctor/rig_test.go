package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/clients"
	"heartbeat/orchestrator/probe"
	"heartbeat/orchestrator/workspace"
)

// rig is a machine on which nothing is wrong: a client, a home in which it
// was set up, and one agent that was applied.
type rig struct {
	t     *testing.T
	dir   string // holds everything
	home  string
	self  string
	state string
	agent *config.Agent
	// scheduler is the run that answers, or nil.
	scheduler *Scheduler
	env       map[string]string
	probed    *probe.Result // of the client
	// client is the content of .claude.json; project the directory's part.
	client, project map[string]any
}

const testKey = "sk-made-up-for-tests-0123456789abcdefghij"

func newRig(t *testing.T) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	r := &rig{
		t: t, dir: dir, home: filepath.Join(dir, "home"), state: filepath.Join(dir, "state"),
		self: filepath.Join(dir, "bin", "heartbeat"),
		agent: &config.Agent{
			Name: "triage", Dir: work, Home: filepath.Join(work, ".heartbeat"),
			Inbox: filepath.Join(work, ".heartbeat", "inbox.jsonl"), Command: []string{"claude"},
			Settings: config.SettingsProject, Permissions: config.Permissions{Mode: "dontAsk"},
			Mode: hook.Persist, IdleInterval: 30 * time.Minute, OnOrphan: inbox.DeadLetter, MaxAttempts: 5,
			Env: map[string]string{},
		},
		project: map[string]any{"hasTrustDialogAccepted": true},
	}
	r.client = map[string]any{
		"hasCompletedOnboarding": true,
		"customApiKeyResponses":  map[string]any{"approved": []string{testKey[len(testKey)-20:]}},
		"projects":               map[string]any{work: r.project},
	}
	r.env = map[string]string{"HOME": r.home, "PATH": filepath.Join(dir, "bin"), claude.Variables.Key: testKey, claude.Variables.Sandbox: "1"}
	for _, d := range []string{r.home, work, r.state, filepath.Join(dir, "bin")} {
		r.must(os.MkdirAll(d, 0o700))
	}
	r.version(claude.Versions.Measured)
	self, err := idleProgram()
	r.must(err)
	r.must(os.Symlink(self, r.self))
	r.apply()
	return r
}

// idleProgram builds a program of this module that does nothing. Each rig copies
// its program, and each look at one reads it: of the test binary, which is eight
// times as long, that was half of what these tests cost.
var idleProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "nothing")
	if err != nil {
		return "", err
	}
	for name, text := range map[string]string{"go.mod": "module heartbeat\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", "heartbeat")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(dir, "heartbeat"), nil
})

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// version makes the client say so.
func (r *rig) version(v string) {
	r.t.Helper()
	r.program("bin/claude", "#!/bin/sh\necho '"+v+" (Claude Code)'\n")
}

// program writes an executable. It is made in two steps, so that no child of
// a parallel test holds it open for writing when it is run (ETXTBSY).
func (r *rig) program(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	r.must(os.MkdirAll(filepath.Dir(path), 0o700))
	r.must(os.WriteFile(path+".new", []byte(text), 0o700))
	r.must(os.Rename(path+".new", path))
}

// put writes a file, given relative to the rig.
func (r *rig) put(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	r.must(errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
}

func (r *rig) remove(name string) { r.t.Helper(); r.must(os.RemoveAll(filepath.Join(r.dir, name))) }

// age sets a file's time.
func (r *rig) age(name string, by time.Duration) {
	r.t.Helper()
	at := time.Now().Add(-by)
	r.must(os.Chtimes(filepath.Join(r.dir, name), at, at))
}

const (
	projectFile = "work/.claude/settings.json"
	localFile   = "work/.claude/settings.local.json"
	userFile    = "home/.claude/settings.json"
	managedFile = "etc/managed-settings.json"
)

// scheduled is a file of prompts that the client gives itself.
const scheduled = `{"tasks":[{"id":"a","cron":"* * * * *","prompt":"look at the mail"}]}`

// edit changes the applied settings of the project.
func (r *rig) edit(change func(s map[string]any)) {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, projectFile))
	r.must(err)
	var s map[string]any
	r.must(json.Unmarshal(data, &s))
	change(s)
	data, err = json.Marshal(s)
	r.must(err)
	r.put(projectFile, string(data))
}

// entries are the hook entries of an event.
func entries(s map[string]any, event string) []any {
	group := s["hooks"].(map[string]any)[event].([]any)[0].(map[string]any)
	return group["hooks"].([]any)
}

func (r *rig) apply() {
	r.t.Helper()
	h, err := workspace.FindHook(r.self, r.state)
	r.must(err)
	_, err = workspace.Apply(r.agent, r.state, h)
	r.must(err)
}

// hook is the program that the applied hooks name.
func (r *rig) hook() string {
	r.t.Helper()
	h, err := workspace.FindHook(r.self, r.state)
	r.must(err)
	binary, ours := settings.Program(h.Command)
	if !ours {
		r.t.Fatalf("%q is not known as ours", h.Command)
	}
	return binary
}

func (r *rig) look() Look {
	r.t.Helper()
	if r.client != nil {
		data, err := json.Marshal(r.client)
		r.must(err)
		r.put("home/.claude.json", string(data))
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		env = append(env, name+"="+r.env[name])
	}
	machine := func() Inotify { return Inotify{} } // other tests look at this one's
	probed := func(clients.Program) (*probe.Result, error) { return r.probed, nil }
	terminals := func() Terminals { return Terminals{} }
	return Look{inotify: machine, terminals: terminals, probed: probed, Scheduler: r.scheduler, Agents: []*config.Agent{r.agent}, MaxSessions: 4, StateDir: r.state, Self: r.self, Env: env, Managed: filepath.Join(r.dir, "etc")}
}

func (r *rig) facts() *Facts {
	r.t.Helper()
	f, err := Collect(r.t.Context(), r.look())
	r.must(err)
	// The machine that runs the tests is looked at by other tests.
	f.Inotify, f.LocalZone = Inotify{}, true
	f.State = Volume{}
	for _, a := range f.Agents {
		a.Volume = Volume{}
	}
	return f
}

func (r *rig) findings() []Finding { r.t.Helper(); return Examine(r.facts()) }

// queue runs do with the agent's queue and its lock.
func (r *rig) queue(do func(q *inbox.Held) error) {
	r.t.Helper()
	q, err := inbox.Open(inbox.Place{Inbox: r.agent.Inbox, Home: r.agent.Home})
	r.must(err)
	defer q.Close()
	r.must(q.Hold(r.t.Context(), do))
}

// offer leaves an entry in flight, as a session that died.
func (r *rig) offer() {
	r.t.Helper()
	r.put("work/.heartbeat/inbox.jsonl", "one\ntwo\n")
	r.queue(func(q *inbox.Held) error {
		e, err := q.Next()
		if err != nil {
			return err
		}
		_, err = q.Offer(e, inbox.Offering{Via: inbox.ViaStop, Session: "gone"})
		return err
	})
}

// finish ends the turn of the first entry, which is to be checked.
func (r *rig) finish() {
	r.t.Helper()
	r.offer()
	r.queue(func(q *inbox.Held) error {
		_, err := q.Advance(inbox.Taken, "")
		if err == nil {
			_, err = q.Check(inbox.Acknowledgement{Reply: "done"})
		}
		return err
	})
}

// bury files the first entry as a dead letter.
func (r *rig) bury() {
	r.t.Helper()
	r.offer()
	r.queue(func(q *inbox.Held) error {
		_, err := q.Advance(inbox.Started, "")
		if err == nil {
			_, _, err = inbox.Orphaned{Held: q}.Recover(inbox.Interruption{Policy: inbox.DeadLetter})
		}
		return err
	})
}

func find(found []Finding, code string) *Finding {
	for i := range found {
		if found[i].Code == code {
			return &found[i]
		}
	}
	return nil
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o700)
	if err == nil {
		_, err = io.Copy(out, in)
		err = errors.Join(err, out.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
