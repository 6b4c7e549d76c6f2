package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/page/once"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/ptyrun/peer"
)

// lab is a page that is served at a port and at a socket.
type lab struct {
	t      *testing.T
	page   *Page
	store  *store.Store
	keeper *access.Keeper
	guard  *access.Guard
	dir    string
	port   string // HOST:PORT
	socket string
	ahead  atomic.Int64 // how far the tokens' clock is ahead

	mu     sync.Mutex
	fleet  Fleet
	did    []string // what was done
	noted  []journal.Event
	person error // what is said of who asks
	checks func(pid int) error
	fails  error
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir()}
	l.fleet = Fleet{Summary: "2 agents: 2 idle", Fleet: status.Fleet{Fleet: "office", Agents: []status.Agent{
		{AgentState: status.AgentState{Agent: "a", State: status.Idle}}, {AgentState: status.AgentState{Agent: "b", State: status.Held, Reason: "why"}},
	}}}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	l.store = storetest.New(t, l.dir)
	var err error
	l.keeper, err = access.Open(t.Context(), l.store, func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) })
	l.must(err)
	l.guard = access.NewGuard(access.Options{Tokens: l.keeper, Person: l.isPerson, Fleet: l.dir, Log: log})
	l.socket = filepath.Join(l.dir, "s")
	l.guard.Use(access.Rules{Open: []string{l.socket}})
	l.page = New(Options{Fleet: "office", Read: l, Act: l, Approvals: l, Guard: l.guard, Book: once.Open(l.store, nil), Note: l.note, Log: log})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { l.page.Run(ctx) })
	server := &http.Server{Handler: l.page, ConnContext: peer.With, ReadTimeout: 30 * time.Second}
	for _, at := range [][2]string{{"tcp", "127.0.0.1:0"}, {"unix", l.socket}} {
		listener, err := net.Listen(at[0], at[1])
		l.must(err)
		if at[0] == "tcp" {
			l.port = listener.Addr().String()
		}
		all.Go(func() { _ = server.Serve(listener) })
	}
	t.Cleanup(func() { cancel(); _ = server.Close(); all.Wait() })
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) isPerson(pid int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.checks != nil {
		return l.checks(pid)
	}
	return l.person
}

func (l *lab) note(e journal.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noted = append(l.noted, e)
}

func (l *lab) done(what ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.did = append(l.did, strings.Join(what, " "))
	return l.fails
}

func (l *lab) Fleet(context.Context) (Fleet, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fleet, nil
}

func (l *lab) Agent(context.Context, string) (status.Agent, []status.Trouble, error) {
	return status.Agent{}, nil, ErrNotFound
}
func (l *lab) Pause(d time.Duration, a string) error { return l.done("pause", d.String(), a) }
func (l *lab) Resume(a string) error                 { return l.done("resume", a) }
func (l *lab) Restart(_ bool, a string) error        { return l.done("restart", a) }
func (l *lab) Cancel(_ context.Context, e string, _ bool, a string) (string, error) {
	return "cancelled", l.done("cancel", a, e)
}

func (l *lab) Trigger(_ context.Context, a, t string) (string, error) {
	return "fired", l.done("trigger", a, t)
}

func (l *lab) Send(_ context.Context, a, p, id string) (string, error) {
	return a + ": queued", l.done("send", a, p, id)
}
func (l *lab) Drop(_ context.Context, a, id string) error  { return l.done("drop", a, id) }
func (l *lab) Retry(_ context.Context, a, id string) error { return l.done("retry", a, id) }
func (l *lab) RetryAll(_ context.Context, a string) (int, error) {
	return 2, l.done("retry-all", a)
}
func (l *lab) Purge(_ context.Context, a, id string) error { return l.done("purge", a, id) }
func (l *lab) Continue(_ context.Context, a, answer string) (string, error) {
	return "continues", l.done("answer", a, answer)
}

func (l *lab) Allow(_ context.Context, a, rule string) (string, error) {
	return "allowed", l.done("allow", a, rule)
}
func (l *lab) Reload() (string, error) { return "loaded", l.done("reload") }

// browser is who asks: with a cookie, by a way, with headers.
type browser struct {
	cookies []*http.Cookie
	socket  bool
	host    string
	headers []string
}

