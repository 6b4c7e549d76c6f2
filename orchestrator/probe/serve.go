package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
)

// order is what the process that plays the scenes is told, on one line.
type order struct {
	Client   []string      `json:"client"` // its command line, without arguments
	Path     string        `json:"path"`   // PATH
	Dir      string        `json:"dir"`    // a folder for everything
	Isolated bool          `json:"isolated"`
	Patience time.Duration `json:"patience"`
}

// report is one line of what it says.
type report struct {
	// Played and Of say how far it is, with what.
	Played int    `json:"played,omitempty"`
	Of     int    `json:"of,omitempty"`
	Now    string `json:"now,omitempty"`
	// NoNetwork is why it has no network of its own, although it was started in one.
	NoNetwork string  `json:"no_network,omitempty"`
	Result    *Result `json:"result,omitempty"` // the last line
}

// Command is the word of the program's command line that serves a probe.
const Command = "__probe"

// Serve plays the scenes: it is the program that Prober starts. It reads an order from
// in, ends when that ends, and writes reports.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := json.NewDecoder(in)
	var o order
	if err := lines.Decode(&o); err != nil {
		return fmt.Errorf("cannot read what to probe: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		_, _ = io.Copy(io.Discard, in) // who started it holds this open
		stop(errors.New("nobody waits for the probe any more"))
	}()
	tell := json.NewEncoder(out)
	if o.Isolated {
		if err := raiseLoopback(); err != nil {
			return tell.Encode(report{NoNetwork: err.Error()})
		}
	}
	p := &play{order: o, of: 1 + len(rest), tell: func(r report) { _ = tell.Encode(r) }}
	r := p.all(ctx)
	return tell.Encode(report{Result: &r})
}

// play is one round of all scenes.
type play struct {
	order
	of   int
	tell func(report)

	mu     sync.Mutex
	played int
	tally  tally
	failed error
}

// all plays the scenes. Without the first one the others would show nothing more.
func (p *play) all(ctx context.Context) Result {
	began := time.Now()
	p.tally = newTally()
	r := Result{
		Client: strings.Join(p.Client, " "), Version: p.version(ctx), Measured: client.Claude.Versions.Measured,
		Isolated: p.Isolated, At: began,
	}
	p.scene(ctx, 0, first)
	if p.failed == nil && p.goesOn() {
		next := make(chan int)
		var wg sync.WaitGroup
		for range min(2, runtime.GOMAXPROCS(0)) {
			wg.Go(func() {
				for i := range next {
					p.scene(ctx, i+1, rest[i])
				}
			})
		}
		for i := range rest {
			next <- i
		}
		close(next)
		wg.Wait()
	}
	p.tally.tell(&r)
	if p.failed != nil {
		r.Failure = foreign.Text(p.failed.Error())
	}
	r.DurationMS = time.Since(began).Milliseconds()
	return r
}

// goesOn reports whether the other scenes would show anything.
func (p *play) goesOn() bool {
	return p.tally.broken[Starts] == "" && p.tally.broken[HooksRun] == ""
}

// scene plays a scene.
func (p *play) scene(ctx context.Context, n int, sc scene) {
	p.mu.Lock()
	p.tell(report{Played: p.played, Of: p.of, Now: sc.name})
	p.mu.Unlock()
	seen, once, err := tries(ctx, func(try int) (tally, error) {
		return sc.perform(ctx, filepath.Join(p.Dir, fmt.Sprintf("%d-%d", n, try)), p.order)
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.played++
	p.tally.add(seen)
	p.tally.doubt(once, seen)
	if err != nil && p.failed == nil {
		p.failed = fmt.Errorf("cannot play %q: %w", sc.name, err)
	}
}

// mostTries is how often a scene is played.
const mostTries = 3

// tries plays a scene until it is known what it tells: that nothing is broken, or what
// two tries have seen. A machine that is too busy for a moment breaks something once, and
// something else the next time; once has these. The error says that nothing is known.
func tries(ctx context.Context, perform func(try int) (tally, error)) (seen tally, once []tally, err error) {
	for try := range mostTries {
		before := err
		seen, err = perform(try)
		if err == nil && len(seen.broken) == 0 {
			return seen, once, nil
		}
		twice := seen.asIn(once)
		if once = append(once, seen); len(twice.broken) > 0 {
			return twice, once, err
		}
		if ctx.Err() != nil || err != nil && before != nil {
			return newTally(), once, err
		}
	}
	return newTally(), once, cmp.Or(err, errors.New("each time something else was wrong"))
}

// version asks the client for its version; "" where it says none.
func (p *play) version(ctx context.Context) string {
	ctx, stop := context.WithTimeout(ctx, p.Patience)
	defer stop()
	cmd := exec.CommandContext(ctx, p.Client[0], append(p.Client[1:len(p.Client):len(p.Client)], "--version")...)
	cmd.Env = append([]string{"PATH=" + p.Path, "HOME=" + p.Dir, "GORACE=atexit_sleep_ms=0"}, client.Claude.Variables.Quiet...)
	cmd.Dir, cmd.WaitDelay = p.Dir, time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if of := client.Claude.Versions.Of(strings.TrimSpace(string(out))); of != "" {
		version = of
	}
	return foreign.Line(version[:min(len(version), 40)])
}
