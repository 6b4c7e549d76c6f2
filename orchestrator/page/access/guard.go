package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"heartbeat/ptyrun/peer"
)

// Rules are what the fleet's file says about the page.
type Rules struct {
	// Address is where people find the page, or nil: by numbers or localhost alone.
	Address *url.URL
	// Proxies are the addresses whose X-Forwarded headers are believed.
	Proxies []netip.Prefix
	// Open are the paths of the sockets over which people of this user may look without
	// a token.
	Open []string
}

// Guard decides who may look and who may act.
type Guard struct {
	tokens *Keeper
	// person returns an error for a process that is not a person's.
	person func(pid int) error
	log    *slog.Logger
	now    func() time.Time
	cookie string
	rules  atomic.Pointer[Rules]
	tries  tries
}

// Options are what a guard needs.
type Options struct {
	Tokens *Keeper
	// Person returns an error for a process that belongs to an agent's session.
	Person func(pid int) error
	// Fleet tells fleets apart that one machine serves at several ports: browsers keep
	// cookies by name alone.
	Fleet string
	Log   *slog.Logger
	Now   func() time.Time
}

// NewGuard returns a guard that knows no proxy and no name.
func NewGuard(o Options) *Guard {
	if o.Now == nil {
		o.Now = time.Now
	}
	sum := sha256.Sum256([]byte(o.Fleet))
	g := &Guard{tokens: o.Tokens, person: o.Person, log: o.Log, now: o.Now, cookie: "heartbeat-" + hex.EncodeToString(sum[:4])}
	g.Use(Rules{})
	return g
}

// Use has other rules hold from now on.
func (g *Guard) Use(r Rules) { g.rules.Store(&r) }

// Looks decides whether a request may look, and who it is.
func (g *Guard) Looks(r *http.Request) (Who, *Refusal) {
	c, no := g.comes(r)
	if no != nil {
		return Who{}, no
	}
	return g.looks(r, c)
}

func (g *Guard) looks(r *http.Request, c coming) (Who, *Refusal) {
	cookie, err := r.Cookie(g.cookieName(c.secure))
	if err != nil || cookie.Value == "" {
		if !c.own {
			return Who{}, refuse(NoToken)
		}
		if no := g.aPerson(r); no != nil {
			return Who{}, no
		}
		return Who{Role: Look, From: c.whose()}, nil
	}
	token, good := g.tokens.Find(r.Context(), cookie.Value)
	if !good {
		return Who{}, g.wrong(r, c, WrongToken)
	}
	return Who{Token: token.ID, Name: token.Name, Role: token.Role, From: c.whose(), CSRF: csrfOf(cookie.Value)}, nil
}

// Knows reports whether a request may look. It is no try, so that it may be asked before.
func (g *Guard) Knows(r *http.Request) bool {
	c, no := g.comes(r)
	if no != nil {
		return false
	}
	cookie, err := r.Cookie(g.cookieName(c.secure))
	if err != nil || cookie.Value == "" {
		return c.own && g.aPerson(r) == nil
	}
	_, good := g.tokens.Find(r.Context(), cookie.Value)
	return good
}

// Still decides whether who was let in by this request may look on, as before. It is
// cheap, and no try: their token was good.
func (g *Guard) Still(r *http.Request, who Who) *Refusal {
	c, no := g.comes(r)
	if no != nil || who.Token == "" {
		if no == nil && !c.own {
			no = refuse(NoToken)
		}
		return no
	}
	cookie, err := r.Cookie(g.cookieName(c.secure))
	if err != nil {
		return refuse(NoToken)
	}
	if token, good := g.tokens.Find(r.Context(), cookie.Value); !good || token.ID != who.Token || token.Role != who.Role {
		return refuse(WrongToken)
	}
	return nil
}

// wrong counts a wrong token or link. What a process of a session sends does not count: it
// shares its address with people, whom it could lock out.
func (g *Guard) wrong(r *http.Request, c coming, why Reason) *Refusal {
	if many, after := g.tries.exhausted(c.from, g.now()); many {
		return g.tooMany(after)
	}
	if no := g.aPerson(r); no != nil && no.Reason != OtherUser {
		return no
	}
	return g.wrongOf(c, why)
}

