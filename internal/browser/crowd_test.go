package browser

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// beats is a fleet of agents that are paused, with fires each minute.
func beats(t *testing.T, agents int) *fleet {
	t.Helper()
	f := newFleet(t)
	var text strings.Builder
	fmt.Fprintf(&text, "version: 1\nname: office\nlisten: [{address: %q, serve: [page, metrics]}]\ndefaults: {command: [heartbeat, simulate, --home, .home]}\nagents:\n", f.at)
	for i := range agents {
		name := fmt.Sprintf("agent-%02d", i)
		f.must(os.MkdirAll(filepath.Join(f.dir, "agents", name), 0o755))
		fmt.Fprintf(&text, "  %s: {dir: agents/%[1]s, trigger: {cron: \"* * * * *\", overlap: queue, prompt: Look.}}\n", name)
	}
	f.must(os.WriteFile(filepath.Join(f.dir, "heartbeat.yaml"), []byte(text.String()), 0o600))
	f.start()
	f.does("pause", "--all")
	return f
}

// entered is a browser without pictures.
func (f *fleet) entered(role string) *http.Client {
	f.t.Helper()
	jar, err := cookiejar.New(nil)
	f.must(err)
	c := &http.Client{Jar: jar}
	link := f.link(role)
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, "http://"+f.at+"/page/enter", strings.NewReader(url.Values{"link": {link[strings.LastIndexByte(link, '/')+1:]}}.Encode()))
	f.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", "http://"+f.at)
	res, err := c.Do(req)
	f.must(err)
	f.must(res.Body.Close())
	if res.StatusCode != http.StatusOK {
		f.t.Fatalf("the link: %s", res.Status)
	}
	return c
}

var late = regexp.MustCompile(`(?m)^heartbeat_fire_lateness_seconds(_bucket\{le="0\.1"\}|_sum|_count|_bucket\{le="1"\}) (\S+)$`)

// costs says what a fleet's run has used, and how late its fires were.
func (f *fleet) costs() string {
	f.t.Helper()
	pid := strconv.Itoa(f.run.Process.Pid)
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	f.must(err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
	state, err := os.ReadFile("/proc/" + pid + "/status")
	f.must(err)
	res, err := http.Get("http://" + f.at + "/metrics")
	f.must(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	f.must(err)
	memory := regexp.MustCompile(`VmHWM:\s*(.*)`).FindString(string(state))
	return fmt.Sprintf("CPU ticks %s user, %s system, %s, lateness %q", fields[12], fields[13], memory, late.FindAllString(string(text), -1))
}

// TestManyOpenPages: each of them is told what changes, and the scheduler loses nothing
// by them: -full has 200 of them open for ten minutes beside a run that has none, and
// logs what both have used.
func TestManyOpenPages(t *testing.T) {
	t.Parallel()
	pages, length := 20, time.Duration(0)
	if *testbed.Full {
		pages, length = 200, 10*time.Minute
	}
	f := beats(t, 20)
	c := f.entered("look")
	var all sync.WaitGroup
	var told, lost atomic.Int64
	first := make([]atomic.Bool, pages)
	t.Cleanup(all.Wait)
	for i := range pages {
		at := []string{"/page/", fmt.Sprintf("/page/agents/agent-%02d", i%20), "/page/approvals", "/page/plots"}[i%4]
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+f.at+"/page/live?at="+url.QueryEscape(at), http.NoBody)
		f.must(err)
		all.Go(func() {
			res, err := c.Do(req)
			if err != nil || res.StatusCode != http.StatusOK {
				lost.Add(1)
				return
			}
			defer res.Body.Close()
			for lines := bufio.NewReader(res.Body); ; {
				line, err := lines.ReadString('\n')
				if err != nil {
					lost.Add(1)
					return
				}
				if strings.HasPrefix(line, "data: ") {
					told.Add(1)
					first[i].Store(true)
				}
			}
		})
	}
	if !testbed.Await(testbed.Patience, func() bool {
		for i := range first {
			if !first[i].Load() {
				return lost.Load() > 0
			}
		}
		return true
	}) || lost.Load() > 0 {
		t.Fatalf("of %d pages %d are lost, %d times something was told", pages, lost.Load(), told.Load())
	}
	if !*testbed.Full {
		return
	}
	alone := beats(t, 20)
	t.Logf("begin, %d pages: %s; none: %s", pages, f.costs(), alone.costs())
	time.Sleep(length)
	t.Logf("after %s, %d pages, told %d times, %d lost: %s", length, pages, told.Load(), lost.Load(), f.costs())
	t.Logf("without pages: %s", alone.costs())
	if lost.Load() > 0 {
		t.Errorf("%d pages are lost", lost.Load())
	}
}
