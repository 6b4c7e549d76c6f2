package page

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// follower is a browser that follows a page.
type follower struct {
	t   *testing.T
	res *http.Response
	in  *bufio.Reader
}

func (l *lab) follow(ctx context.Context, b browser, query string) *follower {
	l.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.port+Root+"live?"+query, http.NoBody)
	l.must(err)
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	l.must(err)
	l.t.Cleanup(func() { _ = res.Body.Close() })
	return &follower{l.t, res, bufio.NewReader(res.Body)}
}

// next returns the next message about parts; false: there is none any more.
func (f *follower) next() (m message, ok bool) {
	f.t.Helper()
	for {
		line, err := f.in.ReadString('\n')
		if err != nil {
			return m, false
		}
		if data, is := strings.CutPrefix(line, "data: "); is {
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				f.t.Error(err)
			}
			if m.Pieces == nil && m.Order == nil && !m.Gone && !m.Over {
				m = message{}
				continue
			}
			return m, true
		}
	}
}

func ids(all []piece) (ids []string) {
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return ids
}

// TestOnlyWhatChangesIsSent: to who shows the rest already; then nothing but the agent
// that changes and what its group counts, and the order when there is another one.
func TestOnlyWhatChangesIsSent(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	acts := l.enter(access.Act)
	all := l.follow(ctx, acts, "at="+Root)
	whole, ok := all.next()
	if !ok || len(whole.Pieces) < 5 || len(whole.Order) != len(whole.Pieces) || all.res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%+v", whole)
	}
	var has strings.Builder
	for _, p := range whole.Pieces {
		has.WriteString(p.Hash)
	}
	some := l.follow(ctx, acts, "at="+Root+"&has="+has.String())
	l.mu.Lock()
	agents := append([]status.Agent{}, l.fleet.Agents...)
	agents[0].State, agents[0].Reason = status.Parked, "<b>the account's limit</b>\x1b[31m"
	l.fleet.Agents = agents
	l.mu.Unlock()
	stale := l.follow(ctx, acts, "at="+Root+"&has="+strings.Repeat("0", has.Len()))
	if m, ok := stale.next(); !ok || len(m.Order) != len(whole.Order) {
		t.Errorf("who shows other parts is told of the order: %+v", m)
	}
	for _, f := range []*follower{all, some} {
		m, ok := f.next()
		if got := ids(m.Pieces); !ok || !slices.Equal(got, []string{"group-", "agent-a"}) || f == all && m.Order != nil || !strings.Contains(m.Pieces[1].HTML, "&lt;b&gt;the account&#39;s limit&lt;/b&gt;\ufffd[31m") {
			t.Errorf("%v %+v", got, m)
		}
	}
	l.mu.Lock()
	l.fleet.Agents = append(l.fleet.Agents[:2:2], status.Agent{AgentState: status.AgentState{Agent: "c", State: status.Idle}})
	l.mu.Unlock()
	m, _ := some.next()
	if got := ids(m.Pieces); len(m.Order) != len(whole.Order)+1 || !strings.Contains(strings.Join(got, " "), "agent-c") {
		t.Errorf("%v, in the order %v", got, m.Order)
	}
	cancel()
}

// TestAPageOfNothing is followed by nobody, nor by who may not look.
func TestAPageOfNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	looks := l.enter(access.Look)
	for at, code := range map[string]int{"/page/nothing": 404, "/etc/passwd": 404, "http://evil.example/page/": 404, "/page/../page/": 404, "": 404, "/page/act": 404, "/page/live": 404} {
		if res, _ := l.ask(looks, http.MethodGet, Root+"live?at="+url.QueryEscape(at), nil); res.StatusCode != code {
			t.Errorf("%q: %d, want %d", at, res.StatusCode, code)
		}
	}
	if res, _ := l.ask(browser{}, http.MethodGet, Root+"live?at="+Root, nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("no token: %d", res.StatusCode)
	}
	l.page.live.mu.Lock()
	l.page.live.all = mostFollowers
	l.page.live.mu.Unlock()
	if res, _ := l.ask(looks, http.MethodGet, Root+"live?at=nothing", nil); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("where there is no room, it was drawn first: %d", res.StatusCode)
	}
}

