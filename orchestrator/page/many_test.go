package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// many is a fleet of n agents in all states, with what they have to say.
func many(n int, now time.Time) Fleet {
	f := Fleet{Summary: fmt.Sprintf("%d agents", n), Fleet: status.Fleet{Fleet: "office"}, Group: map[string]string{}}
	states := append(status.States(), status.Stopped)
	for i := range n {
		name := fmt.Sprintf("agent-%03d", i)
		a := status.Agent{AgentState: status.AgentState{Agent: name, State: states[i%len(states)], Since: now.Add(-time.Duration(i) * time.Minute)}}
		a.Depth.Entries, a.Dead = i%7, i%11/10
		a.Next = now.Add(time.Hour)
		a.Today.Input, a.Today.Output, a.Today.Cost = 12345, 6789, 0.1234
		switch a.State {
		case status.Running:
			a.Phase = hook.Turn
			a.InFlight = &inbox.InFlight{Source: name + "/nightly@2026-11-04T12:00:00Z", DeliveredAt: now.Add(-5 * time.Minute)}
			a.InFlight.Checked, a.InFlight.Iteration, a.InFlight.Most = true, 3, 10
			a.Tool = &session.Tool{Name: "Bash", Since: now.Add(-time.Minute)}
		case status.Held:
			a.Reason = "5 sessions in a row have failed: command \"claude\": exit status 1"
		case status.Parked:
			a.Reason, a.Until = "usage limit of the account a@example.org", now.Add(time.Hour)
		case status.Waiting, status.BackingOff, status.Ending:
			a.Reason = foreign.Text("max-sessions: 5 of 5 run")
		case status.Idle, status.Starting, status.Checking, status.Stopped:
		}
		f.Group[name] = []string{"", "desk", "night"}[i*3/n]
		f.Agents = append(f.Agents, a)
		f.Troubles = append(f.Troubles, a.Troubles("heartbeat", now)...)
	}
	return f
}

// TestFiveHundredAgents: their page is loaded once, and of what changes only that is sent.
func TestFiveHundredAgents(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	fleet := many(500, time.Now())
	l.fleet = fleet
	acts := l.enter(access.Act)
	begun := time.Now()
	_, body := l.ask(acts, http.MethodGet, Root, nil)
	took := time.Since(begun)
	for i := range fleet.Agents {
		if !strings.Contains(body, fmt.Sprintf(`id="agent-agent-%03d"`, i)) {
			t.Errorf("agent %d is missing", i)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f := l.follow(ctx, acts, "at="+Root)
	if _, ok := f.next(); !ok {
		t.Fatal("nothing is sent")
	}
	l.mu.Lock()
	l.fleet.Agents = slices.Clone(fleet.Agents)
	l.fleet.Agents[77].Depth.Entries = 1000
	l.mu.Unlock()
	m, _ := f.next()
	for !slices.Contains(ids(m.Pieces), "agent-agent-077") {
		if m, _ = f.next(); m.Pieces == nil {
			t.Fatal("the change is not sent")
		}
	}
	text, err := json.Marshal(m)
	l.must(err)
	t.Logf("the page: %d KiB in %s; an update: %d bytes, %q", len(body)/1024, took, len(text), ids(m.Pieces))
	if len(body) > 1<<20 || len(text) > 8<<10 {
		t.Errorf("the page has %d bytes, an update %d", len(body), len(text))
	}
}

// TestRowsStandInTheOrderOfTheFile, whatever happens to agents: what somebody is about to
// tap does not move.
func TestRowsStandInTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := many(30, now)
	order := func() (names []string) {
		for _, g := range grouped(f) {
			for _, a := range g.Agents {
				names = append(names, a.Agent)
			}
		}
		return names
	}
	before := order()
	f.Agents[25].State, f.Agents[25].Reason = status.Held, "why"
	f.Troubles = append(f.Agents[25].Troubles("heartbeat", now), f.Troubles...)
	if after := order(); !slices.Equal(before, after) || !slices.IsSorted(after) {
		t.Errorf("%q, and after a trouble %q", before, after)
	}
}

// TestAPageIsCompressedForWhoTakesIt, and a link's page never; what a form carries is
// another one each time, and good each time.
func TestAPageIsCompressedForWhoTakesIt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.fleet = many(500, time.Now())
	acts := l.enter(access.Act)
	link, _, err := l.keeper.Link(l.t.Context(), "phone", access.Act)
	l.must(err)
	for at, want := range map[string]string{Root: "gzip", Root + "style.css": "gzip", Root + "live.js": "gzip", Root + "enter/" + link: "", Root + "live?at=" + Root: ""} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.port+at, http.NoBody)
		l.must(err)
		r.AddCookie(acts.cookies[0])
		r.Header.Set("Accept-Encoding", "br;q=1, gzip;q=0.8") // so that the client keeps it
		res, err := http.DefaultTransport.RoundTrip(r)
		l.must(err)
		if got := res.Header.Get("Content-Encoding"); got != want || want != "" && (res.ContentLength <= 0 || res.ContentLength > 64<<10) {
			t.Errorf("%s: %q of %d bytes, want %q", at, got, res.ContentLength, want)
		}
		cancel()
		_ = res.Body.Close()
	}
	res, body := l.ask(browser{cookies: acts.cookies, headers: []string{"Accept-Encoding", "gzip;q=0"}}, http.MethodGet, Root, nil)
	if res.Header.Get("Content-Encoding") != "" || !strings.Contains(body, "agent-499") {
		t.Error("who does not take it gets it")
	}
	one, other := l.form(acts), l.form(acts)
	if one.Get("csrf") == other.Get("csrf") {
		t.Error("a page says the same secret twice")
	}
	for _, form := range []url.Values{one, other} {
		if res, body := l.ask(acts, http.MethodPost, Root+"act", with(form, "do", "resume a")); res.StatusCode != http.StatusSeeOther {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	}
}
