package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/page/once"
)

// sheets are the pages.
var sheets = []sheet{
	{Root + "{$}", (*Page).fleet},
	{Root + "plots", (*Page).plots},
	{Root + "approvals", (*Page).approvals},
	{Root + "approvals/{id}", (*Page).approval},
	{Root + "agents/{agent}", (*Page).agent},
	{Root + "agents/{agent}/record", (*Page).record},
	{Root + "agents/{agent}/plots", (*Page).agentPlots},
	{Root + "agents/{agent}/changes", (*Page).changed},
}

func (p *Page) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, s := range sheets {
		mux.HandleFunc("GET "+s.path, p.show)
	}
	mux.HandleFunc("GET "+Root+"live", p.follow)
	mux.HandleFunc("POST "+Root+"act", p.act)
	mux.HandleFunc("POST "+Root+"leave", p.leave)
	mux.HandleFunc("GET "+Root+"enter/{link}", p.offer)
	mux.HandleFunc("POST "+Root+"enter", p.enter)
	for _, name := range []string{"style.css", "live.js", "keys.js", "icon.svg"} {
		mux.HandleFunc("GET "+Root+name, p.asset(name))
	}
	mux.HandleFunc("GET "+strings.TrimSuffix(Root, "/"), func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, Root, http.StatusSeeOther)
	})
	mux.HandleFunc(Root, func(w http.ResponseWriter, r *http.Request) {
		if _, no := p.opt.Guard.Looks(r); no != nil {
			p.refuse(w, r, no)
			return
		}
		p.plainly(w, http.StatusNotFound, "There is no such page", "What it showed may have another name now, or be gone.")
	})
	return mux
}

// drawWithin is how long a page may take to be drawn.
const drawWithin = 20 * time.Second

// show draws a page whole.
func (p *Page) show(w http.ResponseWriter, r *http.Request) {
	who, no := p.opt.Guard.Looks(r)
	if no != nil {
		p.refuse(w, r, no)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), drawWithin)
	defer cancel()
	at := url.URL{Path: r.URL.Path, RawQuery: without(r.URL.Query(), "done").Encode()}
	shown, err := p.looks(ctx, view{at.String(), who.Acts()})
	switch {
	case errors.Is(err, ErrNotFound):
		p.plainly(w, http.StatusNotFound, "There is no such page", "")
		return
	case err != nil:
		p.opt.Log.Warn("a page cannot be shown", "path", r.URL.Path, "err", err)
		p.plainly(w, http.StatusServiceUnavailable, "This cannot be shown now", err.Error())
		return
	}
	p.layout(w, http.StatusOK, frame{
		Sheet: shown, Who: who, Key: once.Key(p.opt.Now()), At: at.String(), Said: p.said(r.Context(), who, r.URL.Query().Get("done")),
		squeeze: squeezes(r),
	})
}

func without(q url.Values, name string) url.Values {
	q.Del(name)
	return q
}

// view is an address of ours, as people see it who may act, or who may not.
type view struct {
	at   string
	acts bool
}

// found is where the mux of sheets leaves what it has found.
type found struct {
	sheet *sheet
	r     *http.Request
}

type foundKey struct{}

// sheetsByPath finds sheets and what their paths name.
func sheetsByPath() *http.ServeMux {
	mux := http.NewServeMux()
	for _, s := range sheets {
		mux.HandleFunc("GET "+s.path, func(_ http.ResponseWriter, r *http.Request) {
			f := r.Context().Value(foundKey{}).(*found) //nolint:forcetypeassert // put there by look
			f.sheet, f.r = &s, r
		})
	}
	return mux
}

// look draws what an address of ours shows.
func (p *Page) look(ctx context.Context, v view) (Sheet, error) {
	var f found
	r, err := http.NewRequestWithContext(context.WithValue(ctx, foundKey{}, &f), http.MethodGet, v.at, http.NoBody)
	if err != nil || !strings.HasPrefix(v.at, Root) || path.Clean(r.URL.Path)+"/" != strings.TrimSuffix(r.URL.Path, "/")+"/" {
		return Sheet{}, ErrNotFound
	}
	p.sheets.ServeHTTP(nowhere{}, r)
	if f.sheet == nil {
		return Sheet{}, ErrNotFound
	}
	return f.sheet.show(p, ctx, ask{r: f.r, Acts: v.acts, Now: p.opt.Now()})
}

