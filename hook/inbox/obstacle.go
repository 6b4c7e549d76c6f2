package inbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"heartbeat/hook/durable"
)

// Obstacle is one of a queue's files that is there and cannot be read.
type Obstacle struct {
	// Path is the file's, Err why: "cannot read PATH: …".
	Path string
	Err  error
	// Hides is what nobody can tell meanwhile.
	Hides Hidden
}

// Hidden is what an obstacle hides.
type Hidden string

// What is hidden: what is queued or worked on, what was done, what was given up; or only what the
// queue finds in another way, too.
const (
	HidesQueue   Hidden = "queue"
	HidesReplies Hidden = "replies"
	HidesDead    Hidden = "dead-letters"
	HidesNothing Hidden = "nothing"
)

// Obstacles returns the queue's files that are there and cannot be read, because something
// else has their name, or because this user may not. Where the queue reads one of them it counts
// as damaged, and is set aside when it is next written: only this tells a reader that
// what it holds is not known. Nothing is read, it waits for nothing and needs no lock.
func (q *Queue) Obstacles() []Obstacle {
	var all []Obstacle
	look := func(in *durable.Folder, hides Hidden, names ...string) {
		for _, name := range names {
			if err := unreadable(in, name); err != nil {
				path := filepath.Join(in.Path(), name)
				all = append(all, Obstacle{path, fmt.Errorf("cannot read %q: %w", path, err), hides})
			}
		}
	}
	for _, l := range q.lanes() {
		look(q.dir, HidesQueue, l.name, l.flight)
		look(q.dir, HidesNothing, l.cursor, l.meta, l.kept)
	}
	look(q.dir, HidesQueue, WaitingFile)
	look(q.dir, HidesDead, DeadFile)
	look(q.home, HidesReplies, outboxFile, olderOutbox)
	look(q.dir, HidesNothing, idsFile)
	return all
}

// unreadable is why a file that is there cannot be opened to be read, or nil.
func unreadable(in *durable.Folder, name string) error {
	if _, err := in.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	file, err := in.OpenFile(name, os.O_RDONLY)
	if err == nil {
		return file.Close()
	}
	if why := errors.Unwrap(err); why != nil { // the path is said already
		err = why
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
