// Package poll makes prompts from a command's output.
//
// The command runs in the agent's directory, without a shell, in a process
// group of its own that is gone when the run is over. Exit 0 with output
// makes prompts, without output there is nothing to do; exit 75 means "ask
// again later" and is no failure; anything else is one, after which the
// command runs less often. One trigger never runs its command twice at once.
//
// Output that could not be queued is kept in memory and offered until it is;
// a crash in between loses it, as only the command knows how to get it again.
package poll

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/sources"
)

const (
	defaultEvery, minEvery = time.Minute, time.Second
	defaultTimeout         = time.Minute
	// backoffLimit is the longest time between runs of a failing command, unless
	// Every is longer.
	backoffLimit = 15 * time.Minute

	retryBase, retryLimit = time.Second, 5 * time.Minute
	// lastChance bounds the emits that are still made while shutting down.
	lastChance = 2 * time.Second
	// maxKept bounds the hashes that Dedupe remembers.
	maxKept = 1000
)

// EnvLastSuccess tells a command when its last successful run began: one that
// exited with 0 and whose prompts were all queued. It is not set before the first
// one. No prompt covers what has changed since that time.
const EnvLastSuccess = "HEARTBEAT_LAST_SUCCESS"

// Runner runs a command and returns what it printed. Exec is the real one.
type Runner func(ctx context.Context, c Command) (Output, error)

// Trigger is one poll trigger.
type Trigger struct {
	Command Command
	// Every is the time from the start of one run to the start of the next; 0 means
	// a minute, less than a second means a second. After a run that takes longer,
	// the next one starts at once.
	Every    time.Duration
	Split    sources.Split     // "" is whole
	Template *sources.Template // of the prompt, see sources.ParsePollTemplate; nil: the output itself
	// Dedupe fires only for output that is not among the last 1000 that fired.
	Dedupe bool
	// Key, for Dedupe, produces from a part of the output the text that identifies
	// it; nil: all of the part. A blank key is an error.
	Key *sources.Template
	// Label, for Dedupe, names a fire by its key; nil: by a hash of it.
	Label func(key string) string
	// Kept is the last value given to Record; for Dedupe.
	Kept []string
	Emit sources.Emit
	// Record stores a new Kept after output fired. May be nil.
	Record func(kept []string)
	// Failed reports a run or an emit that failed and will be tried again after
	// retry. May be nil.
	Failed func(at time.Time, err error, retry time.Duration)
	// Last is the last value given to Succeeded, or zero. The command gets it, in
	// RFC 3339, in the variable EnvLastSuccess.
	Last time.Time
	// Succeeded is called with the start of a run that exited with 0 and whose
	// prompts are all queued. May be nil.
	Succeeded func(began time.Time)
	// Slots, when not nil, has as much room as there may be runs at the same time;
	// triggers share it.
	Slots chan struct{}
	// Run is Exec when nil.
	Run Runner
}

// Run runs the command repeatedly until ctx ends.
func Run(ctx context.Context, t Trigger) {
	t.defaults()
	failures := 0
	for ctx.Err() == nil {
		start := time.Now()
		prompts, err := t.prompts(ctx)
		wait := t.Every
		switch {
		case errors.Is(err, errLater):
			failures = 0
		case err == nil:
			failures = 0
			if t.emitAll(ctx, prompts) {
				t.succeeded(start)
			}
		case ctx.Err() != nil:
			return // we stopped it ourselves
		default:
			failures++
			wait = delay(failures, t.Every, rand.Float64())
			t.report(start, err, wait)
		}
		sleep(ctx, wait-time.Since(start))
	}
}

// Once runs the command once and fires with its output. It returns the number of
// prompts that were emitted, and the first error: a failed emit is not retried.
// Exit status 75 is not an error.
func Once(ctx context.Context, t Trigger) (int, error) {
	t.defaults()
	start := time.Now()
	prompts, err := t.prompts(ctx)
	if errors.Is(err, errLater) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for i, p := range prompts {
		if err := t.emit(ctx, p); err != nil {
			return i, err
		}
	}
	t.succeeded(start)
	return len(prompts), nil
}

// succeeded records a run whose prompts are all queued.
func (t *Trigger) succeeded(began time.Time) {
	t.Last = began
	if t.Succeeded != nil {
		t.Succeeded(began)
	}
}

// delay returns how long after the start of a failed run the next one starts.
// failures (from 1) is how many failed in a row. The delay is every, doubled each
// time, up to 15 minutes or every; r in [0, 1) spreads it.
func delay(failures int, every time.Duration, r float64) time.Duration {
	return max(every, sources.Backoff(failures+1, every, max(every, backoffLimit), r))
}

