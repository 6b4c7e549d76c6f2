package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/volume"
)

// Ballast is a file beside the store that takes up room. When the disk is full it is removed,
// so that what happens then can be kept: some 13,000 changes, if nobody else takes the room.
const Ballast = Name + ".ballast"

const (
	ballastSize = 8 << 20
	// roomFor is how much has to be free, in ballasts, before one is made.
	roomFor = 4
	// ballastEvery is how often Watch looks whether there is one.
	ballastEvery = 10 * time.Second
)

// drop removes the ballast, for a disk that is full.
func (s *Store) drop(now time.Time) {
	path := filepath.Join(s.Dir(), Ballast)
	if os.Remove(path) != nil {
		return
	}
	s.health.note(Trouble{
		Kind: Reserve, Since: now, Do: fmt.Sprintf("make room on its disk (df -h %s)", settings.Quote(s.Dir())),
		Text: fmt.Sprintf("the disk of the store %q is full: what is kept now uses a reserve of %d MB", s.path, s.ballast>>20),
	})
}

// load makes the ballast where there is room for it, and not in memory.
func (s *Store) load() error {
	path := filepath.Join(s.Dir(), Ballast)
	if exists(path) {
		return nil
	}
	if v, err := volume.Of(s.Dir()); err != nil || v.InMemory || v.Free < uint64(roomFor*s.ballast) {
		return nil
	}
	f, err := durable.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, rand.Reader, s.ballast) // nothing that a file system would compress
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	s.health.ends(Reserve)
	return nil
}
