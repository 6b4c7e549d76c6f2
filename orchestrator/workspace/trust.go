package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/hook/settings"
)

// maxClientFile limits the client's own file, which grows with its projects.
const maxClientFile = 64 << 20

// NeverStartedError means that the client has no file of its own yet: then it asks
// more questions than the one about trust.
type NeverStartedError struct{ File, typed string }

// Error names the file.
func (e *NeverStartedError) Error() string {
	return fmt.Sprintf("cannot trust a workspace: there is no %q", e.File)
}

// Hint says what to do.
func (e *NeverStartedError) Hint() string {
	return fmt.Sprintf("start `%s` once in a terminal, log in, and leave with /exit", e.typed)
}

// Trust records an agent's directory as trusted in the client's own file:
// $CLAUDE_CONFIG_DIR/.claude.json, or $HOME/.claude.json, as the agent's sessions
// see them. Nothing else in the file changes. The stand-in client, which asks nothing
// else, gets a file that is missing. It waits for the client's own lock on
// it, at most 10 seconds. With dryRun it only returns what it would do.
func Trust(a *config.Agent, dryRun bool) (Item, error) {
	p := &Plan{Agent: a}
	path := p.clientFile()
	item, err := asItIs(func() (Item, error) { return p.trust(path, dryRun) })
	if err != nil {
		if _, ok := errors.AsType[*NeverStartedError](err); !ok {
			err = fmt.Errorf("cannot trust the workspace of agent %q: %w", a.Name, err)
		}
	}
	return item, err
}

// clientFile returns where the agent's client keeps what it knows.
func (p *Plan) clientFile() string { return client.Claude.Settings.Own(p.client().Getter()) }

func (p *Plan) trust(path string, dryRun bool) (Item, error) {
	if home, err := filepath.EvalSymlinks(p.client().Env["HOME"]); err == nil && home == p.Agent.Dir {
		return Item{}, errors.New("it is the home folder, whose trust the client never records")
	}
	real, err := filepath.EvalSymlinks(path) // it may be a link (dotfiles)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing && !p.Agent.StandsIn() {
		return Item{}, &NeverStartedError{path, p.client().Typed}
	}
	if missing {
		return p.trustAnew(path, dryRun)
	}
	if err != nil {
		return Item{}, err
	}
	if !dryRun {
		release, err := lockClientFile(path, real)
		if err != nil {
			return Item{}, err
		}
		defer release()
	}
	before, err := durable.Read(real, maxClientFile)
	if err != nil {
		return Item{}, err
	}
	after, changed, err := settings.Trust(before, p.Agent.Dir)
	if err != nil {
		return Item{}, fmt.Errorf("cannot change %q: %w", path, err)
	}
	item := Item{Path: path, Change: Unchanged, file: path, before: before, after: after}
	if !changed {
		return item, nil
	}
	item.Change = Changed
	if dryRun {
		return item, nil
	}
	return item, durable.ReplaceIf(real, before, after)
}

// trustAnew makes the stand-in's file, as it does itself when a person answers it.
func (p *Plan) trustAnew(path string, dryRun bool) (Item, error) {
	after, _, err := settings.Trust(nil, p.Agent.Dir)
	item := Item{Path: path, Change: Created, file: path, after: after}
	if err != nil || dryRun {
		return item, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return item, err
	}
	folder, err := durable.Open(filepath.Dir(path))
	if err != nil {
		return item, err
	}
	defer folder.Close()
	return item, folder.ReplaceAs(filepath.Base(path), after, 0o600)
}

// staleLock is when the client assumes that a lock belongs to a dead process: it
// touches its own every few seconds (proper-lockfile's default).
const staleLock = 10 * time.Second

// clientLockWait lets the lock of a client that was killed a moment ago become stale.
const clientLockWait = staleLock + 2*time.Second

// lockClientFile takes the lock that the client itself takes when it writes the
// file: a folder beside it, FILE.lock (measured in 2.1.329). Only one of our
// processes does so at a time, because taking over a dead one's lock is not atomic.
func lockClientFile(path, real string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	unlock, err := flock.Lock(ctx, real)
	if err != nil {
		return nil, err
	}
	lock := path + ".lock"
	for end := time.Now().Add(clientLockWait); ; time.Sleep(20 * time.Millisecond) {
		err := os.Mkdir(lock, 0o700)
		if err == nil {
			return func() { _ = errors.Join(os.Remove(lock), unlock()) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(err, unlock())
		}
		if info, err := os.Lstat(lock); err == nil && time.Since(info.ModTime()).Abs() > staleLock {
			_ = os.Remove(lock)
			continue
		}
		if time.Now().After(end) {
			return nil, errors.Join(fmt.Errorf("the client holds %q", lock), unlock())
		}
	}
}
