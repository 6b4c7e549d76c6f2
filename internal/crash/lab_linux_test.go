package crash

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/promise"
)

// lab is an agent's folder, the client in it and the record of what happens.
type lab struct {
	t      testing.TB
	home   string // the inbox's folder
	inbox  string
	form   form
	policy promise.Policy
	client
	record  promise.Record
	release func() error // of the session lock, nil while no session lives
	last    string       // what the last hook said, for messages
	// slay, when set, says after which time a program is killed; 0: not.
	slay func() time.Duration
	// plant, when set, stands between the hook and the client: what it returns is what the
	// client hears. See TestTheJudgeFindsWhatIsPlanted.
	plant      func(event string, o stepper.Outcome) stepper.Outcome
	took       time.Duration // what a program takes, over the last ones
	lastKilled bool

	mu     sync.Mutex
	passed []string // deliveries whose check has passed
}

// inLab gives do an agent's folder of its own. Nothing of it is kept
// afterwards, because a full run makes thousands.
func inLab(t testing.TB, f form, policy promise.Policy, do func(l *lab)) {
	t.Helper()
	dir, remove := workDir(t)
	defer remove()
	l := newLab(t, filepath.Join(dir, "agent"), f, policy)
	defer l.unlock()
	do(l)
}

// newLab is inLab in a folder of the caller's, who unlocks the lab.
func newLab(t testing.TB, dir string, f form, policy promise.Policy) *lab {
	t.Helper()
	home := filepath.Join(dir, ".heartbeat")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, home: home, inbox: filepath.Join(home, "inbox.jsonl"), form: f, policy: policy}
	l.transcript = filepath.Join(dir, "transcript.jsonl")
	attempts := 5
	if f == checked {
		attempts = 0 // an attempt can be that of a later iteration
	}
	l.note(promise.Fact{
		Kind: promise.Declared, Policy: policy, Attempts: attempts, FilesUnproven: !f.ours() && policy == promise.DeadLetter,
	})
	return l
}

// echo appends lines as `echo >>` does. The prompts are what they must
// become.
func (l *lab) echo(lines string, prompts ...string) {
	l.t.Helper()
	f, err := os.OpenFile(l.inbox, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(lines)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.accepted(prompts...)
}

// send is `heartbeat send`.
func (l *lab) send(prompt string) {
	l.t.Helper()
	l.must(prompt, "send", agent, "-")
	l.accepted(prompt)
}

// hurry is `heartbeat send --urgent`.
func (l *lab) hurry(prompt string) {
	l.t.Helper()
	l.must(prompt, "send", agent, "--urgent", "-")
	l.hurried(prompt)
}

func (l *lab) lock() {
	l.t.Helper()
	release, err := l.shim().Lock()
	if err != nil {
		l.t.Fatal(err)
	}
	l.release = release
}

func (l *lab) unlock() {
	if l.release != nil {
		_ = l.release()
		l.release = nil
	}
}

// picture is a lab at one moment: all that is in the agent's folder. Files keep their
// inodes when the lab goes back to it: to heartbeat an inbox with another inode would be
// another file.
type picture struct {
	files  map[string]string // :: path in the folder
	client client
	record promise.Record
	passed []string
	locked bool
}

func (l *lab) dir() string { return filepath.Dir(l.home) }

func (l *lab) picture() picture {
	l.t.Helper()
	p := picture{files: map[string]string{}, client: l.client, record: slices.Clip(l.record), passed: slices.Clip(l.passes()), locked: l.release != nil}
	l.eachFile(func(name string) { p.files[name] = read(l.t, filepath.Join(l.dir(), name)) })
	return p
}

// eachFile calls do for each file in the agent's folder.
func (l *lab) eachFile(do func(name string)) {
	l.t.Helper()
	err := fs.WalkDir(os.DirFS(l.dir()), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			do(name)
		}
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) restore(p picture) {
	l.t.Helper()
	l.unlock()
	l.eachFile(func(name string) {
		if _, stays := p.files[name]; stays {
			return
		}
		if err := os.Remove(filepath.Join(l.dir(), name)); err != nil {
			l.t.Fatal(err)
		}
	})
	for name, content := range p.files {
		path := filepath.Join(l.dir(), name)
		if read(l.t, path) == content {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			l.t.Fatal(err)
		}
		write(l.t, path, content)
	}
	l.client, l.record = p.client, p.record
	l.proved(p.passed)
	if p.locked {
		l.lock()
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// files lists the lab for a message.
func (l *lab) files() string {
	var b bytes.Buffer
	names, _ := os.ReadDir(l.home)
	for _, n := range names {
		text := strings.TrimSpace(read(l.t, filepath.Join(l.home, n.Name())))
		b.WriteString("\n\t" + n.Name() + ": " + text[:min(len(text), 600)])
	}
	return b.String()
}