// ask makes a request and returns its answer and body.
func (l *lab) ask(b browser, method, at string, form url.Values) (*http.Response, string) {
	l.t.Helper()
	r, err := http.NewRequestWithContext(l.t.Context(), method, "http://"+l.port+at, strings.NewReader(form.Encode()))
	l.must(err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://"+l.port)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if b.host != "" {
		r.Host = b.host
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	for i := 0; i < len(b.headers); i += 2 {
		if r.Header.Set(b.headers[i], b.headers[i+1]); b.headers[i+1] == "" {
			r.Header.Del(b.headers[i])
		}
	}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if b.socket {
			network, addr = "unix", l.socket
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	c := http.Client{
		Timeout: 60 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := c.Do(r)
	l.must(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	l.must(err)
	return res, string(body)
}

// enter opens a link and returns the browser that has its token.
func (l *lab) enter(role access.Role) browser {
	l.t.Helper()
	link, _, err := l.keeper.Link(l.t.Context(), "phone", role)
	l.must(err)
	res, body := l.ask(browser{}, http.MethodGet, Root+"enter/"+link, nil)
	if res.StatusCode != http.StatusOK || !strings.Contains(body, link) {
		l.t.Fatalf("%d %s", res.StatusCode, body)
	}
	res, body = l.ask(browser{}, http.MethodPost, Root+"enter", url.Values{"link": {link}})
	if res.StatusCode != http.StatusSeeOther || len(res.Cookies()) != 1 {
		l.t.Fatalf("%d %s", res.StatusCode, body)
	}
	return browser{cookies: res.Cookies()}
}

var hidden = regexp.MustCompile(`name="(csrf|key|back)" value="([^"]*)"`)

// form returns what the forms of a browser's page carry.
func (l *lab) form(b browser) url.Values {
	l.t.Helper()
	_, body := l.ask(b, http.MethodGet, Root, nil)
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(body, -1) {
		form.Set(m[1], m[2])
	}
	return form
}

// value is a button's value for a deed.
func (d deed) value() string { return strings.TrimSpace(d.name + strings.Repeat(" a", d.words)) }

func with(form url.Values, pairs ...string) url.Values {
	all := url.Values{}
	maps.Copy(all, form)
	for i := 0; i < len(pairs); i += 2 {
		all.Set(pairs[i], pairs[i+1])
	}
	return all
}

// TestEachActAndEachRefusal: nothing is done but by a form of ours, from a page of
// ours, of a token that may act, by a person.
func TestEachActAndEachRefusal(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	acts, looks := l.enter(access.Act), l.enter(access.Look)
	form, other := l.form(acts), l.form(looks)
	key := form.Get("key")
	if form.Get("csrf") == "" || key == "" || other.Get("csrf") != "" && other.Get("csrf") == form.Get("csrf") {
		t.Fatal(form, other)
	}
	wrong := browser{cookies: []*http.Cookie{{Name: acts.cookies[0].Name, Value: "x"}}}
	headers := func(b browser, pairs ...string) browser { b.headers = append(b.headers, pairs...); return b }
	for name, c := range map[string]struct {
		who    browser
		form   []string
		method string
		code   int
		agent  bool
	}{
		"no token":                        {who: browser{}, code: 401},
		"no token, over a socket":         {who: browser{socket: true}, code: 401},
		"a wrong token":                   {who: wrong, code: 401},
		"who only looks":                  {who: looks, form: []string{"csrf", "LOOKS"}, code: 403},
		"no CSRF":                         {who: acts, form: []string{"csrf", ""}, code: 403},
		"another's CSRF":                  {who: acts, form: []string{"csrf", "LOOKS"}, code: 403},
		"another origin":                  {who: headers(acts, "Origin", "http://evil.example"), code: 403},
		"another port's origin":           {who: headers(acts, "Origin", "http://127.0.0.1:1"), code: 403},
		"no origin":                       {who: headers(acts, "Origin", ""), code: 403},
		"an origin that is hidden":        {who: headers(acts, "Origin", "null"), code: 403},
		"the same over TLS, unsaid":       {who: headers(acts, "Origin", "https://"+l.port), code: 403},
		"a page of another site":          {who: headers(acts, "Sec-Fetch-Site", "cross-site"), code: 403},
		"a page of a sibling":             {who: headers(acts, "Sec-Fetch-Site", "same-site"), code: 403},
		"another name":                    {who: browser{cookies: acts.cookies, host: "evil.example"}, code: 421},
		"JSON":                            {who: headers(acts, "Content-Type", "application/json"), code: 400},
		"plain text":                      {who: headers(acts, "Content-Type", "text/plain"), code: 400},
		"a session's process":             {who: acts, agent: true, code: 403},
		"a session's process, by socket":  {who: browser{cookies: acts.cookies, socket: true}, agent: true, code: 403},
		"no key":                          {who: acts, form: []string{"key", ""}, code: 409},
		"an old key":                      {who: acts, form: []string{"key", once.Key(time.Now().Add(-25 * time.Hour))}, code: 409},
		"no such deed":                    {who: acts, form: []string{"do", "explode a"}, code: 400},
		"a deed with a word too many":     {who: acts, form: []string{"do", "DEED a"}, code: 400},
		"a deed with a control character": {who: acts, form: []string{"do", "DEED\x1b"}, code: 400},
		"a GET":                           {who: acts, method: http.MethodGet, code: 404},
	} {
		for _, d := range deeds {
			sent := with(form, "do", d.value(), "text-a", "hello")
			for i := 0; i < len(c.form); i += 2 {
				value := strings.ReplaceAll(strings.ReplaceAll(c.form[i+1], "LOOKS", l.form(looks).Get("csrf")), "DEED", d.value())
				sent.Set(c.form[i], value)
			}
			l.mu.Lock()
			l.person = nil
			if c.agent {
				l.person = errors.New("a session of agent \"a\" asks")
			}
			l.mu.Unlock()
			method := http.MethodPost
			if c.method != "" {
				method = c.method
			}
			res, body := l.ask(c.who, method, Root+"act", sent)
			many := name == "a wrong token" && res.StatusCode == http.StatusTooManyRequests
			if res.StatusCode != c.code && !many {
				t.Errorf("%s, %s: %d, want %d: %s", d.name, name, res.StatusCode, c.code, body)
			}
		}
	}
	if len(l.did) > 0 || len(l.noted) > 0 {
		t.Errorf("done: %q, noted %v", l.did, l.noted)
	}
}

// TestAStrangersFormIsSmall: who has no token has the scheduler read no megabytes.
func TestAStrangersFormIsSmall(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if res, body := l.ask(browser{}, http.MethodPost, Root+"enter", url.Values{"link": {strings.Repeat("x", 8<<10)}}); res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%d: %s", res.StatusCode, body)
	}
}

// TestEachActIsDoneOnce: and the journal has it, with who has asked.
func TestEachActIsDoneOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	acts := l.enter(access.Act)
	form := l.form(acts)
	for _, d := range deeds {
		l.did, l.noted = nil, nil
		sent := with(form, "do", d.value(), "text-a", "hello\r\nthere")
		var back string
		for range 3 {
			res, body := l.ask(acts, http.MethodPost, Root+"act", sent)
			if d.moves { // its answer shows at once: there may be no next request
				if res.StatusCode != http.StatusOK || !strings.Contains(body, `class="said good"`) {
					t.Fatalf("%s: %d %s", d.name, res.StatusCode, body)
				}
				back = Root + "?done=" + form.Get("key")
				continue
			}
			if res.StatusCode != http.StatusSeeOther {
				t.Fatalf("%s: %d %s", d.name, res.StatusCode, body)
			}
			back = res.Header.Get("Location")
		}
		if len(l.did) != 1 || len(l.noted) != 1 || l.noted[0].Kind != journal.Acted || !strings.HasPrefix(l.noted[0].By.Raw(), "phone (") || l.noted[0].Detail.Raw() != d.value() {
			t.Errorf("%s: done %q, noted %+v", d.name, l.did, l.noted)
		}
		if _, body := l.ask(acts, http.MethodGet, back, nil); !strings.Contains(body, `class="said good"`) {
			t.Errorf("%s: nothing is said: %s", d.name, body)
		}
	}
	// Who comes back to an old form is told that nothing was done now.
	l.page.opt.Now = func() time.Time { return time.Now().Add(time.Minute) }
	res, _ := l.ask(acts, http.MethodPost, Root+"act", with(form, "do", "pause a"))
	if _, body := l.ask(acts, http.MethodGet, Root+"?done="+form.Get("key"), nil); res.StatusCode != http.StatusSeeOther || !strings.Contains(body, " (asked for at ") {
		t.Errorf("an old form: %d %s", res.StatusCode, body)
	}
	l.page.opt.Now = time.Now
	l.did = nil
	l.fails = errors.New("there is no agent <a>")
	res, _ = l.ask(acts, http.MethodPost, Root+"act", with(l.form(acts), "do", "resume a", "back", "//evil.example/"))
	back := res.Header.Get("Location")
	if _, body := l.ask(acts, http.MethodGet, back, nil); !strings.HasPrefix(back, Root+"?") || !strings.Contains(body, "there is no agent &lt;a&gt;") {
		t.Errorf("%s: %s", back, body)
	}
	if last := l.noted[len(l.noted)-1]; !strings.Contains(last.Reason.Raw(), "not done: there is no agent") {
		t.Errorf("noted %+v", last)
	}
	// The same form with another text is another prompt.
	l.fails = nil
	l.did = nil
	for _, text := range []string{"x", "y", "x"} {
		l.ask(acts, http.MethodPost, Root+"act", with(form, "do", "send a", "text-a", text))
	}
	if len(l.did) != 2 || !strings.HasPrefix(l.did[1], "send a y page-") {
		t.Errorf("%q", l.did)
	}
}

// TestWhoMayLook: with a token, or a person of this user over a socket that the file
// calls open.
func TestWhoMayLook(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	looks := l.enter(access.Look)
	for name, c := range map[string]struct {
		who  browser
		code int
	}{
		"a token":                    {looks, 200},
		"no token":                   {browser{}, 401},
		"a socket of this user":      {browser{socket: true}, 200},
		"the same, by another name":  {browser{socket: true, host: "evil.example"}, 421},
		"the same, through a proxy":  {browser{socket: true, headers: []string{"X-Forwarded-For", "192.0.2.7"}}, 401},
		"the same, by Forwarded":     {browser{socket: true, headers: []string{"Forwarded", "for=192.0.2.7"}}, 401},
		"a rebound name":             {browser{cookies: looks.cookies, host: "evil.example:80"}, 421},
		"localhost":                  {browser{cookies: looks.cookies, host: "localhost:1"}, 200},
		"numbers":                    {browser{cookies: looks.cookies, host: "[::1]:1"}, 200},
		"a token that TLS alone has": {browser{cookies: []*http.Cookie{{Name: "__Host-" + looks.cookies[0].Name, Value: looks.cookies[0].Value}}}, 401},
	} {
		for _, path := range []string{Root, Root + "live?at=/page/x", Root + "nothing"} {
			want := c.code
			if want == 200 && path != Root {
				want = 404
			}
			if res, body := l.ask(c.who, http.MethodGet, path, nil); res.StatusCode != want || res.StatusCode >= 400 && strings.Contains(body, "2 idle") {
				t.Errorf("%s, %s: %d, want %d", name, path, res.StatusCode, want)
			}
		}
	}
	_, body := l.ask(browser{socket: true}, http.MethodGet, Root, nil)
	l.person = errors.New("a session of agent \"a\" asks")
	if res, _ := l.ask(browser{socket: true}, http.MethodGet, Root, nil); res.StatusCode != http.StatusForbidden {
		t.Errorf("a session looks without a token: %d", res.StatusCode)
	}
	l.person = nil
	l.guard.Use(access.Rules{})
	if res, _ := l.ask(browser{socket: true}, http.MethodGet, Root, nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("over a socket that nobody calls open: %d", res.StatusCode)
	}
	if strings.Contains(body, "<button") || strings.Contains(body, "csrf") {
		t.Errorf("who may not act has buttons: %s", body)
	}
	if _, err := l.keeper.Revoke(l.t.Context(), false, "phone"); err != nil {
		t.Fatal(err)
	}
	if res, _ := l.ask(looks, http.MethodGet, Root, nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("revoked: %d", res.StatusCode)
	}
}

// TestBehindAProxy: only who is named is believed, and then cookies are for TLS alone.
func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	address := &url.URL{Scheme: "https", Host: "fleet.example.org"}
	link, _, err := l.keeper.Link(l.t.Context(), "phone", access.Act)
	l.must(err)
	proxied := browser{host: "fleet.example.org", headers: []string{"X-Forwarded-Proto", "https", "X-Forwarded-For", "192.0.2.7", "Origin", "https://fleet.example.org"}}
	if res, _ := l.ask(proxied, http.MethodPost, Root+"enter", url.Values{"link": {link}}); res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a name that nobody gave: %d", res.StatusCode)
	}
	l.guard.Use(access.Rules{Address: address})
	if res, _ := l.ask(proxied, http.MethodPost, Root+"enter", url.Values{"link": {link}}); res.StatusCode != http.StatusForbidden {
		t.Errorf("a proxy that nobody named: %d", res.StatusCode)
	}
	l.guard.Use(access.Rules{Address: address, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	res, body := l.ask(proxied, http.MethodPost, Root+"enter", url.Values{"link": {link}})
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	cookie := res.Cookies()[0]
	if !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || !strings.HasPrefix(cookie.Name, "__Host-") || cookie.Path != "/" {
		t.Errorf("%+v", cookie)
	}
	proxied.cookies = res.Cookies()
	form := l.form(proxied)
	if res, body := l.ask(proxied, http.MethodPost, Root+"act", with(form, "do", "pause a")); res.StatusCode != http.StatusSeeOther || len(l.did) != 1 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	// Wrong tokens count as the address that the proxy says.
	wrong := proxied
	wrong.cookies = []*http.Cookie{{Name: cookie.Name, Value: "x"}}
	codes := map[int]int{}
	for range 12 {
		res, _ := l.ask(wrong, http.MethodGet, Root, nil)
		codes[res.StatusCode]++
	}
	wrong.headers = append(wrong.headers[:len(wrong.headers):len(wrong.headers)], "X-Forwarded-For", "203.0.113.1, 192.0.2.8")
	res, _ = l.ask(wrong, http.MethodGet, Root, nil)
	if codes[401] != 10 || codes[429] != 2 || res.StatusCode != 401 {
		t.Errorf("%v, then %d", codes, res.StatusCode)
	}
	if res, _ := l.ask(proxied, http.MethodGet, Root, nil); res.StatusCode != 200 {
		t.Errorf("who has a token is locked out by who has none: %d", res.StatusCode)
	}
}

// TestWrongTokensLockNobodyOut: whatever is wrong, and however often, from an address, what is
// right is served from there, in each place where one is asked for.
func TestWrongTokensLockNobodyOut(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]browser{"tcp": {}, "socket": {socket: true, headers: []string{"Via", "x"}}} {
		l := newLab(t)
		acts := l.enter(access.Act)
		form := l.form(acts)
		wrong := b
		wrong.cookies = []*http.Cookie{{Name: acts.cookies[0].Name, Value: "x"}}
		tries := []func() (*http.Response, string){
			func() (*http.Response, string) { return l.ask(wrong, http.MethodGet, Root, nil) },
			func() (*http.Response, string) { return l.ask(wrong, http.MethodPost, Root+"act", form) },
			func() (*http.Response, string) { return l.ask(b, http.MethodGet, Root+"enter/x", nil) },
			func() (*http.Response, string) {
				return l.ask(b, http.MethodPost, Root+"enter", url.Values{"link": {"x"}})
			},
		}
		for range 4 {
			for _, try := range tries {
				try()
			}
		}
		for i, try := range tries {
			if res, _ := try(); res.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%s, number %d after many: %d", name, i, res.StatusCode)
			}
		}
		right := b
		right.cookies = acts.cookies
		if res, _ := l.ask(right, http.MethodGet, Root, nil); res.StatusCode != http.StatusOK {
			t.Errorf("%s, a token looks: %d", name, res.StatusCode)
		}
		if res, _ := l.ask(right, http.MethodPost, Root+"act", with(form, "do", "pause a")); res.StatusCode != http.StatusSeeOther {
			t.Errorf("%s, a token acts: %d", name, res.StatusCode)
		}
		link, _, err := l.keeper.Link(l.t.Context(), "phone", access.Look)
		l.must(err)
		if res, _ := l.ask(b, http.MethodGet, Root+"enter/"+link, nil); res.StatusCode != http.StatusOK {
			t.Errorf("%s, a link is looked at: %d", name, res.StatusCode)
		}
		if res, _ := l.ask(wrong, http.MethodPost, Root+"enter", url.Values{"link": {link}}); res.StatusCode != http.StatusSeeOther {
			t.Errorf("%s, a link is opened: %d", name, res.StatusCode)
		}
	}
}

