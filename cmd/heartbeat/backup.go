package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

type backupCmd struct {
	File string `arg:"" optional:"" help:"The file to write; it must not exist. Default: a new one in the fleet's state directory."`

	AsFiles string `placeholder:"DIR" help:"Write files, as heartbeat kept them before 2026-12, into a new folder."`
}

// Help implements kong's HelpProvider.
func (backupCmd) Help() string {
	return `Writes a backup of the fleet's store: heartbeat.db in its state directory, with the
journal, what triggers have fired, who is paused, what was spent, and who may see the
page. A scheduler that runs goes on meanwhile, and writes one a day by itself. A copy by
other means is damaged as long as the store is open.
"heartbeat restore FILE" puts a backup back. Queues are in the agents' directories
(heartbeat help files).

With --as-files it writes what the store holds as files for a heartbeat that knows no
store (before 2026-12), and says how to go back to that. What that version does not
know, such as pauses of single triggers, does not count there. What agents did over
time, which nothing is decided from, is not written.

Examples:

    heartbeat backup
    heartbeat backup /backup/fleet-$(date +%F).db
    heartbeat backup --as-files /backup/files`
}

// backedUp is a backup that was written.
type backedUp struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

func (c backupCmd) run(ctx context.Context, a *app) (result, error) {
	if c.File != "" && c.AsFiles != "" {
		return nil, usagef("heartbeat backup --as-files DIR", "name a file or --as-files, one of the two")
	}
	f, err := a.fleet()
	if err != nil {
		return nil, err
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	r, err := store.OpenReader(ctx, dir)
	if errors.Is(err, store.ErrNone) {
		return nil, &failure{status: exitError, err: errors.New("cannot write a backup: the fleet has no store yet"), hint: a.ours() + " run makes it"}
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	if c.AsFiles != "" {
		return c.asFiles(ctx, r, dir)
	}
	to, err := filepath.Abs(c.File)
	if c.File == "" {
		to, err = store.NewBackup(dir, time.Now())
	}
	if err == nil {
		err = r.Backup(ctx, to)
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(to)
	if err != nil {
		return nil, err
	}
	return backedUp{to, info.Size()}, nil
}

// fileBackup is a store that was written as files.
type fileBackup struct {
	Dir   string   `json:"dir"`
	Files []string `json:"files"`
	// Back are the commands that bring the fleet back to a version that keeps files.
	Back []string `json:"back"`
}

func (c backupCmd) asFiles(ctx context.Context, r *store.Reader, stateDir string) (result, error) {
	to, err := filepath.Abs(c.AsFiles)
	if err != nil {
		return nil, err
	}
	files, err := adopt.WriteFiles(ctx, r, to)
	if err != nil {
		return nil, err
	}
	return fileBackup{to, files, adopt.Back(stateDir, to)}, nil
}

func (b fileBackup) text(p *page) {
	p.printf("wrote %s into %s\n", count(len(b.Files), "file"), b.Dir)
	p.printf("To go back to a heartbeat that knows no store:\n")
	for _, command := range b.Back {
		p.printf("    %s\n", command)
	}
}

func (b backedUp) text(p *page) { p.printf("wrote %s (%d kB)\n", b.File, (b.Bytes+1023)/1024) }

type restoreCmd struct {
	File string `arg:"" help:"The backup, as heartbeat backup or a running scheduler has written it."`
}

// Help implements kong's HelpProvider.
func (restoreCmd) Help() string {
	return `Puts a backup in the place of the fleet's store, while no scheduler runs. The backup
is checked before anything is changed, and stays as it is. What was there stays beside
it, under the name that is printed. What happened since the backup was made is not in the
journal then, and what was ordered by the page since may be ordered again. What has fired
and what was spent since still counts, and tokens of the page stay as they are now: what
was revoked is not good again. The rows of each table that go and come back are counted;
one that has changed does both.

Examples:

    heartbeat stop
    heartbeat restore /backup/fleet-2026-11-29.db`
}

// restored is a backup that was put back.
type restored struct {
	File   string `json:"file"`
	Store  string `json:"store"`
	Before string `json:"before,omitempty"` // what was there
	// Written is when the backup was, by its file.
	Written time.Time `json:"written"`
	// Differences is what went back.
	Differences []store.Difference `json:"differences"`
}

// restoreWait is how long a command that writes the store just then is waited for.
const restoreWait = 2 * time.Second

func (c restoreCmd) run(ctx context.Context, a *app) (result, error) {
	f, err := a.fleet()
	if err != nil {
		return nil, err
	}
	dir, err := owner.Claim(f)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, restoreWait)
	defer cancel()
	lock, err := store.Take(waiting, dir)
	if err != nil {
		return nil, fmt.Errorf("cannot restore a backup: %w", err)
	}
	info, err := os.Stat(c.File)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot restore a backup: %w", err), lock.Release())
	}
	r := restored{File: c.File, Store: filepath.Join(dir, store.Name), Written: info.ModTime(), Differences: []store.Difference{}}
	unknown := false
	r.Before, err = store.Restore(ctx, lock, c.File, func(was *store.View, c *store.Change) error {
		unknown = was == nil
		err := cmp.Or(access.Carry(was, c, time.Now()), memory.Carry(was, c), usage.Carry(was, c))
		if err == nil && was != nil {
			r.Differences, err = store.Differences(was, &c.View)
		}
		return err
	})
	if err = errors.Join(err, lock.Release()); err != nil {
		return nil, err
	}
	if unknown {
		a.warn("what was revoked since the backup was made is not known, so nobody has a token of the page any more: " + a.ours() + " page link makes a link for one")
	}
	a.warnOfElsewhere(f, f.Agents, a.warn) // it is another fleet's
	return r, nil
}

func (r restored) text(p *page) {
	p.printf("restored %s from %s, written %s\n", r.Store, r.File, r.Written.Local().Format(time.DateTime))
	if len(r.Differences) > 0 {
		var rows [][]cell
		for _, d := range r.Differences {
			rows = append(rows, []cell{{text: d.Table}, {text: strconv.Itoa(d.Gone)}, {text: strconv.Itoa(d.Back)}})
		}
		p.table([]string{"TABLE", "GONE", "BACK"}, rows)
	}
	p.printf("what was there is %s\n", cmp.Or(r.Before, "nothing"))
}
