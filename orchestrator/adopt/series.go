package adopt

import (
	"context"
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

func slotAt(slot int64) time.Time { return time.Unix(slot*int64(series.Slot/time.Second), 0) }

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

// tail counts what the last run of an earlier version knew and had not written into the series:
// the last minutes, or all if it kept none. It comes before a run writes events.
func tail(ctx context.Context, s *store.Store) error {
	until, err := durable.Read(filepath.Join(s.Dir(), seriesUntil), 64)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	slot, _ := strconv.ParseInt(strings.TrimSpace(string(until)), 10, 64)
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
	for _, file := range []string{seriesUntil, seriesDepths} {
		if _, gone := os.Lstat(filepath.Join(s.Dir(), file)); err == nil && gone == nil {
			err = old{file: file}.setAside(s.Dir())
		}
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
// minutes. What ctx ends, the next run goes on with.
func Rest(ctx context.Context, s *store.Store, log *slog.Logger) error {
	folder := filepath.Join(s.Dir(), seriesFolder)
	files, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot take over %q from the version before: %w", folder, err)
	}
	// That is the last to be moved: of the others it says what they mean.
	measured := func(f fs.DirEntry) bool { return strings.HasPrefix(f.Name(), ".measured.points") }
	last := slices.DeleteFunc(slices.Clone(files), func(f fs.DirEntry) bool { return !measured(f) })
	first := int64(math.MaxInt64)
	for _, f := range last {
		if points, _, err := pointsOf(filepath.Join(folder, f.Name())); err == nil && len(points) > 0 {
			first = min(first, points[0].At.Unix())
		}
	}
	files = append(slices.DeleteFunc(files, measured), last...)
	for _, f := range files {
		path := filepath.Join(seriesFolder, f.Name())
		agent, is := strings.CutSuffix(strings.TrimSuffix(f.Name(), ".1"), ".points")
		if !is {
			continue
		}
		points, damaged, err := pointsOf(filepath.Join(s.Dir(), path))
		if damaged != nil {
			log.Warn("a file of the version before is damaged; heartbeat goes on without what is damaged of it", "file", filepath.Join(s.Dir(), path), "err", damaged, "lost", "what agents did in some ten minutes")
		}
		for batch := range slices.Chunk(points, seriesBatch) {
			if err == nil {
				err = s.Write(ctx, func(c *store.Change) error { return takePoints(c, agent, batch, first) })
			}
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

// takePoints takes over some points. Versions before the first of .measured looked into the
// queues and did not say so.
func takePoints(c *store.Change, agent string, points []series.Point, first int64) (err error) {
	for _, p := range points {
		switch {
		case err != nil:
		case agent == ".watched":
			err = series.Looked(c, p.At, p.At.Unix() < first, 0)
		case strings.HasPrefix(agent, "."):
			err = series.Looked(c, p.At, true, 0)
		default:
			err = series.Take(c, agent, p)
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
