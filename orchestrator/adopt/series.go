package adopt

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// seriesFolder had what agents did in each ten minutes: AGENT.points and AGENT.points.1 with
// older ones; .watched.points and .measured.points, in which of them a run was there and has
// looked into the queues; .until, the last one that was written for all; .depths, what a run
// that ended knew of queues later than that.
const (
	seriesFolder = "series"
	seriesUntil  = "series/.until"
	seriesDepths = "series/.depths"
)

// A point was the number of its ten minutes since 1970 and 14 counts of 4 bytes each, the cost
// in 8 (a double), the lateness in milliseconds in 4, and a CRC-32C of all that.
const (
	counts    = 14
	pointSize = 4 + 4*counts + 8 + 4 + 4
)

// seriesBatch is how many points are written in one transaction: others' wait for it.
const seriesBatch = 500

func slotAt(slot int64) time.Time { return time.Unix(slot*int64(series.Slot/time.Second), 0).UTC() }

// point reads the point at the beginning of data. ok is false if there is no whole one.
func point(data []byte) (p series.Point, ok bool) {
	le, body := binary.LittleEndian, data[:pointSize-4]
	if le.Uint32(data[pointSize-4:]) != crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) {
		return p, false
	}
	p.At = slotAt(int64(le.Uint32(body)))
	for i, f := range []*int64{
		&p.Queued, &p.Done, &p.Failed, &p.Sessions, &p.Fires, &p.Turns, &p.Calls, &p.Input, &p.Output, &p.CacheRead, &p.CacheWrite, &p.Unseen, &p.Unpriced, &p.Guessed,
	} {
		*f = int64(le.Uint32(body[4+4*i:]))
	}
	const cost = 4 + 4*counts
	if p.Cost = math.Float64frombits(le.Uint64(body[cost:])); math.IsNaN(p.Cost) || math.IsInf(p.Cost, 0) {
		p.Cost = 0
	}
	p.Late = time.Duration(le.Uint32(body[cost+8:])) * time.Millisecond
	return p, true
}

// writtenUntil returns the last slot that was written for all; 0: none is known.
func writtenUntil(stateDir string) (slot int64, err error) {
	data, err := durable.Read(filepath.Join(stateDir, seriesUntil), 64)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	slot, _ = strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return slot, nil
}

// tail counts what the last run of an earlier version knew and had not written into the series:
// the last minutes, or all if it kept none. It comes before a run writes events.
func tail(ctx context.Context, s *store.Store) error {
	slot, err := writtenUntil(s.Dir())
	if err != nil {
		return err
	}
	depths, err := durable.Read(filepath.Join(s.Dir(), seriesDepths), maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = old{file: seriesUntil}.takeOnce(ctx, s, func(c *store.Change) error {
		if err := uncounted(c, slotAt(slot+1)); err != nil {
			return err
		}
		var kept []struct {
			Slot   int64
			Agent  string
			Queued int64
		}
		if json.Unmarshal(depths, &kept) != nil {
			return nil // then they are not known
		}
		all := map[int64]int64{}
		for _, d := range kept {
			if d.Slot <= slot {
				continue
			}
			if all[d.Slot] += d.Queued; d.Agent == "" { // it was looked then
				continue
			}
			if err := series.Held(c, d.Agent, slotAt(d.Slot), d.Queued); err != nil {
				return err
			}
		}
		for slot, queued := range all {
			if err := series.Looked(c, slotAt(slot), true, queued); err != nil {
				return err
			}
		}
		return nil
	})
	if _, gone := os.Lstat(filepath.Join(s.Dir(), seriesDepths)); err == nil && gone == nil {
		err = old{file: seriesDepths}.setAside(s.Dir())
	}
	if err != nil {
		return fmt.Errorf("cannot take over %q from the version before: %w", seriesFolder, err)
	}
	return nil
}

// uncounted counts the events and the records from a time on. Those of the day before say which
// entries were counted already.
func uncounted(c *store.Change, from time.Time) error {
	var events []journal.Event
	err := c.Each(`SELECT body FROM events WHERE at >= $1 ORDER BY n`, []any{store.Millis(from.AddDate(0, 0, -1))}, func(scan store.Scan) error {
		var body string
		var e journal.Event
		if err := scan(&body); err != nil {
			return err
		}
		if json.Unmarshal([]byte(body), &e) == nil {
			events = append(events, e)
		}
		return nil
	})
	if err == nil {
		err = series.NewCounter().Since(c, events, from)
	}
	var records []usage.Record
	if err == nil {
		err = usage.EachOf(&c.View, from, func(r usage.Record) { records = append(records, r) })
	}
	for _, r := range records {
		if err == nil && r.Sum != (usage.Sum{}) {
			err = series.Add(c, r.Agent, series.Point{At: r.At, Sum: r.Sum})
		}
	}
	return err
}

// Rest takes over what is much and decides nothing, beside a run: what agents did in each ten
// minutes. What ctx ends, the next run goes on with. The run adds to such rows meanwhile: a
// session of the version before may be billed late.
func Rest(ctx context.Context, s *store.Store, log *slog.Logger) error {
	folder := filepath.Join(s.Dir(), seriesFolder)
	fails := func(what string, err error) error {
		return fmt.Errorf("cannot take over %q from the version before: %w", what, err)
	}
	files, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fails(folder, err)
	}
	slot, err := writtenUntil(s.Dir())
	if err != nil {
		return fails(folder, err)
	}
	var begun int64
	if err := s.Read(ctx, func(v *store.View) error {
		_, err := v.One(`SELECT at FROM adopted WHERE file = $1`, []any{seriesUntil}, &begun)
		return err
	}); err != nil {
		return fails(folder, err)
	}
	all := whole{until: slotAt(slot), first: math.MaxInt64}
	if at := store.Time(begun); at.Before(all.until) {
		all.until = at
	}
	// Those are the last to be moved: of the others they say what they mean.
	tells := func(f fs.DirEntry) bool {
		return strings.HasPrefix(f.Name(), ".measured.points") || f.Name() == filepath.Base(seriesUntil)
	}
	last := slices.DeleteFunc(slices.Clone(files), func(f fs.DirEntry) bool { return !tells(f) })
	for _, f := range last {
		if points, _, err := pointsOf(filepath.Join(folder, f.Name())); err == nil && len(points) > 0 {
			all.first = min(all.first, points[0].At.Unix())
		}
	}
	for _, f := range append(slices.DeleteFunc(files, tells), last...) {
		path := filepath.Join(seriesFolder, f.Name())
		agent, is := strings.CutSuffix(strings.TrimSuffix(f.Name(), ".1"), ".points")
		if is {
			err = all.takeFile(ctx, s, path, agent, log)
		}
		if err == nil && (is || tells(f)) {
			err = old{file: path}.setAside(s.Dir())
		}
		if err != nil {
			return fails(path, err)
		}
	}
	return nil
}

