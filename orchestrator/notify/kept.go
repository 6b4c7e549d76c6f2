package notify

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/lastrun"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/state"
	"heartbeat/orchestrator/status"
)

// Files in the state directory.
const (
	keptFile = "notices.json"    // what people were told, and what is still to be delivered
	logFile  = "notices.jsonl"   // the outcome of each message, one per line
	oldLog   = "notices.jsonl.1" // the older ones
	fullLog  = 8 << 20
)

// kept is the state that a run hands to the next one.
type kept struct {
	Told  notice.Memory          `json:"told"`
	Boxes map[string]*outbox.Box `json:"boxes"` // :: target → what is still to be delivered
	// Marks are how far the dead letters and replies of agents were read.
	Marks map[string]*mark `json:"marks"`
	// Ping is since when pings fail, and why; nil: they arrive.
	Ping *status.Unpinged `json:"ping,omitempty"`
	// Heads are the first prompts of the agents' queues.
	Heads map[string]*head `json:"heads,omitempty"`
	// Replied are the keys of the latest replies that were handled.
	Replied []string `json:"replied,omitempty"`
}

// mark is how far the dead letters and replies of one agent were read.
type mark struct {
	Dead    time.Time `json:"dead,omitzero"`
	Reply   time.Time `json:"reply,omitzero"`
	ReplyID string    `json:"reply_id,omitempty"` // the delivery id of the last one
}

// mostReplied bounds the keys that are kept.
const mostReplied = 500

func (k *kept) repliedTo(key string) bool { return slices.Contains(k.Replied, key) }

func (k *kept) reply(key string) {
	if k.Replied = append(k.Replied, key); len(k.Replied) > mostReplied {
		k.Replied = slices.Delete(k.Replied, 0, len(k.Replied)-mostReplied)
	}
}

// read returns the state that an earlier run kept. A file that cannot be read is moved
// aside: then people are told again about troubles that they know, and no run waits for a
// person to repair it.
func read(stateDir string, now time.Time) (kept, error) {
	k := kept{}
	path := filepath.Join(stateDir, keptFile)
	err := state.Load(path, &k)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if errors.Is(err, state.ErrDamaged) {
		k = kept{}
		if moved := os.Rename(path, path+".damaged"); moved != nil {
			err = errors.Join(err, moved)
		}
	}
	if k.Told == nil {
		k.Told = notice.Memory{}
	}
	if k.Boxes == nil {
		k.Boxes = map[string]*outbox.Box{}
	}
	if k.Heads == nil {
		k.Heads = map[string]*head{}
	}
	if k.Marks == nil {
		k.Marks = map[string]*mark{}
	}
	for _, b := range k.Boxes {
		b.Recall(now)
	}
	return k, err
}

// Pending returns what is still to be delivered to each target, as saved by the present or
// the last run.
func Pending(stateDir string) (map[string]*outbox.Box, error) {
	var k kept
	if err := state.Load(filepath.Join(stateDir, keptFile), &k); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return k.Boxes, nil
}

// Untold returns the targets that do not get their messages.
func Untold(stateDir string, now time.Time) (all []status.Untold) {
	boxes, err := Pending(stateDir)
	if err != nil {
		return nil // `notify log` reports it
	}
	for _, name := range slices.Sorted(maps.Keys(boxes)) {
		if b := boxes[name]; b.Fails(now) {
			all = append(all, untold(name, b))
		}
	}
	return all
}

// untold describes a target that does not get what is in its box.
func untold(name string, b *outbox.Box) status.Untold {
	return status.Untold{Target: name, Since: b.Failing, Why: b.Why, Unnamed: b.Unnamed}
}

// Unpinged returns since when the pings of the present run fail, and why; nil: they arrive,
// or no run sends any.
func Unpinged(stateDir string, now time.Time) *status.Unpinged {
	var k kept
	if last := lastrun.Of(stateDir); last == nil || !last.Lives || state.Load(filepath.Join(stateDir, keptFile), &k) != nil || !pingFails(k.Ping, now) {
		return nil
	}
	return k.Ping
}

// Owed are replies, awaited or arrived, that cannot be sent because the file does not name
// their target.
type Owed struct {
	Target  string
	Replies int
}

// String describes them on one line.
func (o Owed) String() string {
	return fmt.Sprintf("%s waited for at %s, which notify: does not name; what comes is kept for a week, until it does", replies(o.Replies, "is", "are"), o.Target)
}

// replies counts replies, with a verb.
func replies(n int, one, more string) string {
	if n == 1 {
		return "1 reply " + one
	}
	return fmt.Sprintf("%d replies %s", n, more)
}

