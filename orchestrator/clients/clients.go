package clients

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/probe"
)

// Known is a program, and what is known of it.
type Known struct {
	Program
	// Result is that of its last probe; nil: there was none.
	Result *probe.Result
	// Anew is true if this call of Probe has tried it, and not one before.
	Anew bool
}

// New reports whether the program has to be tried before it is relied on.
func (k Known) New() bool { return k.Untried == "" && k.Result == nil }

// Name is the client for people.
func (k Known) Name() string {
	if k.Result != nil && k.Result.Version != "" {
		return k.Result.Name() + " (" + k.File + ")"
	}
	return k.File
}

// Breaks says which promises it does not keep, or "".
func (k Known) Breaks() string {
	if k.Result == nil || len(k.Result.Broken) == 0 {
		return ""
	}
	first := k.Result.Broken[0]
	text := fmt.Sprintf("%s: %s", first.Promise, first.Seen)
	if more := len(k.Result.Broken) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// Clients probes what a run has not seen. Its methods may be called by several
// goroutines.
type Clients struct {
	prober   probe.Prober
	attempts *attempts.Book

	turn chan struct{} // one probe at a time: it needs the processors that sessions need
	mu   sync.Mutex
	// unkept are results that are not on disk, and when they came: of probes that could
	// not tell, and those that could not be written. No program is tried at each start.
	unkept map[string]unkept
}

type unkept struct {
	result probe.Result
	at     time.Time
}

// againAfter is when a program is tried again whose result is not on disk.
const againAfter = time.Hour

// New returns what probes by p, for the fleet with a state directory.
func New(p probe.Prober, stateDir string) *Clients {
	return &Clients{prober: p, attempts: attempts.Of(stateDir), turn: make(chan struct{}, 1), unkept: map[string]unkept{}}
}

// Look says what is known of an agent's client. It looks at files only. heartbeat's own
// stand-in is not tried.
func (c *Clients) Look(a *config.Agent) Known {
	if a.Self {
		return Known{Program: Program{Agents: []string{a.Name}}.untried("it is heartbeat itself")}
	}
	return c.known(Of(a, os.Environ(), ""))
}

func (c *Clients) known(p Program) Known {
	k := Known{Program: p}
	if r, err := Recall(p); err == nil { // otherwise it is tried
		k.Result = r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if u, ok := c.unkept[p.ID]; ok && k.Result == nil && time.Since(u.at) < againAfter {
		k.Result = &u.result
	}
	return k
}

// Probe tries a program that is new, and keeps the result. It may take minutes; if ctx
// ends, nothing is known of the program. The error is that the result could not be kept.
func (c *Clients) Probe(ctx context.Context, k Known) (Known, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return k, nil
	}
	if now := c.known(k.Program); !now.New() {
		return now, nil // somebody else has waited for the same
	}
	r, held := attempts.Run(ctx, c.attempts, attempts.Work{Kind: attempts.Probe, Name: k.File, Definition: k.ID}, func() (probe.Result, error) {
		return c.prober.Probe(ctx, k.Argv, k.Path), nil
	})
	if ctx.Err() != nil {
		return k, nil
	}
	if held != nil {
		r.Failure = foreign.Text(held.Error())
	}
	k.Result, k.Anew = &r, true
	return k, c.keep(k.Program, r)
}

// keep keeps a result, in memory where it is not for the disk or the disk takes none:
// an agent whose client stayed new would never start.
func (c *Clients) keep(p Program, r probe.Result) error {
	err := Keep(p, r)
	if err != nil || r.Verdict() == probe.Unknown {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unkept[p.ID] = unkept{r, time.Now()}
	}
	return err
}