// looks is look with what all pages show: how much needs a person.
func (p *Page) looks(ctx context.Context, v view) (Sheet, error) {
	s, err := p.look(ctx, v)
	if err == nil {
		if s.Crumb != "" { // the fleet's page has counted them
			s.Needs = p.needs(ctx)
		}
		if waiting, err := p.opt.Approvals.Waiting(); err == nil { // the page of approvals says what cannot be read
			s.Asks = len(waiting)
		}
	}
	return s, err
}

// needs is how many troubles the fleet's page shows.
func (p *Page) needs(ctx context.Context) int {
	n, _ := p.needed.get(ctx, "", func() (int, error) {
		f, err := p.fleets.get(ctx, "", func() (Fleet, error) { return p.opt.Read.Fleet(ctx) })
		return len(p.problems(f)), err
	})
	return n
}

// tryLook is looks where no net/http catches what panics: a mistake in how a page is
// drawn must not end the run.
func (p *Page) tryLook(ctx context.Context, v view) (s Sheet, err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("cannot draw %s: %v", v.at, what)
			p.opt.Log.Error("a page cannot be drawn", "path", v.at, "err", what, "stack", string(debug.Stack()))
		}
	}()
	return p.looks(ctx, v)
}

// nowhere is where the mux of sheets says that it has found none.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}

// frame is what surrounds a sheet.
type frame struct {
	Sheet
	Fleet string
	Who   access.Who
	// Key is the form's, At the address that it leads back to; "" where there is no form.
	Key, At string
	// Said is what became of the last act, or nil.
	Said *said
	// Version is the version of the assets.
	Version string
	// squeeze is true if the page may be compressed.
	squeeze bool
}

// Window is the title of the window: with how much needs a person.
func (f frame) Window() string {
	around := "heartbeat"
	if f.Who.Role != "" {
		around = f.Fleet
	}
	return f.window(around)
}

// Lists are the pages that each page leads to.
func (f frame) Lists() []tab {
	return []tab{{"Approvals", Root + "approvals", f.Crumb == "Approvals"}, {"Plots", Root + "plots", f.Crumb == "Plots"}}
}

// Listed reports whether this is one of them.
func (f frame) Listed() bool {
	return slices.ContainsFunc(f.Lists(), func(t tab) bool { return t.Here })
}

func (p *Page) layout(w http.ResponseWriter, code int, f frame) {
	f.Fleet, f.Version = p.opt.Fleet, versionOfAssets()
	text, err := p.draw("layout", f)
	if err != nil {
		p.opt.Log.Error("a page cannot be drawn", "err", err)
		http.Error(w, "this cannot be drawn", http.StatusInternalServerError)
		return
	}
	body := fillAges([]byte(text), p.opt.Now())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	send(w, code, body, f.squeeze)
}

// plainly shows a page that has only a text.
func (p *Page) plainly(w http.ResponseWriter, code int, title, text string) {
	html, err := p.draw("words", struct {
		Text string
		Back bool
	}{text, code != http.StatusUnauthorized && code != http.StatusOK})
	if err != nil {
		http.Error(w, title, code)
		return
	}
	p.layout(w, code, frame{Sheet: Sheet{Title: title, Crumb: title, Parts: []Part{{ID: "words", HTML: html}}}})
}

// refuse says why a request is not served.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request, no *access.Refusal) {
	if no.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(no.After.Seconds())+1))
	}
	p.opt.Log.Debug("the page refused a request", "path", r.Pattern, "why", string(no.Reason)) // a path may have a link's secret in it
	if no.Reason == access.NoToken && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		// The browser keeps the cookie to itself where a link of another page leads here.
		w.Header().Set("Refresh", "0")
	}
	title := titles[no.Code]
	if no.Reason == access.BadLink {
		title = titles[http.StatusUnauthorized]
	}
	p.plainly(w, no.Code, title, no.Text)
}

var titles = map[int]string{
	http.StatusUnauthorized:       "Not signed in",
	http.StatusForbidden:          "Not done",
	http.StatusBadRequest:         "Not done",
	http.StatusConflict:           "Not done",
	http.StatusMisdirectedRequest: "Another name",
	http.StatusTooManyRequests:    "Too many tries",
}

// asset serves a file that never changes under its address.
func (p *Page) asset(name string) http.HandlerFunc {
	body := assetOf(name)
	small := sync.OnceValue(func() []byte { return squeezed(body) })
	kind := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}[path.Ext(name)]
	return func(w http.ResponseWriter, r *http.Request) {
		if no := p.opt.Guard.Named(r); no != nil {
			p.refuse(w, r, no)
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		w.Header().Set("Content-Type", kind)
		sendAs(w, http.StatusOK, body, squeezes(r), small)
	}
}
