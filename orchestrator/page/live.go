package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of live pages: how often a page is drawn again, which share of the time that may take,
// how many browsers may follow at once.
const (
	liveEvery     = time.Second
	liveShare     = 5
	mostFollowers = 400
	// aliveEvery is how often a browser is told that the connection still works.
	aliveEvery = 10 * time.Second
	// sendWithin is how long a browser may take to receive a message.
	sendWithin = 10 * time.Second
)

// live draws each page once for all browsers that follow it.
type live struct {
	draw  func(context.Context, view) (Sheet, error)
	fleet string // its name

	mu      sync.Mutex
	ctx     context.Context // of run; nil before
	watched map[view]*watched
	all     int
	of      map[string]int // followers by token, or by address without one
	out     sync.WaitGroup
}

func newLive(draw func(context.Context, view) (Sheet, error)) *live {
	return &live{draw: draw, watched: map[view]*watched{}, of: map[string]int{}}
}

func (l *live) run(ctx context.Context) {
	l.mu.Lock()
	l.ctx = ctx
	l.mu.Unlock()
	<-ctx.Done()
	l.out.Wait()
}

// watched is a page that browsers follow.
type watched struct {
	followers map[chan struct{}]bool
	stop      context.CancelFunc

	mu    sync.Mutex
	drawn *drawing // nil: not yet
}

// drawing is a page in pieces.
type drawing struct {
	title  string
	asks   int
	pieces []piece
	gone   bool // there is no such page any more
}

// window returns what the title of the window shows.
func (d *drawing) window() string { return fmt.Sprint(d.asks, " ", d.title) }

// piece is a part as a browser gets it.
type piece struct {
	ID    string `json:"id"`
	Into  string `json:"into"` // the element that it is in
	Tag   string `json:"tag"`
	Class string `json:"class,omitempty"`
	Label string `json:"label,omitempty"`
	Hash  string `json:"hash"`
	HTML  string `json:"html"`
	Below string `json:"below,omitempty"` // the element for its kids, empty
	Open  bool   `json:"open,omitempty"`
	still bool
}

// inPieces returns parts and their kids, those above first.
func inPieces(parts []Part, into string) (all []piece) {
	for _, t := range parts {
		all = append(all, piece{t.ID, into, t.tag(), t.Class, t.Label, t.Hash(), string(t.HTML), string(t.Below() + t.BelowEnd()), t.Open, t.Still})
		all = append(all, inPieces(t.Kids, t.ID+"-kids")...)
	}
	return all
}

// message is what a browser is told: the pieces that have changed, and, where that has
// changed, all of them in their order.
type message struct {
	Title  string   `json:"title"`
	Asks   int      `json:"asks"`
	Pieces []piece  `json:"pieces"`
	Order  []string `json:"order,omitempty"`
	Into   []string `json:"into,omitempty"`
	Gone   bool     `json:"gone,omitempty"`
	// Over is true when who looks may not look any more.
	Over bool `json:"over,omitempty"`
}

// joins adds a browser to those that follow a page; nil: there are too many. shares are its token
// and its address, by which followers are counted. No token and no address may have more places
// than are free, so that later ones find some.
func (l *live) joins(v view, shares ...string) (news chan struct{}, w *watched, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := mostFollowers - l.all
	if l.ctx == nil || l.ctx.Err() != nil || slices.ContainsFunc(shares, func(s string) bool { return l.of[s] >= free }) {
		return nil, nil, nil
	}
	l.all++
	for _, s := range shares {
		l.of[s]++
	}
	w = l.watched[v]
	if w == nil {
		ctx, stop := context.WithCancel(l.ctx)
		w = &watched{followers: map[chan struct{}]bool{}, stop: stop}
		l.watched[v] = w
		l.out.Go(func() { l.keep(ctx, v, w) })
	}
	news = make(chan struct{}, 1)
	news <- struct{}{}
	w.followers[news] = true
	return news, w, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all--
		for _, s := range shares {
			if l.of[s]--; l.of[s] == 0 {
				delete(l.of, s)
			}
		}
		if delete(w.followers, news); len(w.followers) == 0 {
			w.stop()
			delete(l.watched, v)
		}
	}
}

// keep draws a page again and again while somebody follows it.
func (l *live) keep(ctx context.Context, v view, w *watched) {
	for {
		began := time.Now()
		if l.look(ctx, v, w) {
			l.mu.Lock()
			for news := range w.followers {
				select {
				case news <- struct{}{}:
				default:
				}
			}
			l.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(liveEvery, liveShare*time.Since(began))):
		}
	}
}

