package intake

import (
	"errors"
	"fmt"
	"os"
	"time"

	"heartbeat/orchestrator/store"
)

// Skip notes that the file at an inbox's name was taken in up to a position, in the transaction
// that does so otherwise than Take: that goes on there. The caller holds the lock of the agent's
// directory.
func Skip(c *store.Change, p Place, position int64, now time.Time) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot note how far the inbox was taken in: %w", err)
		}
	}()
	b, err := open(p)
	if b == nil || err != nil {
		return err
	}
	defer b.close()
	file, err := b.dir.OpenFile(b.name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	k, err := load(&c.View, p.Agent, b.key)
	if err != nil {
		return err
	}
	if k.inPlace != nil {
		if err := end(c, p.Agent, b.key, k.inPlace, now); err != nil {
			return err
		}
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	f := factsOf(info)
	seen, err := seenOf(file, position)
	if err != nil {
		return err
	}
	// A file that is shorter later was cut by somebody, and not by a power cut.
	if err := b.dir.SyncData(file, b.name); err != nil {
		return err
	}
	return save(c, p.Agent, b.key, nil, &record{
		n: k.last + 1, device: f.device, inode: f.inode, position: position, size: position, seen: seen, began: now, at: now,
	})
}
