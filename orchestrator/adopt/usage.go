package adopt

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// usageFolder had AGENT.jsonl, what sessions have cost, a record a line, and AGENT.jsonl.1
// with older ones, of 8 MiB each. A record's time was its key. So these files can be taken as
// often as they are there: a shim of the version before may write one when its run has gone.
const usageFolder = "usage"

const (
	// maxRecord limits the length of a line that is read.
	maxRecord = 64 << 10
	// usageBatch is how many records are written in one transaction.
	usageBatch = 1000
	// leastOfAgent is how many of an agent's newest records are taken at least: its share of
	// what is kept, where that is more.
	leastOfAgent = 1000
)

// bills takes over what sessions have cost.
func bills(ctx context.Context, s *store.Store, log *slog.Logger) error {
	folder := filepath.Join(s.Dir(), usageFolder)
	files, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) || len(files) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot take over %q from the version before: %w", folder, err)
	}
	var names []string
	for _, f := range files {
		if name := f.Name(); strings.HasSuffix(strings.TrimSuffix(name, ".1"), ".jsonl") {
			names = append(names, name)
		}
	}
	most := max(leastOfAgent, usage.Most/max(1, len(names)))
	// The series of the version before has them, but for those that were written after it.
	add := func(c *store.Change, records []usage.Record) error {
		_, err := usage.Add(c, records...)
		return err
	}
	taken, err := store.Get(ctx, s.Reader, func(v *store.View) (bool, error) {
		return v.One(`SELECT at FROM adopted WHERE file = $1`, []any{seriesUntil}, new(int64))
	})
	if err != nil {
		return err
	}
	if taken {
		add = func(c *store.Change, records []usage.Record) error { return series.Bill(c, records...) }
	}
	for _, name := range names {
		path := filepath.Join(usageFolder, name)
		err := billsOf(ctx, s, filepath.Join(s.Dir(), path), most, add)
		if errors.Is(err, errDamaged) {
			log.Warn("a file of the version before is damaged; heartbeat goes on without it", "file", filepath.Join(s.Dir(), path), "err", err, "lost", "what sessions have cost")
			err = nil
		}
		if err == nil {
			err = old{file: path}.setAside(s.Dir())
		}
		if err != nil {
			return fmt.Errorf("cannot take over %q from the version before: %w", path, err)
		}
	}
	return nil
}

// billsOf takes over the newest records of a file.
func billsOf(ctx context.Context, s *store.Store, path string, most int, add func(*store.Change, []usage.Record) error) error {
	file, err := durable.OpenFile(path, os.O_RDONLY)
	if errors.Is(err, durable.ErrNotRegular) {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines, err := eachLine(file, func([]byte) error { return nil })
	if err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var batch []usage.Record
	write := func() error {
		err := s.Write(ctx, func(c *store.Change) error { return add(c, batch) })
		batch = batch[:0]
		return err
	}
	n, taken, last := 0, 0, usage.Record{}
	oldest := time.Now().Add(-usage.Longest)
	_, err = eachLine(file, func(line []byte) error {
		var r usage.Record
		if n++; json.Unmarshal(line, &r) != nil || r.At.IsZero() || r.Agent == "" {
			return nil // a writer that died left it
		}
		if taken++; n <= lines-most || r.At.Before(oldest) {
			return nil
		}
		r.Number = r.At.UnixNano()
		kept := r.Kept
		if r.Session == last.Session && kept.Transcript == last.Kept.Transcript {
			r.Kept.Transcript, r.Kept.From = "", 0
		}
		last.Session, last.Kept = r.Session, kept
		if batch = append(batch, r); len(batch) == usageBatch {
			return write()
		}
		return nil
	})
	if err == nil && len(batch) > 0 {
		err = write()
	}
	if err == nil && taken == 0 && lines > 0 {
		err = fmt.Errorf("%w: no line of it is a record", errDamaged)
	}
	return err
}

// eachLine gives take the lines of a file, and returns how many there are. One that is too
// long is nil.
func eachLine(file io.Reader, take func([]byte) error) (n int, err error) {
	in := bufio.NewReaderSize(file, 64<<10)
	for {
		line, length, err := durable.Line(in, maxRecord)
		if length > 0 {
			n++
			if err := take(line); err != nil {
				return n, err
			}
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
