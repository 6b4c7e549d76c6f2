package approval

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/deadline"
)

// The register's folder in the state directory, and its contents.
const (
	folder   = "approvals"
	doneIn   = "done"
	lockFile = ".lock"
	lockWait = 5 * time.Second
)

// The limits of requests, so that an agent that asks without end neither fills the disk nor
// hides the requests of others.
const (
	// MostOpen is how many requests of one agent may wait, mostOfFleet of all agents.
	MostOpen    = 20
	mostOfFleet = 1000
	// MostInHour is how many requests an agent may make in an hour, answered or not.
	MostInHour = 60
	// mostDone is how many answered requests are kept.
	mostDone = 500
	// maxFile is the longest request as JSON, which can make a text six times as long.
	maxFile = 6*(MaxPayload+MaxQuestion+MaxNote) + 8192
)

// Register has the requests of a fleet. Several processes may use it at the same time.
type Register struct{ stateDir string }

// Stamp changes when requests are filed or answered. The zero value differs from the stamp of
// any register that exists.
type Stamp struct{ open, done time.Time }

// Stamp returns the present stamp, without reading requests.
func (l Register) Stamp() (s Stamp) {
	for name, at := range map[string]*time.Time{folder: &s.open, filepath.Join(folder, doneIn): &s.done} {
		if info, err := os.Lstat(filepath.Join(l.stateDir, name)); err == nil {
			*at = info.ModTime()
		}
	}
	return s
}

// Of returns the register in a state directory. It need not exist.
func Of(stateDir string) Register { return Register{stateDir} }

// Ask files a request of an agent and, if its rules give one, the answer. If a request for the
// same Name and About exists and was not withdrawn, Ask returns that one instead. The error
// matches ErrTooMany if the agent has made too many requests.
func (l Register) Ask(ctx context.Context, r Request, rules config.Approvals, now time.Time) (Request, error) {
	r, err := r.cleaned()
	if err != nil {
		return r, err
	}
	r.ID, r.State, r.At, r.Until = newID(), Asked, now.UTC(), now.Add(Lasts).UTC()
	err = l.locked(ctx, func(f folders) error {
		open, _ := f.waiting() // callers that list requests report what cannot be read
		done, err := f.done.list()
		if err != nil {
			rules.After = nil // a rejection may be among them
		}
		for _, same := range append(open, done...) {
			if r.Name != "" && same.Name == r.Name && same.stands(r.Key, r.Entry, r.About) {
				r = same
				return nil
			}
		}
		mine := func(o Request) bool { return o.of(r) }
		if err := bounded(open, done, mine, now); err != nil {
			return err
		}
		if a := decide(rules, r, slices.Collect(filter(done, mine))); a != nil {
			r = r.answered(*a, now)
			r.Told = true // by the result of this call
			return f.file(r)
		}
		return f.open.put(r)
	})
	if err != nil {
		return r, fmt.Errorf("cannot ask for an approval: %w", err)
	}
	return r, nil
}

// bounded returns an error if an agent has made too many requests.
func bounded(open, done []Request, mine func(Request) bool, now time.Time) error {
	waiting, lately := 0, 0
	for range filter(open, mine) {
		waiting++
	}
	for o := range filter(slices.Concat(open, done), mine) {
		if ago := now.Sub(o.At); ago >= 0 && ago < time.Hour { // not from a clock that was ahead
			lately++
		}
	}
	switch {
	case waiting >= MostOpen:
		return fmt.Errorf("%w: %d of the agent wait for an answer already", ErrTooMany, waiting)
	case len(open) >= mostOfFleet:
		return fmt.Errorf("%w: %d of the fleet wait for an answer already", ErrTooMany, len(open))
	case lately >= MostInHour:
		return fmt.Errorf("%w: the agent has asked %d times in the last hour", ErrTooMany, lately)
	}
	return nil
}

// Answer files the answer to a waiting request and returns the request. The error matches
// ErrNone, ErrTooLong or ErrAnswered; with the last one the request is returned, too.
func (l Register) Answer(ctx context.Context, id string, a Answer, now time.Time) (r Request, err error) {
	if !idForm.MatchString(id) {
		return r, fmt.Errorf("cannot answer %q: %w", id, ErrNone)
	}
	if n := Length(a.Note); a.Person && n > MaxNote {
		return r, fmt.Errorf("cannot answer %q: %w: %d bytes, and %d at most are kept", id, ErrTooLong, n, MaxNote)
	}
	err = l.locked(ctx, func(f folders) error {
		if r, err = f.done.get(id); err == nil {
			return fmt.Errorf("%w: %s, %s", ErrAnswered, r.Answered(), r.AnsweredAt.Local().Format(time.RFC3339))
		}
		if r, err = f.open.get(id); err != nil {
			return err
		}
		r, err = r.answered(a, now).cleaned()
		if err != nil {
			return err
		}
		return f.file(r)
	})
	if err != nil {
		return r, fmt.Errorf("cannot answer %q: %w", id, err)
	}
	return r, nil
}

// Settle withdraws the requests for which gone returns a reason, and ends those that have
// waited too long. If an answered request is no longer needed, its answer stays, with the
// reason, and the agent is not told. Settle returns all these requests.
func (l Register) Settle(ctx context.Context, gone func(Request) (why string), now time.Time) (ended []Request, err error) {
	waiting, err := l.Waiting()
	done, failed := l.Done()
	ended, unended := l.SettleOf(ctx, waiting, done, gone, now)
	return ended, errors.Join(err, failed, unended)
}

