package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

const paged = `version: 1
name: fleet
listen: [{address: "unix:page.sock", serve: [page]}]
page: {address: "http://fleet.example.org", proxies: [socket]}
agents: {triage: {dir: agents/triage, command: [heartbeat, simulate]}}
`

// asksPage asks for the page over its socket, as a browser behind a proxy does.
func (w *world) asksPage(method, path string, form url.Values, cookies ...*http.Cookie) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://fleet.example.org"+path, strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Origin", "http://fleet.example.org")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range cookies {
		r.AddCookie(c)
	}
	client := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(w.dir, "page.sock"))
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		w.t.Fatal(err)
	}
	return res
}

// TestWhatIsRevokedStaysRevoked: what commands make and end holds at once, with a run and
// without, and after a backup was restored.
func TestWhatIsRevokedStaysRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", paged)
	link := func(name string) url.Values {
		t.Helper()
		var made struct{ URL string }
		w.into(&made, "page", "link", "--name", name)
		return url.Values{"link": {made.URL[strings.LastIndex(made.URL, "/")+1:]}}
	}
	enters := func(link url.Values, want int) []*http.Cookie {
		t.Helper()
		res := w.asksPage(http.MethodPost, "/page/enter", link)
		if res.StatusCode != want {
			t.Errorf("a link is answered with %d, want %d", res.StatusCode, want)
		}
		return res.Cookies()
	}
	looks := func(cookies []*http.Cookie, want int) {
		t.Helper()
		if res := w.asksPage(http.MethodGet, "/page/", nil, cookies...); res.StatusCode != want {
			t.Errorf("a token is answered with %d, want %d", res.StatusCode, want)
		}
	}
	before := link("before") // without a run
	unused := link("unused")
	r := w.background()
	first := enters(before, http.StatusSeeOther)
	looks(first, http.StatusOK)
	second := enters(link("second"), http.StatusSeeOther) // with one
	w.done("backup", "all.db")
	if out := w.done("page", "revoke", "before", "unused"); strings.Count(out, "revoked") != 2 {
		t.Error(out)
	}
	if o := w.run("page", "revoke", "before"); o.status != exitError || !strings.Contains(o.stderr, "no such token") || !strings.Contains(o.stderr, "heartbeat page tokens lists them") {
		t.Errorf("%+v", o)
	}
	late := enters(link("late"), http.StatusSeeOther)
	gone := func(when string) {
		t.Helper()
		t.Log(when)
		looks(first, http.StatusUnauthorized)
		enters(unused, http.StatusForbidden)
		looks(second, http.StatusOK)
		looks(late, http.StatusOK)
	}
	gone("at once")
	r.stop()
	w.done("restore", "all.db")
	r = w.background()
	gone("after the backup was restored")
	r.stop()
	w.done("page", "revoke", "second")
	r = w.background()
	looks(second, http.StatusUnauthorized)
	looks(late, http.StatusOK)
	r.stop()
}
