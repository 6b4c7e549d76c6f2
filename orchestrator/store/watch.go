package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// watchEvery is how often Watch looks.
	watchEvery = 500 * time.Millisecond
	// waitsLong is how long a change may wait for another process until that is told.
	waitsLong = 700 * time.Millisecond
	// againAfter is how long after a change that could not be made another one is tried, so
	// that the end of a trouble is noticed.
	againAfter = 3 * time.Second
	// longLog is from which size on the log is said not to end. It begins again at some 4 MB,
	// unless somebody reads as it was before.
	longLog = 64 << 20
)

// health is what is known of how a store does.
type health struct {
	mu       sync.Mutex
	troubles map[Kind]Trouble
	lost     error     // a *LostError; nil: it is not lost
	beside   beside    // the log as the first change made it; zero: none was made yet
	waits    time.Time // since when the writer waits for another process; zero: it does not
	tried    time.Time // when a change was made, or could not be, last
}

// writes are the kinds that the next change that is made ends.
var writes = []Kind{Full, Locked, ReadOnly, Disk}

// note notes a trouble, unless it is known.
func (h *health) note(t Trouble) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if was, known := h.troubles[t.Kind]; known {
		t.Since = was.Since
	}
	if h.troubles == nil {
		h.troubles = map[Kind]Trouble{}
	}
	h.troubles[t.Kind] = t
}

// ends notes that there is no trouble of some kinds.
func (h *health) ends(kinds ...Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range kinds {
		delete(h.troubles, k)
	}
}

func (h *health) has(kinds ...Kind) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(kinds, func(k Kind) bool { _, has := h.troubles[k]; return has })
}

// waitsSince notes since when the writer waits for another process; zero: it does not.
func (h *health) waitsSince(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waits = at
}

// learns notes what became of a transaction, and of each change in it.
func (h *health) learns(err error, batch []*request) {
	now := time.Now()
	h.mu.Lock()
	h.tried = now
	h.mu.Unlock()
	if _, is := errors.AsType[*LostError](err); is {
		h.loses(err)
	}
	if err == nil {
		h.ends(writes...)
	}
	for _, r := range batch {
		if t, is := TroubleOf(cmp.Or(err, r.err), now); is {
			h.note(t)
		}
	}
}

// loses notes that the store is lost.
func (h *health) loses(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = err
}

// logIs notes which files the log is in.
func (h *health) logIs(b beside) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beside = b
}

// logGone says what has become of the log since the first change was made; nil: it stands.
func (h *health) logGone(path string) *LogError {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.beside == (beside{}) {
		h.beside = lookBeside(path)
	}
	return h.beside.stands(path)
}

// Troubles are those that the store has, for who reads.
func (s *Store) Troubles() []Trouble {
	s.health.mu.Lock()
	all := slices.Collect(maps.Values(s.health.troubles))
	s.health.mu.Unlock()
	slices.SortFunc(all, func(a, b Trouble) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(string(a.Kind), string(b.Kind)))
	})
	return s.debts.tell(all)
}

// Watch looks after the store until ctx ends, and logs what is wrong with it. If nothing can
// be written any more it returns why at once.
func (s *Store) Watch(ctx context.Context, log *slog.Logger) error {
	var parts sync.WaitGroup
	defer parts.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.found.Unclean {
		parts.Go(func() {
			if err := s.Verify(ctx); err != nil && ctx.Err() == nil {
				log.Warn("the fleet's store could not be checked after its last run was killed", "err", err)
			}
		})
	}
	var loaded time.Time
	trying := make(chan struct{}, 1)
	told := map[Kind]Trouble{}
	every := time.NewTicker(watchEvery)
	defer every.Stop()
	for {
		lost := s.look(ctx, time.Now())
		told = tell(log, told, s.Troubles())
		if lost != nil {
			return lost
		}
		if now := time.Now(); now.Sub(loaded) >= ballastEvery {
			loaded = now
			if err := s.load(); err != nil {
				log.Warn("the store has no reserve for a disk that is full", "err", err)
			}
		}
		if s.mayTryAgain(time.Now()) {
			select {
			case trying <- struct{}{}:
				parts.Go(func() {
					defer func() { <-trying }()
					_ = s.Write(ctx, s.touch) // its result is noted
				})
			default:
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

// touch changes nothing, and writes.
func (s *Store) touch(c *Change) error {
	_, err := c.Do(`UPDATE store SET clean = 0`)
	return err
}

// mayTryAgain reports whether it is time to see if a change can be made again.
func (s *Store) mayTryAgain(now time.Time) bool {
	if !s.health.has(writes...) {
		return false
	}
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return now.Sub(s.health.tried) >= againAfter
}

// look looks at what changes without a change of ours. Its error says that the store is lost.
func (s *Store) look(ctx context.Context, now time.Time) error {
	h := &s.health
	if s.file.stands(s.path) == nil && h.logGone(s.path) != nil {
		_ = s.Write(ctx, s.touch) // the writer sees it, too, and keeps what it can
	}
	h.mu.Lock()
	waits, lost := h.waits, h.lost
	h.mu.Unlock()
	if lost == nil {
		lost = s.file.stands(s.path)
	}
	if lost != nil {
		t, _ := TroubleOf(lost, now)
		h.note(t)
		return lost
	}
	if _, err := look(s.path); isRefused(err) {
		t, _ := TroubleOf(err, now) // we have it open, and nobody else can open it, nor the next run
		h.note(t)
	} else {
		h.ends(Refused)
	}
	if !waits.IsZero() && now.Sub(waits) >= waitsLong {
		t, _ := TroubleOf(&BusyError{cause{s.path, nil}, others(s.path, writing)}, waits)
		h.note(t)
	}
	if isReadOnly(s.Dir()) {
		t, _ := TroubleOf(&ReadOnlyError{cause{s.path, errReadOnly}}, now)
		h.note(t)
	}
	if info, err := os.Lstat(s.path + "-wal"); err == nil && info.Size() > s.longLog {
		by := others(s.path, reading)
		h.note(Trouble{
			Kind: Long, Since: now, Do: endOf(by, s.path),
			Text: fmt.Sprintf("the log of the store has grown to %d MB, because the store is read in one transaction without end: by %s", info.Size()>>20, processes(by)),
		})
	} else {
		h.ends(Long)
	}
	return nil
}

// tell logs troubles that have come and gone since some were told, and returns those that
// are.
func tell(log *slog.Logger, told map[Kind]Trouble, are []Trouble) map[Kind]Trouble {
	now := map[Kind]Trouble{}
	for _, t := range are {
		now[t.Kind] = t
		if _, known := told[t.Kind]; !known {
			log.Error(t.Text, "do", t.Do)
		}
		delete(told, t.Kind)
	}
	for _, t := range told {
		log.Info("this is over: "+t.Text, "after", time.Since(t.Since).Round(time.Second))
	}
	return now
}

// Verify is Check, and notes what it has found.
func (s *Store) Verify(ctx context.Context) error {
	err := s.Check(ctx)
	if t, is := TroubleOf(err, time.Now()); is {
		s.health.note(t)
	} else if err == nil {
		s.health.ends(Damaged)
	}
	return err
}
