// Package page is a fleet's page in a browser. It shows what the agents do, and lets people
// act. It decides nothing: Read reads what it shows, and Act does what people ask for, both as
// the commands do. Package access decides who may look and who may act.
//
// A page is a tree of parts (Sheet), each drawn by a template. A browser gets the whole page, and
// then the parts that change, at most once a second (live.go). Without JavaScript it works, too:
// every act is a form.
package page

import (
	"context"
	"html/template"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/page/once"
)

// Root is the path that all of the page's paths begin with.
const Root = config.PagePath

// Options say what a page shows and does.
type Options struct {
	// Fleet is the fleet's name.
	Fleet string
	Read  Read
	Act   Act
	// Agents is what the pages of one agent show.
	Agents AgentRead
	// Approvals is what agents ask for.
	Approvals Approvals
	Guard     *access.Guard
	Book      *once.Book
	// Note writes to the journal who acts.
	Note func(journal.Event)
	Log  *slog.Logger
	// Now is the clock; nil: the system's.
	Now func() time.Time
}

// Page is a fleet's page. It is an http.Handler for the paths below Root.
type Page struct {
	opt    Options
	html   func() *template.Template // parsed when a page is first asked for
	mux    *http.ServeMux
	sheets *http.ServeMux
	live   *live
	fleets kept[Fleet]
	// What takes long to read and to draw.
	records, plotted kept[[]Part]
	diffs            kept[Part]
	// needed caches how much needs a person, for pages that show only this number: they need
	// not read the fleet each second.
	needed kept[int]
}

// New returns the page. Until Run is called, and after it, it shows no changes.
func New(opt Options) *Page {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	p := &Page{opt: opt, html: sync.OnceValue(parse)}
	p.live = newLive(p.tryLook)
	p.live.fleet = opt.Fleet
	p.fleets.lasts, p.records.lasts, p.diffs.lasts, p.plotted.lasts = 900*time.Millisecond, 10*time.Second, 30*time.Second, time.Minute
	p.needed.lasts = 10 * time.Second
	p.sheets, p.mux = sheetsByPath(), p.routes()
	return p
}

// Trusts reports whether an address is a proxy before the page.
func (p *Page) Trusts(a netip.Addr) bool { return p.opt.Guard.Trusts(a) }

// Knows reports whether who sends a request may look, and counts nothing.
func (p *Page) Knows(r *http.Request) bool { return p.opt.Guard.Knows(r) }

// Run tells browsers what changes, until ctx ends.
func (p *Page) Run(ctx context.Context) { p.live.run(ctx) }

// policy lets a page load only what we serve, and lets no other page embed it.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // without it, forms would not say where they come from
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	p.mux.ServeHTTP(w, r)
}