// TestAPageIsDrawnOnceASecondForAll, and for nobody not at all; there is a bound of who
// follows.
func TestAPageIsDrawnOnceASecondForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		drawn := 0
		l := newLive(func(context.Context, view) (Sheet, error) {
			drawn++
			if drawn == 3 {
				return Sheet{}, errors.New("the disk is away")
			}
			return Sheet{Title: "x"}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { l.run(ctx); close(ended) }()
		synctest.Wait()
		var leave []func()
		for i, n := range []int{200, 100, 50, 25} { // of each who comes
			who := fmt.Sprint(i)
			for range n {
				news, _, out := l.joins(view{Root, true}, who, who+" address")
				if news == nil {
					t.Fatal("there is room")
				}
				leave = append(leave, out)
			}
			if news, _, _ := l.joins(view{Root, true}, who, "elsewhere"); news != nil {
				t.Error("one token follows more than its share")
			}
			if news, _, _ := l.joins(view{Root, true}, "another", who+" address"); news != nil {
				t.Error("one address follows more than its share")
			}
		}
		time.Sleep(5*liveEvery + liveEvery/2)
		synctest.Wait()
		if drawn != 6 {
			t.Errorf("drawn %d times in 5.5 s", drawn)
		}
		for _, out := range leave {
			out()
		}
		time.Sleep(5 * liveEvery)
		synctest.Wait()
		if drawn > 7 || len(l.watched) > 0 || len(l.of) > 0 || l.all != 0 {
			t.Errorf("drawn %d times, %d are watched", drawn, len(l.watched))
		}
		cancel()
		<-ended
		if news, _, _ := l.joins(view{Root, true}, "t"); news != nil {
			t.Error("a page is followed after the end")
		}
	})
}

// hostile is what others may write where they can.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)> javascript:alert(1) &quot; ' \x1b]0;x\a<svg onload=x> </section><a href="//evil.example">` + "\x1b[31m\u202e</time><time class=\"age\" datetime=\"2026-01-01T00:00:00Z\"></time>"

// TestWhatOthersWriteIsText: whatever field of an agent it is in.
func TestWhatOthersWriteIsText(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	now := time.Now()
	agent := status.Agent{
		AgentState: status.AgentState{
			Agent: "a", State: status.Held, Since: now, Reason: hostile, Fix: hostile, Lost: hostile, PausedBy: hostile, Phase: "turn",
			Tool: &session.Tool{Name: hostile, Since: now.Add(-time.Minute)}, Said: &status.Said{At: now, Text: hostile},
			Client: &status.Drift{Client: hostile, Breaks: hostile, Fix: hostile},
		},
		InFlight: &inbox.InFlight{Source: hostile, DeliveredAt: now}, Problem: hostile, Dead: 1,
	}
	l.fleet.Agents = []status.Agent{agent}
	l.fleet.Summary = hostile
	l.fleet.Troubles = append(agent.Troubles(hostile, now), status.Trouble{Agent: hostile, What: status.IsHeld, Text: hostile, Do: hostile, Then: hostile})
	l.fleet.Group = map[string]string{"a": hostile}
	l.fleet.Budgets = []Budget{{Of: hostile, What: hostile, Spent: 1, Most: 2}}
	l.fleet.Limits = []Limit{{Account: hostile, Window: hostile, Used: 10, Resets: now.Add(time.Hour)}}
	for _, b := range []browser{l.enter(access.Act), {socket: true}} {
		_, body := l.ask(b, http.MethodGet, Root, nil)
		if !strings.Contains(body, "&lt;script&gt;") {
			t.Fatalf("it is not shown: %s", body)
		}
		for _, bad := range []string{"<script>", "<img", "<svg", `href="//`, "href=\"javascript", "onerror=alert(1)>", "\x1b", "\u202e", "style=", " onclick"} {
			if strings.Contains(body, bad) {
				at := strings.Index(body, bad)
				t.Errorf("%q: %s", bad, body[max(0, at-100):min(len(body), at+100)])
			}
		}
	}
}

// TestBehindTLS: a proxy with TLS, as people put one before the page.
func TestBehindTLS(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	behind := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: l.port})
		r.Out.Host = r.In.Host
		r.SetXForwarded()
	}}
	proxy := httptest.NewTLSServer(behind)
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	l.must(err)
	l.guard.Use(access.Rules{Address: at, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	jar := map[string]*http.Cookie{}
	c := proxy.Client()
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Timeout = time.Minute
	do := func(method, path string, form url.Values) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, proxy.URL+path, strings.NewReader(form.Encode()))
		l.must(err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", proxy.URL)
		for _, k := range jar {
			r.AddCookie(k)
		}
		res, err := c.Do(r)
		l.must(err)
		t.Cleanup(func() { _ = res.Body.Close() })
		for _, k := range res.Cookies() {
			jar[k.Name] = k
		}
		return res
	}
	link, _, err := l.keeper.Link(l.t.Context(), "phone", access.Act)
	l.must(err)
	if res := do(http.MethodPost, Root+"enter", url.Values{"link": {link}}); res.StatusCode != http.StatusSeeOther || len(jar) != 1 || !res.Cookies()[0].Secure {
		t.Fatalf("%d %v", res.StatusCode, jar)
	}
	res := do(http.MethodGet, Root+"live?at="+Root, nil)
	f := follower{t, res, bufio.NewReader(res.Body)}
	if m, ok := f.next(); !ok || len(m.Pieces) == 0 {
		t.Errorf("nothing comes through: %d %+v", res.StatusCode, m)
	}
	_ = res.Body.Close() // else the proxy waits for it
	if tcp, ok := proxy.Listener.Addr().(*net.TCPAddr); !ok || tcp.Port == 0 {
		t.Fatal(proxy.Listener.Addr())
	}
}

