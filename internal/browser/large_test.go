package browser

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// painted says when a page was there, how large it is, and what it is made of.
const painted = `(() => { const n = performance.getEntriesByType("navigation")[0], p = performance.getEntriesByName("first-contentful-paint")[0];
	return "first paint after " + Math.round(p ? p.startTime : -1) + " ms, the answer after " + Math.round(n.responseEnd) + " ms, loaded after " + Math.round(n.loadEventEnd) +
		" ms, " + n.decodedBodySize + " bytes, " + document.querySelectorAll("*").length + " elements, " + document.scrollingElement.scrollHeight + " pixels high"; })()`

// TestALargeFleetInABrowser: all agents are on its page, at the width of a phone. -full
// has 500 of them and logs how long the page takes, and what a minute of changes costs
// the browser and the run.
func TestALargeFleetInABrowser(t *testing.T) {
	t.Parallel()
	agents, length := 20, time.Duration(0)
	if *testbed.Full {
		agents, length = 500, time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f := beats(t, agents)
	tab := f.open(ctx, "act")
	f.must(tab.Go(ctx, f.home+"/page/"))
	f.shows(ctx, tab, "each agent", fmt.Sprintf(`document.querySelectorAll("ul.rows > li").length === %d`, agents))
	f.shows(ctx, tab, "that it is live", `document.getElementById("link-state").textContent === "live"`)
	if length == 0 {
		return
	}
	var text string
	f.must(tab.Eval(ctx, painted, &text))
	t.Log(text)
	told := f.listens(ctx)
	f.must(tab.do(ctx, "Performance.enable", nil, nil))
	before, at, begin := tab.used(ctx, t), told.Load(), f.costs()
	for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(5 * time.Second) {
		f.does("resume", "agent-00")
		f.does("pause", "agent-00")
	}
	after := tab.used(ctx, t)
	t.Logf("in %s: %d bytes told; begin: %s; end: %s", length, told.Load()-at, begin, f.costs())
	for _, name := range []string{"TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration"} {
		t.Logf("%s: %.1f ms a second", name, (after[name]-before[name])*1000/length.Seconds())
	}
	t.Logf("JSHeapUsedSize: %.1f MB", after["JSHeapUsedSize"]/1e6)
}

// used is what a tab has used so far.
func (t *Tab) used(ctx context.Context, tt *testing.T) map[string]float64 {
	tt.Helper()
	var got struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	if err := t.do(ctx, "Performance.getMetrics", nil, &got); err != nil {
		tt.Fatal(err)
	}
	all := map[string]float64{}
	for _, m := range got.Metrics {
		all[m.Name] = m.Value
	}
	return all
}

// listens counts the bytes that an open page of the fleet is told.
func (f *fleet) listens(ctx context.Context) *atomic.Int64 {
	f.t.Helper()
	c, told := f.entered("look"), new(atomic.Int64)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.at+"/page/live?at=%2Fpage%2F", http.NoBody)
	f.must(err)
	res, err := c.Do(req) //nolint:bodyclose // the reader below closes it
	f.must(err)
	go func() {
		defer res.Body.Close()
		for lines := bufio.NewReader(res.Body); ; {
			line, err := lines.ReadString('\n')
			if told.Add(int64(len(line))); err != nil {
				return
			}
		}
	}()
	return told
}