// look draws a page and reports whether it has changed. After an error the page stays as it
// was.
func (l *live) look(ctx context.Context, v view, w *watched) (changed bool) {
	ctx, cancel := context.WithTimeout(ctx, drawWithin)
	defer cancel()
	s, err := l.draw(ctx, v)
	next := &drawing{title: s.window(l.fleet), asks: s.Asks, pieces: inPieces(s.Parts, "parts")}
	switch {
	case err == nil:
	case errors.Is(err, ErrNotFound):
		next.gone = true
	default:
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	same := w.drawn != nil && w.drawn.title == next.title && w.drawn.asks == next.asks && w.drawn.gone == next.gone && slices.Equal(w.drawn.pieces, next.pieces)
	w.drawn = next
	return !same
}

// since returns what has changed since a browser was told, or nil. told is false if had is only
// what the browser claims to show: then it may show other parts, too, and is told their order
// with the changes.
func (d *drawing) since(had []string, told bool) (*message, []string) {
	if d.gone {
		return &message{Gone: true}, nil
	}
	has := make([]string, len(d.pieces))
	m := message{Title: d.title, Asks: d.asks}
	for i, p := range d.pieces {
		has[i] = p.ID + " " + p.Into + " " + p.Hash
	}
	if slices.Equal(has, had) {
		return nil, has
	}
	known := map[string]bool{}
	for _, one := range had {
		known[one] = true
	}
	for i, p := range d.pieces {
		if !known[has[i]] {
			m.Pieces = append(m.Pieces, p)
		}
	}
	if !told || !slices.EqualFunc(has, had, samePlace) {
		for _, p := range d.pieces {
			m.Order, m.Into = append(m.Order, p.ID), append(m.Into, p.Into)
		}
	}
	return &m, has
}

// samePlace reports whether two entries that since remembers are the same element with the same
// parent, whatever their hashes.
func samePlace(x, y string) bool {
	return x[:strings.LastIndexByte(x, ' ')] == y[:strings.LastIndexByte(y, ' ')]
}

// shows returns what a browser shows, given the hashes of the pieces that it claims to show, in
// their order. If their number differs, it shows another page.
func (d *drawing) shows(hashes string) (had []string) {
	const size = 6
	if len(hashes) != size*len(d.pieces) {
		return nil
	}
	for i, p := range d.pieces {
		had = append(had, p.ID+" "+p.Into+" "+hashes[i*size:(i+1)*size])
	}
	return had
}

// told is what a browser was told about a page. At first it is what the browser claims to show:
// the hashes of the pieces.
type told struct {
	says   string
	pieces []string
	window string
	begun  bool
}

// next returns what a browser has to be told now, or nil, and counts it as told.
func (t *told) next(d *drawing) *message {
	if !t.begun {
		t.pieces = d.shows(t.says)
	}
	m, has := d.since(t.pieces, t.begun)
	window := d.window()
	if m == nil && window != t.window {
		m = &message{Title: d.title, Asks: d.asks}
	}
	t.pieces, t.window, t.begun = has, window, true
	return m
}

// follow tells a browser what changes, by server-sent events.
func (p *Page) follow(w http.ResponseWriter, r *http.Request) {
	who, no := p.opt.Guard.Looks(r)
	if no != nil {
		p.refuse(w, r, no)
		return
	}
	v := view{r.URL.Query().Get("at"), who.Acts()}
	news, on, leave := p.live.joins(v, "token "+who.Token, "from "+who.From)
	if news == nil {
		w.Header().Set("Retry-After", "30")
		p.plainly(w, http.StatusServiceUnavailable, "Too many look already", "")
		return
	}
	defer leave()
	if _, err := p.look(r.Context(), v); err != nil {
		p.plainly(w, http.StatusNotFound, "There is no such page", "")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep it back
	s := stream{w: w, conn: http.NewResponseController(w)}
	_ = s.conn.SetReadDeadline(time.Time{})
	s.may = func() bool { return p.opt.Guard.Still(r, who) == nil }
	p.feed(r, news, on, s)
}

// feed sends what changes until the browser has gone, the run ends or the token does.
func (p *Page) feed(r *http.Request, news chan struct{}, on *watched, s stream) {
	alive, look := time.NewTicker(aliveEvery), time.NewTicker(liveEvery)
	defer alive.Stop()
	defer look.Stop()
	if s.send(": here\n\n") != nil {
		return
	}
	had := told{says: r.URL.Query().Get("has")}
	for {
		select {
		case <-r.Context().Done():
			return
		case <-p.live.ctx.Done():
			return
		case <-look.C: // also where nothing changes
			if !s.may() {
				s.over()
				return
			}
			continue
		case <-alive.C:
			if s.send(": here\n\n") != nil {
				return
			}
			continue
		case <-news:
		}
		on.mu.Lock()
		drawn := on.drawn
		on.mu.Unlock()
		if drawn == nil {
			continue // it is being drawn
		}
		m := had.next(drawn)
		if m == nil {
			continue
		}
		text, err := json.Marshal(m)
		if err != nil || s.send("data: "+string(text)+"\n\n") != nil || m.Gone {
			return
		}
	}
}

// stream is a browser that listens.
type stream struct {
	w    http.ResponseWriter
	conn *http.ResponseController
	// may reports whether it may be told more.
	may func() bool
}

var errOver = errors.New("who looks may not look any more")

// send sends a message if the browser may still see the page.
func (s stream) send(text string) error {
	if !s.may() {
		s.over()
		return errOver
	}
	return s.write(text)
}

// over tells a browser that it may no longer see the page.
func (s stream) over() { _ = s.write("data: {\"over\":true}\n\n") } // it may have gone

func (s stream) write(text string) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(sendWithin)); err != nil {
		return fmt.Errorf("cannot send what has changed: %w", err)
	}
	if _, err := strings.NewReader(text).WriteTo(s.w); err != nil {
		return err
	}
	return s.conn.Flush()
}