// SettleOf is Settle for a caller that has read the requests.
func (l Register) SettleOf(ctx context.Context, waiting, done []Request, gone func(Request) (why string), now time.Time) (ended []Request, err error) {
	for _, r := range waiting {
		a := Answer{State: Expired}
		if why := gone(r); why != "" {
			a = Answer{State: Withdrawn, Note: why}
		} else if r.At.After(now) {
			err = errors.Join(err, l.begins(ctx, r.ID, now))
			continue
		} else if !deadline.Over(r.Until, now) {
			continue
		}
		was, failed := l.Answer(ctx, r.ID, a, now)
		switch {
		case failed == nil:
			ended = append(ended, was)
		case !errors.Is(failed, ErrAnswered) && !errors.Is(failed, ErrNone):
			err = errors.Join(err, failed)
		}
	}
	for r := range filter(done, Request.Owes) {
		if why := gone(r); why != "" {
			was, told, failed := l.tell(ctx, r.ID, why)
			if err = errors.Join(err, failed); told {
				ended = append(ended, was)
			}
		}
	}
	return ended, err
}

// begins makes the time of a request begin now, because a clock that was ahead filed it in the
// future: it might wait for years.
func (l Register) begins(ctx context.Context, id string, now time.Time) error {
	return l.locked(ctx, func(f folders) error {
		r, err := f.open.get(id)
		if errors.Is(err, ErrNone) { // it was just answered
			return nil
		}
		if err == nil {
			r.At, r.Until = now.UTC(), now.Add(Lasts).UTC()
			err = f.open.put(r)
		}
		return err
	})
}

// Renamed updates the name of an agent in its open requests: those that wait, and those whose
// answer it does not have.
func (l Register) Renamed(ctx context.Context, key, name string) error {
	err := l.locked(ctx, func(f folders) error {
		open, err := f.waiting()
		done, err2 := f.done.list()
		err = errors.Join(err, err2)
		rename := func(s shelf, all []Request, which func(Request) bool) {
			for r := range filter(all, func(r Request) bool { return r.Key == key && key != "" && r.Agent != name && which(r) }) {
				r.Agent = name
				err = errors.Join(err, s.put(r))
			}
		}
		rename(f.open, open, Request.Waits)
		rename(f.done, done, Request.Owes)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot rename the agent of approvals: %w", err)
	}
	return nil
}

// Tell records that the agent has the answer to a request.
func (l Register) Tell(ctx context.Context, id string) error {
	_, _, err := l.tell(ctx, id, "")
	return err
}

// tell records that the agent has the answer, or why it needs none. told is false if that was
// recorded before.
func (l Register) tell(ctx context.Context, id, needless string) (r Request, told bool, err error) {
	err = l.locked(ctx, func(f folders) error {
		if r, err = f.done.get(id); err != nil || r.Told {
			return err
		}
		r.Told, r.Needless = true, clipped(needless)
		err = f.done.put(r)
		told = err == nil
		return err
	})
	return r, told, err
}

// Waiting returns the requests that wait for an answer, oldest first. The error is about files
// that are not requests (state.ErrDamaged if all others were read); the requests are returned
// all the same.
func (l Register) Waiting() ([]Request, error) {
	var all []Request
	err := l.read(func(f folders) (err error) {
		all, err = f.waiting()
		return err
	})
	return all, err
}

// Done returns the latest answered requests, oldest first, with an error as for Waiting.
func (l Register) Done() (all []Request, err error) {
	err = l.read(func(f folders) error {
		all, err = f.done.list()
		return err
	})
	slices.SortStableFunc(all, func(x, y Request) int { return x.AnsweredAt.Compare(y.AnsweredAt) })
	return all, err
}

// Find returns a request, answered or not; the error matches ErrNone.
func (l Register) Find(id string) (r Request, err error) {
	err = fmt.Errorf("%q: %w", id, ErrNone)
	if !idForm.MatchString(id) {
		return r, err
	}
	none := l.read(func(f folders) error {
		if r, err = f.done.get(id); err != nil {
			r, err = f.open.get(id)
		}
		return err
	})
	return r, cmp.Or(none, err)
}

// For returns the requests, answered or not, about an entry as people were shown it; see
// Request.About. Withdrawn ones, and damaged files, are left out.
func (l Register) For(key, entry, about string) ([]Request, error) {
	done, err := l.Done()
	waiting, err2 := l.Waiting()
	all := slices.Collect(filter(append(done, waiting...), func(r Request) bool { return r.Name != "" && r.stands(key, entry, about) }))
	return all, errors.Join(Undamaged(err), Undamaged(err2))
}

// stands reports whether the request is about an entry as people were shown it, and was not
// withdrawn.
func (r Request) stands(key, entry, about string) bool {
	return r.Key == key && r.Entry == entry && r.About == about && r.State != Withdrawn
}

// of reports whether two requests come from the same agent.
func (r Request) of(o Request) bool {
	if r.Key != "" && o.Key != "" {
		return r.Key == o.Key
	}
	return r.Agent == o.Agent
}

// answered returns the request with its answer.
func (r Request) answered(a Answer, now time.Time) Request {
	r.State, r.AnsweredAt, r.By, r.Note, r.Person = a.State, now.UTC(), a.By, clipped(a.Note), a.Person
	return r
}

var idForm = regexp.MustCompile(`^[0-9a-f]{8}$`)

func newID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

func filter(all []Request, is func(Request) bool) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		for _, r := range all {
			if is(r) && !yield(r) {
				return
			}
		}
	}
}
