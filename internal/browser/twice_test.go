package browser

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// tap is a button of a page, and what it does.
type tap struct {
	name, agent string
	// value finds the button in the page of the agent.
	value string
	text  string // that is filled in
	// before makes what the button is about.
	before func(f *fleet)
	// effects says how often it was done.
	effects func(f *fleet) int
}

// entries counts the entries of an agent's queue, or of its dead letters, with a text.
func (f *fleet) entries(list, agent, text string) int {
	f.t.Helper()
	return len(regexp.MustCompile(`"prompt": ?"[^"]*`+text).FindAllString(f.does(list, agent, "-o", "json"), -1))
}

func inQueue(agent, text string) func(*fleet) int {
	return func(f *fleet) int { f.t.Helper(); return f.entries("inbox", agent, text) }
}

// queuedOrDead says which of both an entry is: never both, whoever was killed on the way.
func (f *fleet) queuedOrDead(agent, text string) (queued, dead int) {
	f.t.Helper()
	queued = f.entries("inbox", agent, text) // finishes what was begun
	if dead = f.entries("dead-letter", agent, text); queued+dead != 1 {
		f.t.Errorf("%d times queued and %d times dead", queued, dead)
	}
	return queued, dead
}

var taps = []tap{
	{"send", "builder", "send builder", "Sent once", func(*fleet) {}, inQueue("builder", "Sent once")},
	{"drop", "builder", "drop builder [^\"]+", "", func(f *fleet) { f.does("send", "builder", "Dropped once") }, func(f *fleet) int {
		_, dead := f.queuedOrDead("builder", "Dropped once")
		return dead
	}},
	{"retry", "builder", "retry builder [^\"]+", "", func(f *fleet) {
		f.does("send", "builder", "--id", "old", "Tried once")
		f.does("inbox", "builder", "drop", "old")
	}, func(f *fleet) int {
		if _, dead := f.queuedOrDead("builder", "Tried once"); dead == 1 {
			f.does("dead-letter", "builder", "retry", "--all")
		}
		queued, _ := f.queuedOrDead("builder", "Tried once")
		return queued
	}},
	{"fire now", "triage", "trigger triage [^\"]+", "", func(f *fleet) { f.does("pause", "triage") }, inQueue("triage", "Look what is new")},
	{"resume", "builder", "resume builder", "", func(*fleet) {}, func(f *fleet) int {
		if strings.Contains(f.does("status", "builder"), "builder  paused") {
			return 0
		}
		return 1
	}},
	{"approve", "cleaner", "approve cleaner [^\"]+", "Go on", func(f *fleet) {
		f.does("send", "cleaner", "clean up")
		if !testbed.Await(testbed.Patience, func() bool { return strings.Contains(f.does("approval"), "Drop the table") }) {
			f.t.Fatal("nothing is asked")
		}
		f.does("pause", "cleaner")
	}, func(f *fleet) int {
		answered := strings.Count(f.does("approval", "list", "--all", "-o", "json"), `"state":"approved"`)
		testbed.Await(testbed.Patience, func() bool { return f.entries("inbox", "cleaner", "It was approved") >= answered })
		return f.entries("inbox", "cleaner", "It was approved")
	}},
}

// TestAnActThatAKilledRunHasNotAnswered: the same form, sent again after the restart, has
// it done once, or says that one has to look; never is it done twice.
func TestAnActThatAKilledRunHasNotAnswered(t *testing.T) {
	t.Parallel()
	rounds := 1
	if *testbed.Full {
		rounds = 6
	}
	for _, one := range testbed.SampleOf(t, taps, 3) {
		for round := range rounds {
			t.Run(fmt.Sprintf("%s %d", one.name, round), func(t *testing.T) {
				t.Parallel()
				killedIn(t, one, round%2 == 0)
			})
		}
	}
}

// killedIn kills the run when it has noted an order, or at any moment.
func killedIn(t *testing.T, one tap, noted bool) {
	t.Helper()
	f := newFleet(t)
	f.start()
	f.does("pause", "builder")
	one.before(f)
	c := f.entered("act")
	form := f.form(c, one)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		req, err := f.order(form)
		if err != nil {
			return
		}
		if res, err := c.Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	if noted {
		if !testbed.Await(testbed.Patience, func() bool {
			return strings.Contains(f.does("events", "-o", "json"), `"kind":"acted"`)
		}) {
			t.Fatal("it is not noted")
		}
	} else {
		time.Sleep(time.Duration(testbed.Chance(t, "killed in "+one.name).Int64N(int64(40 * time.Millisecond))))
	}
	f.must(f.run.Process.Kill())
	<-f.ended // until then it is its address that answers
	<-gone
	c.CloseIdleConnections()
	done := 0
	f.start()
	for range 2 {
		code, said := f.posts(c, form)
		switch {
		case code == http.StatusOK && strings.Contains(said, "<strong>Done.</strong>"):
			done = 1
		case code == http.StatusConflict && strings.Contains(said, "look before you ask again"):
		default:
			t.Errorf("%s: status %d: %s", one.name, code, said)
		}
		if n := one.effects(f); n > 1 || n < done {
			t.Errorf("%s: done %d times; the page said %d", one.name, n, done)
		}
	}
	acted := strings.Count(f.does("events"), "acted by the act phone")
	t.Logf("%s: in the journal %d times, done %d times, the page said %d", one.name, acted, one.effects(f), done)
	if acted > 1 {
		t.Errorf("%s: carried out %d times", one.name, acted)
	}
}

var formKey, formCSRF = regexp.MustCompile(`name="key" value="([^"]+)"`), regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// form is what a tap on a button sends.
func (f *fleet) form(c *http.Client, one tap) url.Values {
	f.t.Helper()
	_, body := f.gets(c, "/page/agents/"+one.agent)
	if one.name == "approve" {
		_, body = f.gets(c, "/page/approvals/"+regexp.MustCompile(`/page/approvals/([0-9a-f]+)`).FindStringSubmatch(body)[1])
	}
	button := regexp.MustCompile(`value="(` + one.value + `)"`).FindStringSubmatch(body)
	key, csrf := formKey.FindStringSubmatch(body), formCSRF.FindStringSubmatch(body)
	if button == nil || key == nil || csrf == nil {
		f.t.Fatalf("%s: no such form: %s", one.name, body)
	}
	form := url.Values{"do": {html.UnescapeString(button[1])}, "key": {key[1]}, "csrf": {csrf[1]}, "back": {"/page/agents/" + one.agent}}
	if one.text != "" {
		words := strings.Fields(form.Get("do"))
		form.Set("text-"+words[len(words)-1], one.text) // of the agent, or of its request
	}
	return form
}

func (f *fleet) gets(c *http.Client, path string) (int, string) {
	f.t.Helper()
	res, err := c.Get("http://" + f.at + path)
	return f.body(res, err)
}

// order is the request by which a form asks for something.
func (f *fleet) order(form url.Values) (*http.Request, error) {
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, "http://"+f.at+"/page/act", strings.NewReader(form.Encode()))
	if err == nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", "http://"+f.at)
	}
	return req, err
}

func (f *fleet) posts(c *http.Client, form url.Values) (int, string) {
	f.t.Helper()
	req, err := f.order(form)
	f.must(err)
	res, err := c.Do(req)
	return f.body(res, err)
}

func (f *fleet) body(res *http.Response, err error) (int, string) {
	f.t.Helper()
	f.must(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	f.must(err)
	return res.StatusCode, string(text)
}