// TestASessionLocksNobodyOut: its wrong tokens do not count as those of its address.
func TestASessionLocksNobodyOut(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	name := l.enter(access.Look).cookies[0].Name
	wrong := browser{cookies: []*http.Cookie{{Name: name, Value: "x"}}}
	l.person = errors.New("a session asks")
	for range 20 {
		if res, _ := l.ask(wrong, http.MethodGet, Root, nil); res.StatusCode != http.StatusForbidden {
			t.Fatalf("a session: %d", res.StatusCode)
		}
	}
	l.person = nil
	if res, _ := l.ask(wrong, http.MethodGet, Root, nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a person: %d", res.StatusCode)
	}
	l.enter(access.Look)
}

// TestWithoutATokenNothingIsTold: not the fleet's name, and the log has no link.
func TestWithoutATokenNothingIsTold(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.page.opt.Fleet = "secret-name"
	var logged strings.Builder
	l.page.opt.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	link, _, err := l.keeper.Link(l.t.Context(), "phone", access.Act)
	l.must(err)
	for _, b := range []browser{{}, {host: "evil.example"}, {socket: true, headers: []string{"Via", "x"}}} {
		for _, path := range []string{Root, Root + "enter/" + link, Root + "enter/nothing", Root + "agents/a", Root + "live?at=" + Root, Root + "nothing", Root + "style.css"} {
			if res, body := l.ask(b, http.MethodGet, path, nil); strings.Contains(body, "secret-name") || strings.Contains(fmt.Sprint(res.Header), "secret-name") {
				t.Errorf("%s names the fleet: %s", path, body)
			}
		}
	}
	l.ask(browser{}, http.MethodPost, Root+"enter", url.Values{"link": {"x"}})
	if strings.Contains(logged.String(), link) || !strings.Contains(logged.String(), "other-host") {
		t.Errorf("the log: %s", logged.String())
	}
}

