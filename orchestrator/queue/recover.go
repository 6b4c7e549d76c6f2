package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/flock"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
	"heartbeat/hook/process"
)

// Recovery says what to recover.
type Recovery struct {
	Place inbox.Place
	// Dir is the directory that a scheduler would lock.
	Dir         string
	Policy      inbox.OrphanPolicy
	MaxAttempts int
	// ConfigDir is where the client keeps its conversations, or "".
	ConfigDir string
	// Ends and Begins are those of inbox.Interruption.
	Ends   func(delivery string) error
	Begins func(inbox.InFlight) bool
}

// OfAgent returns the recovery of an agent; policy "" is the declared one.
func OfAgent(a *config.Agent, policy inbox.OrphanPolicy) Recovery {
	if policy == "" {
		policy = a.OnOrphan
	}
	env, _ := a.Environ(os.Environ()) // without its env-file it has no session
	conversations := client.Claude.ConfigDir(client.In(env))
	if home := a.StandInHome(); home != "" {
		conversations = filepath.Join(home, client.Claude.Settings.Folder)
	}
	r := Recovery{Place: place(a), Dir: a.Dir, Policy: policy, MaxAttempts: a.MaxAttempts, ConfigDir: conversations}
	if a.KickoffText == "" { // otherwise no prompt is to stand on a command line
		r.Begins = fitsArgument
	}
	return r
}

func fitsArgument(f inbox.InFlight) bool { return handover.FitsArgument(f.Given()) }

// arrivedIn is handover.ArrivedIn for what files show to be in flight.
func arrivedIn(configDir string) func(inbox.InFlight) inbox.Arrival {
	arrived := handover.ArrivedIn(configDir)
	return func(f inbox.InFlight) inbox.Arrival { return inbox.Arrival(arrived(f.Given())) }
}

// OfInbox returns the recovery of a queue that belongs to no declared agent; policy
// "" is deadletter, as in heartbeat-rs.
func OfInbox(path string, policy inbox.OrphanPolicy) (Recovery, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Recovery{}, fmt.Errorf("cannot find inbox %q: %w", path, err)
	}
	// The path of the folder may contain links; from here on none is followed.
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	if policy == "" {
		policy = inbox.DeadLetter
	}
	dir := filepath.Dir(path)
	r := Recovery{Place: inbox.Place{Inbox: path}, Dir: dir, Policy: policy, Begins: fitsArgument}
	if filepath.Base(dir) == ".heartbeat" {
		r.Dir = filepath.Dir(dir)
	}
	return r, nil
}

// Recover recovers the entry in flight of a session that is gone, with the locks of the
// directory, the session and the hooks held. If a scheduler or a session holds one, the error is
// a *BusyError and nothing was done.
func Recover(ctx context.Context, r Recovery) (o inbox.Outcome, flight *inbox.InFlight, err error) {
	// A lock on a missing path would create it, as a file.
	if info, err := os.Stat(filepath.Dir(r.Place.Inbox)); err != nil || !info.IsDir() {
		return "", nil, fmt.Errorf("cannot recover %q: there is no such queue: %w", r.Place.Inbox, cmp.Or(err, fs.ErrNotExist))
	}
	unlockDir, err := flock.TryLockFolder(r.Dir)
	if errors.Is(err, flock.ErrHeld) {
		return "", nil, &BusyError{
			why:  fmt.Sprintf("cannot recover %q: heartbeat runs there%s, and recovers by itself", r.Dir, process.Numbered(flock.Holder(r.Dir))),
			hint: "stop `heartbeat run` first, which may be another fleet's: heartbeat status says it",
		}
	}
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, unlockDir()) }()
	err = inbox.HoldOrphaned(ctx, r.Place, false, func(q inbox.Orphaned) error {
		o, flight, err = q.Recover(inbox.Interruption{
			Policy: r.Policy, MaxAttempts: r.MaxAttempts, Counts: true,
			Arrived: arrivedIn(r.ConfigDir), Begins: r.Begins, Now: time.Now(), Ends: r.Ends,
		})
		return err
	})
	if errors.Is(err, inbox.ErrSessionLives) {
		err = livesThere(fmt.Sprintf("cannot recover %q", r.Dir), r.Place.Inbox)
	}
	return o, flight, err
}

// Recovered is what became of an entry whose session is gone.
type Recovered struct {
	Outcome inbox.Outcome
	// Flight is the entry; nil if none was in flight.
	Flight *inbox.InFlight
	// Unreclaimed says why disk space could not be freed, or nil; Reclaimable is
	// true if there is more to free later.
	Unreclaimed error
	Reclaimable bool
}

// recoverWait limits how long RecoverOwn waits for the locks.
const recoverWait = 30 * time.Second

// RecoverOwn is Recover for a caller that holds the directory already, and waits
// for a session that is about to end. If the queue has no folder, nothing is in
// flight. It looks up itself what the transcripts of the agent's sessions and its
// session record prove.
func RecoverOwn(ctx context.Context, a *config.Agent, i inbox.Interruption) (Recovered, error) {
	var r Recovered
	own := OfAgent(a, "")
	i.Now, i.Arrived, i.Begins = time.Now(), arrivedIn(own.ConfigDir), own.Begins
	i.Finished = func(f inbox.InFlight) *inbox.Acknowledgement {
		said := hook.Finished(a.Home, f.Session, f.DeliveryID, i.Now)
		if said == nil {
			return nil
		}
		return &inbox.Acknowledgement{Session: said.Session, Reply: said.Text, Abandoned: said.Abandoned, Now: said.At}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recoverWait)
	defer cancel()
	err := inbox.HoldOrphaned(ctx, place(a), true, func(q inbox.Orphaned) (err error) {
		r.Unreclaimed = q.Reclaim()
		r.Reclaimable = q.Reclaimable()
		if r.Outcome, r.Flight, err = q.Recover(i); err != nil {
			r.Unreclaimed = nil // so that one cause is reported once
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return Recovered{Outcome: inbox.NothingToRecover}, nil
	}
	if errors.Is(err, inbox.ErrSessionLives) {
		return r, livesThere(fmt.Sprintf("cannot recover agent %q", a.Name), a.Inbox)
	}
	if err != nil {
		err = fmt.Errorf("cannot recover agent %q: %w", a.Name, err)
	}
	return r, err
}
