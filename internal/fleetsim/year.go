package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/store"
)

// What a year of work leaves of each agent: of 10,000 as many events and records of what sessions
// have cost as are kept at most, and a row of ten minutes each day; of all together one each
// ten minutes.
const (
	yearDays    = 365
	yearEvents  = 80
	yearRecords = 100
)

// liveYear fills the store of a scenario. The process that starts the others does: what that
// costs is not the fleet's.
func (s settings) liveYear(ctx context.Context, sc scenario) error {
	if !sc.past {
		return nil
	}
	stateDir := s.stateDir(sc)
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return err
	}
	kept, release, err := adopt.Open(ctx, stateDir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer release()
	const (
		slot = int64(10 * time.Minute / time.Millisecond)
		year = yearDays * 144 * slot
	)
	begin := time.Now().UnixMilli()/slot*slot - year
	for _, fill := range []struct {
		rows int
		// a statement knows each row's number i, how many agents there are, when the year begins, and
		// how long after a row the next one is.
		statement string
		every     int64
	}{
		{s.agents * yearEvents, `INSERT INTO events SELECT i + 1, $4 + i * $5, printf('a%05d', i % $3), 'fired', json_object('at', strftime('%Y-%m-%dT%H:%M:%SZ', ($4 + i * $5) / 1000, 'unixepoch'),
			'agent', printf('a%05d', i % $3), 'kind', 'fired', 'trigger', 'cron-1@' || i, 'entry', '0123456789abcdef'), -1 FROM n`, year / int64(s.agents*yearEvents)},
		{s.agents * yearRecords, `INSERT INTO usage SELECT i + 1, 's' || i, 'd' || i, 1, $4 + i * $5, printf('a%05d', i % $3), 'login', '', 'e' || i, 'cron', 1, 1, 3, 4, 5000, 600000, 7000, 0.5, 0, 0, 0, 0, '', 0, 0, 0, printf('a%05d', i % $3) FROM n`, year / int64(s.agents*yearRecords)},
		{s.agents * yearDays, `INSERT INTO series SELECT printf('a%05d', i / 365), $4 + i % 365 * 144 * $5 + i / 365 % 144 * $5, 0, 1, 1, 0, 1, 1, 500, 2, 3, 4, 5000, 600000, 7000, 0.5, 0, 0, 0 FROM n WHERE $3 > 0`, slot},
		{yearDays * 144, `INSERT INTO series SELECT '', $4 + i * $5, 1, 100, 60, 0, 60, 60, 500, 120, 180, 4, 5000, 600000, 7000, 30, 0, 0, 0 FROM n WHERE $3 > 0`, slot},
	} {
		const atOnce = 20_000
		for from := 0; from < fill.rows; from += atOnce {
			if err := kept.Write(ctx, func(c *store.Change) error {
				_, err := c.Do(`WITH RECURSIVE n (i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2) `+fill.statement, from, min(from+atOnce, fill.rows), s.agents, begin, fill.every)
				return err
			}); err != nil {
				return fmt.Errorf("cannot fill the store: %w", err)
			}
		}
	}
	return nil
}

// asked are the commands whose time is taken beside a fleet with a past.
var asked = [][]string{{"status"}, {"history"}, {"events", "-n", "20"}, {"usage"}, {"usage", "--by", "day", "--since", "365d"}, {"series", "--since", "365d"}}

// answer is how long a command has taken, and of what processor.
type answer struct {
	Command string        `json:"command"`
	Took    time.Duration `json:"took_ns"`
	CPU     time.Duration `json:"cpu_ns"`
}

// askAll asks them.
func (s settings) askAll(sc scenario, r *Result) error {
	if !sc.past {
		return nil
	}
	for _, args := range asked {
		began := time.Now()
		_, cpu, err := s.heartbeat(sc, args...)
		if err != nil {
			return err
		}
		r.Asked = append(r.Asked, answer{strings.Join(args, " "), time.Since(began), cpu})
	}
	return nil
}