// Undelivered says which replies have not arrived at targets that the file names: those on
// their way still, and those that were given up since a time; "": all have.
func Undelivered(stateDir string, since time.Time) string {
	boxes, err := Pending(stateDir)
	records, unread := Records(stateDir, mostRecent, nil)
	if err = errors.Join(err, unread); err != nil {
		return "cannot tell whether all replies have arrived: " + err.Error()
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(boxes)) {
		if b := boxes[name]; b.Replies() > 0 && !b.Unnamed {
			all = append(all, fmt.Sprintf("%s not arrived at %s, and the next run tries again: %s", replies(b.Replies(), "has", "have"), name, cmp.Or(b.Why, "no answer yet")))
		}
	}
	for _, r := range records {
		if n := outbox.Replies(r.Notices); n > 0 && r.Outcome == outbox.GivenUp && !r.At.Before(since) {
			all = append(all, fmt.Sprintf("%s not arrived at %s, and is given up: %s", replies(n, "has", "have"), r.Target, r.Why))
		}
	}
	return strings.Join(all, "; ")
}

// mostRecent is how many records are looked at for what a run has given up.
const mostRecent = 1000

// Unnamed returns the targets that wait for replies and that the file does not name.
func Unnamed(stateDir string, f *config.Fleet, now time.Time) ([]Owed, error) {
	waits, err := awaited.All(stateDir)
	boxes, unread := Pending(stateDir)
	count := map[string]int{}
	for _, r := range waits {
		if now.Sub(r.From()) <= mostAwaited {
			count[r.Target]++
		}
	}
	for name, b := range boxes {
		count[name] += b.Replies()
	}
	var all []Owed
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if f.Targets[name] == nil && count[name] > 0 {
			all = append(all, Owed{name, count[name]})
		}
	}
	return all, errors.Join(err, unread)
}

// warnOfUnnamed logs the targets that wait for replies and that the file does not name.
func (w *Watch) warnOfUnnamed(now time.Time) {
	all, err := Unnamed(w.opt.StateDir, w.fleet, now)
	if err != nil {
		w.opt.Log.Warn("cannot tell who waits for replies", "err", err)
	}
	for _, o := range all {
		w.opt.Log.Warn(o.String())
	}
}

// Record is the outcome of an attempt to deliver a message.
type Record struct {
	At      time.Time      `json:"at"`
	Target  string         `json:"target"`
	Outcome outbox.Outcome `json:"outcome"`
	Key     string         `json:"key"`
	// Attempts counts the attempts for this message, this one included.
	Attempts int             `json:"attempts"`
	Why      foreign.Text    `json:"why,omitempty"`
	Notices  []notice.Notice `json:"notices"`
}

// mostLogged limits a reply's text in a record, in runes.
const mostLogged = 1000

// log adds a record. Nothing but `notify log` reads it, so a failure only logs.
func (w *Watch) log(r Record) {
	r.Notices = slices.Clone(r.Notices)
	for i := range r.Notices {
		r.Notices[i].Reply = foreign.Short(r.Notices[i].Reply, mostLogged)
	}
	line, err := json.Marshal(r)
	if err == nil {
		err = appendLog(w.opt.StateDir, append(line, '\n'))
	}
	if err != nil {
		w.opt.Log.Warn("cannot record a notice", "err", err)
	}
}

func appendLog(stateDir string, line []byte) error {
	f, err := durable.Open(stateDir)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(logFile); err == nil && info.Size() >= fullLog {
		if err := f.Rename(logFile, oldLog); err != nil {
			return err
		}
	}
	return f.Append(logFile, line)
}

// mostRecord limits the length of a record that is read.
const mostRecord = 1 << 20

// Records returns the newest records, at most most of them, oldest first: those of the
// named targets, or of all targets there ever were if none is named.
func Records(stateDir string, most int, targets []string) ([]Record, error) {
	var all []Record
	for _, name := range []string{oldLog, logFile} {
		f, err := durable.OpenFile(filepath.Join(stateDir, name), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the notices: %w", err)
		}
		for in := bufio.NewReaderSize(f, 64<<10); ; {
			line, _, err := durable.Line(in, mostRecord)
			if err != nil {
				break
			}
			var r Record
			if json.Unmarshal(line, &r) != nil || len(targets) > 0 && !slices.Contains(targets, r.Target) {
				continue
			}
			if all = append(all, r); len(all) > 2*most {
				all = slices.Clone(all[len(all)-most:])
			}
		}
		_ = f.Close() // it was only read
	}
	return all[max(0, len(all)-most):], nil
}