// whole is what is known of all series of an earlier version.
type whole struct {
	// until is the last slot that was written for all when the store was begun: what is later was
	// counted from events and records.
	until time.Time
	// first is the first one in .measured, in seconds of Unix time.
	first int64
}

// takeFile takes over the points of a file.
func (w whole) takeFile(ctx context.Context, s *store.Store, path, agent string, log *slog.Logger) error {
	points, damaged, err := pointsOf(filepath.Join(s.Dir(), path))
	if damaged != nil {
		log.Warn("a file of the version before is damaged; heartbeat goes on without what is damaged of it", "file", filepath.Join(s.Dir(), path), "err", damaged, "lost", "what agents did in some ten minutes")
	}
	for batch := range slices.Chunk(points, seriesBatch) {
		if err != nil {
			return err
		}
		sum := sha256.Sum256(fmt.Append(nil, batch))
		_, err = old{file: fmt.Sprintf("%s %x", path, sum[:8])}.takeOnce(ctx, s, func(c *store.Change) error { return w.take(c, agent, batch) })
	}
	return err
}

// take takes over some points. Versions before the first of .measured looked into the queues
// and did not say so.
func (w whole) take(c *store.Change, agent string, points []series.Point) (err error) {
	for _, p := range points {
		switch {
		case err != nil:
		case agent == ".watched":
			err = series.Looked(c, p.At, p.At.Unix() < w.first, 0)
		case strings.HasPrefix(agent, "."):
			err = series.Looked(c, p.At, true, 0)
		case p.At.After(w.until):
			err = series.Take(c, agent, p)
		default:
			err = series.Join(c, agent, p)
		}
	}
	return err
}

// pointsOf returns the points of a file, each ten minutes once: where the clock was set back
// they stood there twice.
func pointsOf(path string) (all []series.Point, damaged, err error) {
	data, err := durable.Read(path, maxFile)
	if errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrTooLarge) {
		return nil, err, nil
	}
	at := map[int64]int{}
	for ; len(data) >= pointSize; data = data[pointSize:] {
		p, ok := point(data)
		for !ok { // bytes may have been removed
			damaged = errDamaged
			if data = data[1:]; len(data) < pointSize {
				return all, damaged, err
			}
			p, ok = point(data)
		}
		if i, again := at[p.At.Unix()]; again {
			all[i] = all[i].Then(p)
			continue
		}
		at[p.At.Unix()] = len(all)
		all = append(all, p)
	}
	return all, damaged, err
}
