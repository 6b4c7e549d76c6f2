package crash

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// lab is an agent's folder, the client in it and the record of what happens.
type lab struct {
	t      testing.TB
	home   string // the inbox's folder
	inbox  string
	form   form
	policy inbox.OrphanPolicy
	client
	record  promise.Record
	release func() error // of the session lock, nil while no session lives
	last    string       // what the last hook said, for messages
	// slay, when set, says after which time a program is killed; 0: not.
	slay       func() time.Duration
	took       time.Duration // what a program takes, over the last ones
	lastKilled bool
}

// inLab gives do an agent's folder of its own. Nothing of it is kept
// afterwards, because a full run makes thousands.
func inLab(t testing.TB, f form, policy inbox.OrphanPolicy, do func(l *lab)) {
	t.Helper()
	dir, remove := workDir(t)
	defer remove()
	l := newLab(t, dir, f, policy)
	defer l.unlock()
	do(l)
}

// newLab is inLab in a folder of the caller's, who unlocks the lab.
func newLab(t testing.TB, dir string, f form, policy inbox.OrphanPolicy) *lab {
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
		Kind: promise.Declared, Policy: policy, Attempts: attempts, FilesUnproven: !f.ours() && policy == inbox.DeadLetter,
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

// send appends as `heartbeat send` does.
func (l *lab) send(prompt string) {
	l.t.Helper()
	l.append(inbox.Letter{Source: "send", Prompt: prompt})
	l.accepted(prompt)
}

// hurry appends as `heartbeat send --urgent` does.
func (l *lab) hurry(prompt string) {
	l.t.Helper()
	l.append(inbox.Letter{Source: "send", Prompt: prompt, Urgent: true})
	l.hurried(prompt)
}

func (l *lab) append(letter inbox.Letter) {
	l.t.Helper()
	l.queue(func(q *inbox.Queue) {
		if _, err := q.Append(context.Background(), letter); err != nil {
			l.t.Fatal(err)
		}
	})
}

func (l *lab) queue(f func(q *inbox.Queue)) {
	l.t.Helper()
	q, err := inbox.Open(inbox.Place{Inbox: l.inbox})
	if err != nil {
		l.t.Fatal(err)
	}
	defer q.Close()
	f(q)
}

// locked is queue with the hook lock.
func (l *lab) locked(f func(q *inbox.Held)) {
	l.t.Helper()
	l.queue(func(q *inbox.Queue) {
		ctx, cancel := context.WithTimeout(context.Background(), testbed.Patience)
		defer cancel()
		held, err := q.Lock(ctx)
		if err != nil {
			l.t.Fatal(err)
		}
		defer held.Unlock()
		f(held)
	})
}

func (l *lab) sessionLock() string { return filepath.Join(l.home, inbox.SessionLock) }

func (l *lab) lock() {
	l.t.Helper()
	release, err := flock.TryLock(l.sessionLock())
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

// picture is a lab at one moment. The inbox keeps its inode when the lab goes
// back to it: to the queue another inode would be another file.
type picture struct {
	files      map[string]string
	transcript string
	book       string // what was decided about what it has done
	client     client
	record     promise.Record
	locked     bool
}

func (l *lab) picture() picture {
	l.t.Helper()
	p := picture{files: map[string]string{}, client: l.client, record: slices.Clip(l.record), locked: l.release != nil}
	names, err := os.ReadDir(l.home)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, n := range names {
		p.files[n.Name()] = read(l.t, filepath.Join(l.home, n.Name()))
	}
	p.transcript, p.book = read(l.t, l.transcript), read(l.t, l.book())
	return p
}

func (l *lab) restore(p picture) {
	l.t.Helper()
	l.unlock()
	names, err := os.ReadDir(l.home)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, n := range names {
		if _, stays := p.files[n.Name()]; stays && l.holdsLines(n.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(l.home, n.Name())); err != nil {
			l.t.Fatal(err)
		}
	}
	for name, content := range p.files {
		if path := filepath.Join(l.home, name); !l.holdsLines(name) || read(l.t, path) != content {
			write(l.t, path, content)
		}
	}
	write(l.t, l.transcript, p.transcript)
	if l.form == checked {
		if err := os.MkdirAll(filepath.Dir(l.book()), 0o700); err != nil {
			l.t.Fatal(err)
		}
		write(l.t, l.book(), p.book)
		if p.book == "" {
			os.Remove(l.book())
		}
	}
	l.client, l.record = p.client, p.record
	if p.locked {
		l.lock()
	}
}

// holdsLines reports whether a file is one of a lane.
func (l *lab) holdsLines(name string) bool {
	return name == filepath.Base(l.inbox) || name == inbox.UrgentFile
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
