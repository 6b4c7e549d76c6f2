// Package doors serves what comes in by HTTP while a fleet runs: webhooks, metrics,
// at the addresses that its file declares. An address that cannot be opened, or that
// is lost, stops nothing: the fleet continues, readers are told, and it is tried again.
// Who may ask for what is decided here and nowhere else; what becomes of a webhook's
// request is decided by firing.
package doors

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/status"
	"heartbeat/ptyrun/lobby"
)

// Options say what is served.
type Options struct {
	// Webhooks answers at the paths of webhook triggers, Metrics at its own.
	Webhooks, Metrics http.Handler
	// Page answers below config.PagePath; nil: there is none.
	Page Page
	Log  *slog.Logger
}

// Page is a page for browsers. It decides itself who may look.
type Page interface {
	http.Handler
	// Trusts reports whether an address is a proxy before the page, which speaks for
	// many.
	Trusts(netip.Addr) bool
	// Knows reports whether who sends a request may look. A wrong token is no try here: the
	// page itself counts it.
	Knows(*http.Request) bool
}

// Doors are the addresses of a run.
type Doors struct {
	opt    Options
	limits limits
	crowd  lobby.Floor

	// changing is held while addresses are opened and closed, which may take as long as
	// an answer.
	changing sync.Mutex
	ctx      context.Context // of Run; nil before
	wanted   []config.Listen
	out      sync.WaitGroup

	mu  sync.Mutex
	all []*door
}

// door is one address.
type door struct {
	config.Listen
	close context.CancelFunc
	// freed is closed, by free, once another may open the address.
	freed chan struct{}
	free  func()

	mu      sync.Mutex
	since   time.Time
	problem string // why it is not open, or ""
	fix     string // what to type against that, or ""
}

// New returns doors that are closed.
func New(opt Options) *Doors {
	return &Doors{opt: opt, limits: usual, crowd: lobby.Floor{Most: mostBrowsers}}
}

// Run serves at the addresses that Set says until ctx ends, and then closes them.
func (d *Doors) Run(ctx context.Context) {
	d.changing.Lock()
	d.ctx = ctx
	d.open()
	d.changing.Unlock()
	<-ctx.Done()
	d.out.Wait()
}

// Set says which addresses are to be open; before Run none is. Those that stay are
// not touched; at those that go, what was asked for is answered still.
func (d *Doors) Set(addresses []config.Listen) {
	d.changing.Lock()
	defer d.changing.Unlock()
	d.wanted = addresses
	d.open()
}

// open opens and closes addresses, so that those are open that are wanted. The
// caller holds d.changing.
func (d *Doors) open() {
	if d.ctx == nil || d.ctx.Err() != nil {
		return
	}
	addresses := d.wanted
	var next []*door
	for _, old := range d.all {
		if slices.ContainsFunc(addresses, func(l config.Listen) bool { return reflect.DeepEqual(l, old.Listen) }) {
			next = append(next, old)
			continue
		}
		old.close()
		// Its address may be one of the new ones. Who has asked there is answered still:
		// it may be the one who asks for this.
		<-old.freed
	}
	for _, l := range addresses {
		if slices.ContainsFunc(next, func(o *door) bool { return reflect.DeepEqual(l, o.Listen) }) {
			continue
		}
		ctx, cancel := context.WithCancel(d.ctx)
		one := &door{Listen: l, close: cancel, freed: make(chan struct{}), since: time.Now(), problem: opening}
		one.free = sync.OnceFunc(func() { close(one.freed) })
		next = append(next, one)
		d.out.Go(func() {
			defer one.free()
			one.keep(ctx, d.limits, d.handler(l), d.opt.Log)
		})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = next
}

// State says of each address whether it is open.
func (d *Doors) State() []status.Door {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []status.Door
	for _, o := range d.all {
		o.mu.Lock()
		all = append(all, status.Door{Address: o.String(), Serves: words(o.Serves), Since: o.since, Problem: o.problem, Fix: o.fix})
		o.mu.Unlock()
	}
	return all
}

// opening is the problem of an address that was not tried yet.
const opening = "it is being opened"

// keep has an address open until ctx ends.
func (o *door) keep(ctx context.Context, b limits, h http.Handler, log *slog.Logger) {
	for ctx.Err() == nil {
		l, err := Open(o.Listen)
		if err == nil {
			o.is(nil, log)
			err = o.serve(ctx, l, b, h, log)
		}
		if ctx.Err() != nil {
			return
		}
		o.is(err, log)
		select {
		case <-ctx.Done():
		case <-time.After(b.again):
		}
	}
}

// is takes down whether the address is open, and says so where that is new.
func (o *door) is(err error, log *slog.Logger) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fix = fixOf(err)
	if problem != o.problem {
		o.problem, o.since = problem, time.Now()
		if problem != "" {
			log.Error("an address is not served", "address", o.String(), "err", problem)
		}
	}
	if problem == "" {
		log.Info("an address is served", "address", o.String(), "serves", o.Serves)
	}
}

var errGone = errors.New("its socket was removed")

// serve answers until ctx ends or the address is lost.
func (o *door) serve(ctx context.Context, l net.Listener, b limits, h http.Handler, log *slog.Logger) error {
	here, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	var closing sync.Mutex
	if socket, ok := l.(*net.UnixListener); ok {
		go lookAfter(here, socket, &closing, b.again, lost)
	}
	err := b.serve(here, freeing{l, &closing, func() {
		if ctx.Err() != nil {
			o.free()
		}
	}}, o.guarded(h), log)
	if cause := context.Cause(here); err == nil && cause != nil {
		err = cause
	}
	return err
}

// freeing is a listener that says when it is closed.
type freeing struct {
	net.Listener
	closing *sync.Mutex // whether Close removes the socket is not changed meanwhile
	closed  func()
}

func (f freeing) Close() error {
	defer f.closed()
	f.closing.Lock()
	defer f.closing.Unlock()
	return f.Listener.Close()
}

// lookAfter signals when a socket is no longer the one that was made.
func lookAfter(ctx context.Context, l *net.UnixListener, closing *sync.Mutex, every time.Duration, lost context.CancelCauseFunc) {
	path := l.Addr().String()
	made, err := os.Lstat(path)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var now os.FileInfo
		if now, err = os.Lstat(path); err == nil && !os.SameFile(made, now) {
			break
		}
	}
	closing.Lock()
	l.SetUnlinkOnClose(false) // what is there now belongs to another
	closing.Unlock()
	lost(errGone)
}