// TestALinkThatIsLookedAt is not used up; who sends its form a second time gets nothing.
func TestALinkThatIsLookedAt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	link, _, err := l.keeper.Link(l.t.Context(), "phone", access.Look)
	l.must(err)
	for range 3 {
		l.ask(browser{}, http.MethodGet, Root+"enter/"+link, nil)
	}
	cross := browser{headers: []string{"Origin", "http://evil.example"}}
	if res, _ := l.ask(cross, http.MethodPost, Root+"enter", url.Values{"link": {link}}); res.StatusCode != http.StatusForbidden {
		t.Errorf("another page: %d", res.StatusCode)
	}
	l.person = errors.New("a session asks")
	if res, _ := l.ask(browser{}, http.MethodPost, Root+"enter", url.Values{"link": {link}}); res.StatusCode != http.StatusForbidden {
		t.Errorf("a session: %d", res.StatusCode)
	}
	l.person = nil
	codes := map[int]int{}
	for range 14 {
		res, _ := l.ask(browser{}, http.MethodPost, Root+"enter", url.Values{"link": {link}})
		codes[res.StatusCode]++
	}
	if codes[303] != 1 || codes[403] != 10 || codes[429] != 3 {
		t.Errorf("%v", codes)
	}
}

func TestWhoLeavesHasNoToken(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	looks := l.enter(access.Look)
	form := l.form(looks)
	if res, _ := l.ask(looks, http.MethodPost, Root+"leave", with(form, "csrf", "x")); res.StatusCode != http.StatusForbidden {
		t.Errorf("%d", res.StatusCode)
	}
	if res, _ := l.ask(looks, http.MethodPost, Root+"leave", form); res.StatusCode != http.StatusOK || res.Cookies()[0].MaxAge >= 0 {
		t.Errorf("%d %v", res.StatusCode, res.Cookies())
	}
	if tokens, err := store.Get(t.Context(), l.store.Reader, func(v *store.View) (access.List, error) { return access.Read(v, time.Now()) }); err != nil || len(tokens.Tokens) > 0 {
		t.Error(tokens, err)
	}
}

// TestHeaders: each answer says what a browser may do with it.
func TestHeaders(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for path, code := range map[string]int{Root: 200, Root + "style.css": 200, Root + "live.js": 200, Root + "x": 404, "/page": 303, Root + "act": 404} {
		res, _ := l.ask(browser{socket: true}, http.MethodGet, path, nil)
		h := res.Header
		if res.StatusCode != code || h.Get("Content-Security-Policy") != policy || strings.Contains(policy, "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: %d %v", path, res.StatusCode, h)
		}
	}
	if res, _ := l.ask(browser{host: "evil.example"}, http.MethodGet, Root+"style.css", nil); res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("%d", res.StatusCode)
	}
}
