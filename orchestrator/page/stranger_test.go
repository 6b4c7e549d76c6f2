package page

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"testing"

	"heartbeat/orchestrator/page/access"
	"heartbeat/ptyrun/peer"
)

// TestAnotherUserOfThisMachineDoesNotAct: browsers send a cookie to each port of its host,
// so another user who serves one could have a person's token, and all users have TCP. With it
// they look, and neither act nor get a token that may; a proxy of theirs does, where the file
// names it.
func TestAnotherUserOfThisMachineDoesNotAct(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	acts := l.enter(access.Act)
	form := l.form(acts)
	l.mu.Lock()
	l.checks = func(int) error { return fmt.Errorf("%w (65534)", peer.ErrStranger) }
	l.mu.Unlock()
	wrong := browser{cookies: []*http.Cookie{{Name: acts.cookies[0].Name, Value: "x"}}}
	link := func(role access.Role) url.Values {
		secret, _, err := l.keeper.Link(l.t.Context(), "phone", role)
		l.must(err)
		return url.Values{"link": {secret}}
	}
	walk := func(what string, want ...int) {
		t.Helper()
		var got []int
		for _, ask := range []func() *http.Response{
			func() *http.Response { r, _ := l.ask(acts, http.MethodGet, Root, nil); return r },
			func() *http.Response { r, _ := l.ask(wrong, http.MethodGet, Root, nil); return r },
			func() *http.Response {
				r, _ := l.ask(acts, http.MethodPost, Root+"act", with(form, "do", "pause a"))
				return r
			},
			func() *http.Response {
				r, _ := l.ask(browser{}, http.MethodPost, Root+"enter", link(access.Look))
				return r
			},
			func() *http.Response {
				r, _ := l.ask(browser{}, http.MethodPost, Root+"enter", link(access.Act))
				return r
			},
		} {
			got = append(got, ask().StatusCode)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	walk("a stranger", 200, 401, 403, 303, 403)
	if len(l.did) > 0 {
		t.Errorf("done: %q", l.did)
	}
	for at, named := range map[string]bool{"192.0.2.1/32": false, "127.0.0.1/32": true} {
		l.guard.Use(access.Rules{Proxies: []netip.Prefix{netip.MustParsePrefix(at)}})
		if named {
			walk("a proxy that is named", 200, 401, 303, 303, 303)
		} else {
			walk("beside another proxy", 200, 401, 403, 303, 403)
		}
	}
}