// mistaken reads nothing.
type mistaken struct{ Read }

func (mistaken) Fleet(context.Context) (Fleet, error) { panic("a mistake of ours") }

// TestAPageThatCannotBeDrawn ends nothing: who follows it is told nothing new.
func TestAPageThatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.page.opt.Read = mistaken{l}
	if s, err := l.page.live.draw(t.Context(), view{at: Root}); err == nil || len(s.Parts) > 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestWhoMayNotLookAnyMoreIsToldNothingMore: however it comes, a page that is open gets
// nothing that happens afterwards, and is told so once; it is no try of a wrong token.
func TestWhoMayNotLookAnyMoreIsToldNothingMore(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(l *lab, b browser){
		"its token is revoked": func(l *lab, _ browser) {
			_, err := l.keeper.Revoke(l.t.Context(), true)
			l.must(err)
		},
		"by its name": func(l *lab, _ browser) {
			_, err := l.keeper.Revoke(l.t.Context(), false, "phone")
			l.must(err)
		},
		"its token is over": func(l *lab, _ browser) { l.ahead.Store(int64(access.TokenLasts)) },
		"its browser got another token": func(l *lab, b browser) {
			link, _, err := l.keeper.Link(l.t.Context(), "other", access.Act)
			l.must(err)
			if res, body := l.ask(b, http.MethodPost, Root+"enter", url.Values{"link": {link}}); res.StatusCode != http.StatusSeeOther {
				l.t.Errorf("%d %s", res.StatusCode, body)
			}
		},
		"it leaves": func(l *lab, b browser) { l.ask(b, http.MethodPost, Root+"leave", l.form(b)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			b := l.enter(access.Look)
			f := l.follow(t.Context(), b, "at="+Root)
			if m, ok := f.next(); !ok || len(m.Pieces) == 0 {
				t.Fatalf("%+v", m)
			}
			ends(l, b)
			l.mu.Lock()
			l.fleet.Summary = "a secret that came later"
			l.mu.Unlock()
			if m, ok := f.next(); !ok || !m.Over || len(m.Pieces) > 0 {
				t.Errorf("it is told %+v", m)
			}
			if m, ok := f.next(); ok {
				t.Errorf("and then %+v", m)
			}
			if res, _ := l.ask(b, http.MethodGet, Root+"live", nil); res.StatusCode != http.StatusUnauthorized {
				t.Errorf("who asks again gets %d", res.StatusCode)
			}
		})
	}
}

// TestALinkSaysAtOnceWhatItIs: what it lets a browser do, or that it lets it do nothing;
// the same of one that was used, is over, or never was.
func TestALinkSaysAtOnceWhatItIs(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for role, acts := range map[access.Role]bool{access.Look: false, access.Act: true} {
		link, _, err := l.keeper.Link(l.t.Context(), "x", role)
		l.must(err)
		res, body := l.ask(browser{}, http.MethodGet, Root+"enter/"+link, nil)
		if res.StatusCode != http.StatusOK || !strings.Contains(body, "see a fleet") || strings.Contains(body, ", and control it: ") != acts {
			t.Errorf("%s: %d %s", role, res.StatusCode, body)
		}
	}
	used, _, err := l.keeper.Link(l.t.Context(), "used", access.Act)
	l.must(err)
	l.ask(browser{}, http.MethodPost, Root+"enter", url.Values{"link": {used}})
	late, _, err := l.keeper.Link(l.t.Context(), "late", access.Act)
	l.must(err)
	l.ahead.Store(int64(access.LinkLasts))
	bodies := map[string]bool{}
	for _, link := range []string{used, late, "nothing"} {
		res, body := l.ask(browser{}, http.MethodGet, Root+"enter/"+link, nil)
		if bodies[body] = true; res.StatusCode != http.StatusForbidden || !strings.Contains(body, "This link was used already") || len(bodies) > 1 {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	}
	for range 10 {
		l.ask(browser{}, http.MethodGet, Root+"enter/nothing", nil)
	}
	if res, _ := l.ask(browser{}, http.MethodGet, Root+"enter/nothing", nil); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("who guesses links is answered %d", res.StatusCode)
	}
}