// wrongOf counts what was wrong as a try of its address, and is the refusal for it. Only what
// is wrong is refused for the tries before: what is right is looked for first, so that nobody
// at the same address, or behind the same proxy, locks out who has it.
func (g *Guard) wrongOf(c coming, why Reason) *Refusal {
	if many, after := g.tries.exhausted(c.from, g.now()); many {
		return g.tooMany(after)
	}
	g.tries.wrong(c.from, g.now())
	return refuse(why)
}

// mostForm is the largest form: a prompt is at most 1 MiB, and a form may take three
// bytes for each of its own. mostEntry is that of who has no token yet: anybody.
const mostForm, mostEntry = 4 << 20, 4 << 10

// Acts decides whether a request, a form of ours, may act. Its form is read.
func (g *Guard) Acts(w http.ResponseWriter, r *http.Request) (Who, *Refusal) {
	who, no := g.signs(w, r)
	if no == nil && !who.Acts() {
		no = refuse(OnlyLooks)
	}
	if no == nil {
		no = g.aPerson(r)
	}
	if no != nil {
		return Who{}, no
	}
	return who, nil
}

// Leaves decides whether a request may end its own token.
func (g *Guard) Leaves(w http.ResponseWriter, r *http.Request) (Who, *Refusal) {
	return g.signs(w, r)
}

// signs decides whether a form was sent by who it says.
func (g *Guard) signs(w http.ResponseWriter, r *http.Request) (Who, *Refusal) {
	c, no := g.comes(r)
	if no != nil {
		return Who{}, no
	}
	who, no := g.looks(r, c)
	if no != nil {
		return Who{}, no
	}
	if who.Token == "" {
		return Who{}, refuse(NoToken)
	}
	if no := g.form(w, r, c.secure, mostForm); no != nil {
		return Who{}, no
	}
	given := sha256.Sum256([]byte(unmasked(r.PostForm.Get("csrf"))))
	want := sha256.Sum256([]byte(who.CSRF))
	if subtle.ConstantTimeCompare(given[:], want[:]) != 1 {
		return Who{}, refuse(StaleForm)
	}
	return who, nil
}

// form reads a form of at most so many bytes, if it is one that a page of ours may have
// sent.
func (g *Guard) form(w http.ResponseWriter, r *http.Request, secure bool, most int64) *Refusal {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if r.Method != http.MethodPost || strings.TrimSpace(kind) != "application/x-www-form-urlencoded" {
		return refuse(NoForm)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" || !sameOrigin(r, secure) {
		return refuse(OtherOrigin)
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return refuse(TooLong)
		}
		return refuse(NoForm)
	}
	return nil
}

// sameOrigin reports whether a form was sent by a page of the address that it is sent
// to: all browsers say so with what is not a GET.
func sameOrigin(r *http.Request, secure bool) bool {
	from, err := url.Parse(r.Header.Get("Origin"))
	if err != nil || from.Host == "" {
		return false
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return from.Scheme == scheme && strings.EqualFold(from.Host, withoutPort(r.Host, scheme))
}

// withoutPort is a host without the port that an address of its scheme leaves out.
func withoutPort(host, scheme string) string {
	return strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[scheme])
}

// aPerson refuses what processes of agents' sessions send: they have a shell. It refuses what
// other users of this machine send over TCP, too, unless they are a proxy that the fleet's
// file names: a browser's cookie may have gone to a port of theirs.
func (g *Guard) aPerson(r *http.Request) *Refusal {
	conn := peer.From(r.Context())
	if conn == nil {
		return refuse(NoConnection)
	}
	err := peer.Person(r.Context(), g.person)
	if errors.Is(err, peer.ErrStranger) {
		if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok && g.Trusts(tcp.AddrPort().Addr()) {
			return nil
		}
		g.log.Warn("the page refused another user of this machine", "err", err)
		return refuse(OtherUser)
	}
	if err != nil {
		g.log.Warn("the page refused to act", "err", err)
		no := refuse(NotAPerson)
		no.unseen = errors.Is(err, peer.ErrUnseen)
		no.Text = "Nothing was done: " + err.Error() + "."
		return no
	}
	return nil
}

// csrfOf is what the forms of a token carry: only who has the token knows it.
func csrfOf(secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("a form of the page"))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

func (g *Guard) tooMany(after time.Duration) *Refusal {
	no := refuse(TooManyTries)
	no.After = max(after, time.Second)
	return no
}