func (t *Trigger) defaults() {
	if t.Every == 0 {
		t.Every = defaultEvery
	}
	t.Every = max(t.Every, minEvery)
	if t.Run == nil {
		t.Run = Exec
	}
}

// fire is a prompt to be emitted.
type fire struct {
	sources.Prompt
	sum string
}

// prompts runs the command and makes prompts from its output.
func (t *Trigger) prompts(ctx context.Context) ([]fire, error) {
	if t.Slots != nil {
		select {
		case t.Slots <- struct{}{}:
			defer func() { <-t.Slots }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	start := time.Now()
	command := t.Command
	if !t.Last.IsZero() {
		command.Extra = append(slices.Clip(command.Extra), EnvLastSuccess+"="+t.Last.UTC().Format(time.RFC3339Nano))
	}
	out, err := t.Run(ctx, command)
	if err != nil {
		return nil, err
	}
	if out.Later {
		return nil, errLater
	}
	return t.fires(start, out)
}

// errLater means that the command has nothing to say yet.
var errLater = errors.New("later")

// fires makes prompts from what a run printed.
func (t *Trigger) fires(start time.Time, out Output) ([]fire, error) {
	parts, err := split(out.Stdout, t.Split)
	if err != nil {
		return nil, err
	}
	var fires []fire
	known := map[string]bool{}
	if t.Dedupe {
		for _, k := range t.Kept {
			known[k] = true
		}
	}
	for i, part := range parts {
		key, err := t.key(part)
		if err != nil {
			return nil, err
		}
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:16]
		if t.Dedupe && known[sum] {
			continue
		}
		known[sum] = true
		text, lacking, err := t.render(part)
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		fires = append(fires, fire{sources.Prompt{Label: t.label(key, sum, start, i), Text: text, At: start, Lacking: lacking}, sum})
	}
	return fires, nil
}

func (t *Trigger) render(part part) (text string, lacking []string, err error) {
	if t.Template == nil {
		return part.text, nil, nil
	}
	return t.Template.RenderLacking(sources.PollData{Output: part.text, JSON: part.value})
}

// key returns the text by which Dedupe identifies a part of the output.
func (t *Trigger) key(part part) (string, error) {
	if t.Key == nil {
		return part.text, nil
	}
	key, err := t.Key.RenderKey(sources.PollData{Output: part.text, JSON: part.value})
	if err != nil {
		return "", fmt.Errorf("cannot tell the output apart by its key: %w", err)
	}
	return key, nil
}

// label names a fire by its content and, without Dedupe, by the run that it came
// from, because the same output may mean new work.
func (t *Trigger) label(key, sum string, run time.Time, i int) string {
	switch {
	case t.Dedupe && t.Label != nil:
		return t.Label(key)
	case t.Dedupe:
		return sum
	}
	return sum + "." + strconv.FormatInt(run.UnixMilli(), 36) + "." + strconv.Itoa(i)
}

// emitAll emits until everything is queued, because the command may have printed
// its only copy. When ctx ends, each remaining prompt gets one more try. It reports
// whether all are queued. A prompt that a gate declined is not, and becomes a
// prompt again when the command prints it again.
func (t *Trigger) emitAll(ctx context.Context, fires []fire) bool {
	all := true
	for failures := 0; len(fires) > 0 && ctx.Err() == nil; {
		err := t.emit(ctx, fires[0])
		declined := errors.Is(err, sources.ErrDeclined)
		if err == nil || declined {
			all = all && !declined
			fires, failures = fires[1:], 0
			continue
		}
		if ctx.Err() != nil {
			break
		}
		failures++
		retry := sources.Backoff(failures, retryBase, retryLimit, rand.Float64())
		t.report(time.Now(), err, retry)
		sleep(ctx, retry)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastChance)
	defer cancel()
	for _, f := range fires {
		err := t.emit(ctx, f)
		all = all && err == nil
		if err != nil && !errors.Is(err, sources.ErrDeclined) {
			t.report(time.Now(), fmt.Errorf("a prompt is lost: %w", err), 0)
		}
	}
	return all
}

func (t *Trigger) emit(ctx context.Context, f fire) error {
	if err := t.Emit(ctx, f.Prompt); err != nil {
		return err
	}
	if !t.Dedupe {
		return nil
	}
	kept := append([]string{}, t.Kept[max(0, len(t.Kept)-maxKept+1):]...)
	t.Kept = append(kept, f.sum) // a new slice: Record may have kept the old one
	if t.Record != nil {
		t.Record(t.Kept)
	}
	return nil
}

func (t *Trigger) report(at time.Time, err error, retry time.Duration) {
	if t.Failed != nil {
		t.Failed(at, err, retry)
	}
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
