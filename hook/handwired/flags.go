package handwired

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"heartbeat/queue"
)

// usage is what --help prints.
const usage = `heartbeat-stop is Claude Code's Stop hook of a queue in a file.

  heartbeat-stop --inbox FILE [flags]     hand the next entry over (hand-wired Stop hook)
  heartbeat-stop recover --inbox FILE     deal with the entry that a dead session left
  heartbeat-stop hook                     the hooks that "heartbeat apply" generates

Flags of the Stop hook:
  --inbox FILE          the queue, one entry per line (required); it does not read the
                        urgent prompts beside it (urgent.jsonl)
  --mode drain|persist  when nothing is queued: let the session end, or wait (drain)
  --idle-interval D     persist: how long to wait before an idle tick; seconds or 90s, 5m (2)
  --signal-file FILE    touched when the stop is approved
  --deliver json|stderr how an entry is handed over: a block decision on stdout, or
                        exit status 2 and the text on stderr (json)
  --mark-repeats=false  hand repeats over byte for byte, without a word that they are
                        some (true)

Flags of recover:
  --inbox FILE          the queue (required)
  --on-orphan POLICY    retry, deadletter or drop an entry that was started (deadletter)
  --max-attempts N      repeats before an entry is a dead letter (5)
`

// mode says what the hook does when nothing is queued, way how an entry is handed over: by
// their words of heartbeat-rs.
type (
	mode string
	way  string
)

const (
	drain   mode = "drain"   // let the session end
	persist mode = "persist" // wait for work

	asStderr way = "stderr" // exit 2, the entry on stderr: once, exact
	asJSON   way = "json"   // decision:block on stdout
)

// options are the flags of the hand-wired forms.
type options struct {
	inbox       string // absolute
	mode        mode
	idle        time.Duration
	signalFile  string
	deliver     way
	markRepeats bool
	onOrphan    queue.OrphanPolicy
	maxAttempts int
}

// parseStop reads the flags of the hand-wired Stop hook.
func parseStop(args []string) (options, error) {
	o := options{mode: drain, idle: 2 * time.Second, deliver: asJSON}
	set := newFlags()
	set.StringVar(&o.inbox, "inbox", "", "")
	set.Var(choice(&o.mode, drain, persist), "mode", "")
	set.Var((*duration)(&o.idle), "idle-interval", "")
	set.StringVar(&o.signalFile, "signal-file", "", "")
	set.Var(choice(&o.deliver, asJSON, asStderr), "deliver", "")
	set.BoolVar(&o.markRepeats, "mark-repeats", true, "")
	return o, o.parse(set, args)
}

// parseRecover reads the flags of recover.
func parseRecover(args []string) (options, error) {
	o := options{onOrphan: queue.DeadLetterOrphan}
	set := newFlags()
	set.StringVar(&o.inbox, "inbox", "", "")
	set.Var(choice(&o.onOrphan, queue.RetryOrphan, queue.DeadLetterOrphan, queue.DropOrphan), "on-orphan", "")
	set.IntVar(&o.maxAttempts, "max-attempts", 0, "")
	return o, o.parse(set, args)
}

func newFlags() *flag.FlagSet {
	set := flag.NewFlagSet("heartbeat-stop", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	return set
}

func (o *options) parse(set *flag.FlagSet, args []string) error {
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if o.inbox == "" {
		return errors.New("--inbox is required")
	}
	var err error
	if o.inbox, err = filepath.Abs(o.inbox); err != nil {
		return err
	}
	// The folder's path may contain links; from here on no link is followed.
	if real, err := filepath.EvalSymlinks(filepath.Dir(o.inbox)); err == nil {
		o.inbox = filepath.Join(real, filepath.Base(o.inbox))
	}
	return nil
}

// chosen is a flag whose value is one of a few words.
type chosen[T ~string] struct {
	value *T
	words []T
}

func choice[T ~string](value *T, words ...T) chosen[T] { return chosen[T]{value, words} }

func (c chosen[T]) String() string { return "" }

func (c chosen[T]) Set(s string) error {
	for _, w := range c.words {
		if string(w) == s {
			*c.value = w
			return nil
		}
	}
	return fmt.Errorf("it must be one of %v", c.words)
}

// duration is a flag in seconds, as in heartbeat-rs, or in Go's notation.
type duration time.Duration

func (d *duration) String() string { return "" }

func (d *duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if seconds, e := strconv.ParseUint(s, 10, 64); e == nil {
		if v, err = time.Duration(seconds)*time.Second, nil; seconds > math.MaxInt64/uint64(time.Second) {
			err = errors.New("it is too long")
		}
	}
	if err == nil && v < 0 {
		err = errors.New("it must not be negative")
	}
	if err != nil {
		return errors.New("it must be a number of seconds or a duration like 90s: " + err.Error())
	}
	*d = duration(v)
	return nil
}
