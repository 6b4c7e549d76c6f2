package browser

import (
	"context"
	"fmt"
	"testing"
)

// shifts adds up how much of a page moved while nobody touched it (Layout Instability).
const shifts = `window.shifted = 0; window.shifters = [];
new PerformanceObserver((l) => { for (const e of l.getEntries()) if (!e.hadRecentInput) { window.shifted += e.value; window.shifters.push(e.value.toFixed(3) + " " + e.sources.map((s) => s.node && (s.node.id || s.node.className || s.node.nodeName)).join(",")); } }).observe({type: "layout-shift", buffered: true});`

// TestWhatChangesMovesNothing: a session starts, a trouble comes, and the connection
// breaks, on a phone, while somebody looks.
func TestWhatChangesMovesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f := newFleet(t)
	stop := f.start()
	tab := f.open(ctx, "act")
	f.must(tab.do(ctx, "Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": shifts}, nil))
	live := `document.getElementById("link-state").textContent === "live"`
	still := func(what string) {
		t.Helper()
		var moved float64
		var by []string
		f.must(tab.Eval(ctx, "window.shifted", &moved))
		f.must(tab.Eval(ctx, "window.shifters", &by))
		if moved >= 0.05 {
			t.Errorf("%s moves the page by %.3f: %q", what, moved, by)
		}
	}
	f.must(tab.Go(ctx, f.home+"/page/agents/builder"))
	f.shows(ctx, tab, "that it is live", live)
	f.does("send", "builder", "Build it")
	f.shows(ctx, tab, "that it was done", `document.querySelector("#agent-head .state").textContent.includes("idle") && document.querySelectorAll("#agent-said li").length > 1`)
	still("a session")
	f.must(tab.Go(ctx, f.home+"/page/"))
	f.shows(ctx, tab, "that it is live", live)
	var order, after string
	const rows = `[...document.querySelectorAll("ul.rows > li")].map((e) => e.id + " " + e.offsetHeight).join(" ")`
	f.must(tab.Eval(ctx, rows, &order))
	var top, later float64
	const row = `document.querySelector("#agent-release").getBoundingClientRect().top`
	f.must(tab.Eval(ctx, `document.querySelector("#agent-release").scrollIntoView({block: "center"})`, nil))
	f.must(tab.Eval(ctx, row, &top))
	f.does("send", "broken", "This waits for a client")
	f.shows(ctx, tab, "a trouble", `document.querySelector("#troubles").innerText.includes("no-such-client") && document.title.startsWith("(")`)
	f.must(tab.Eval(ctx, rows, &after))
	f.must(tab.Eval(ctx, row, &later))
	if after != order || later != top {
		t.Errorf("a trouble moves a row from %v to %v, and the rows from %s to %s", top, later, order, after)
	}
	const head = `document.querySelector("h1").getBoundingClientRect().top + scrollY`
	f.must(tab.Eval(ctx, head, &top))
	stop()
	f.shows(ctx, tab, "that it is not live", "!("+live+")")
	f.must(tab.Eval(ctx, head, &later))
	if later != top {
		t.Errorf("that the connection breaks moves the heading from %v to %v", top, later)
	}
	_ = tab.Errors() // that nobody answers
}

// TestATapLeavesTheReaderWhereTheyAre: neither the page nor the keyboard goes elsewhere,
// and what became of it is said where it is seen.
func TestATapLeavesTheReaderWhereTheyAre(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f := beats(t, 20)
	tab := f.open(ctx, "act")
	f.must(tab.Go(ctx, f.home+"/page/"))
	f.shows(ctx, tab, "that it is live", `document.getElementById("link-state").textContent === "live"`)
	f.must(tab.Eval(ctx, `(() => { const b = document.querySelector("button[value='resume agent-15']"); b.scrollIntoView({block: "center"}); b.focus(); })()`, nil))
	const place = `Math.round(document.querySelector("#agent-agent-15").getBoundingClientRect().top)`
	var top, later int
	f.must(tab.Eval(ctx, place, &top))
	for _, what := range []string{"resume", "pause", "resume"} {
		f.shows(ctx, tab, "the button", fmt.Sprintf(`document.querySelector("button[value='%s agent-15']") !== null`, what))
		f.must(tab.Click(ctx, fmt.Sprintf("button[value='%s agent-15']", what)))
		f.shows(ctx, tab, "what was done", fmt.Sprintf(`document.querySelector("#said > .good") !== null && document.querySelector("#said").textContent.includes("agent-15: %sd")`, what))
		f.must(tab.Eval(ctx, place, &later))
		var on string
		f.must(tab.Eval(ctx, "document.activeElement.value || document.activeElement.tagName", &on))
		if later < top-4 || later > top+4 || on != "pause agent-15" && on != "resume agent-15" {
			t.Errorf("%s moves the row from %d to %d, and the keyboard to %s", what, top, later, on)
		}
	}
	var seen bool
	f.must(tab.Eval(ctx, `(() => { const r = document.querySelector("#said > p").getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; })()`, &seen))
	if !seen {
		t.Error("what was done is said where nobody sees it")
	}
	f.shows(ctx, tab, "the button", `document.querySelector("button[value='pause agent-15']") !== null`)
	f.must(tab.Scripts(ctx, false))
	f.must(tab.Go(ctx, f.home+"/page/"))
	f.must(tab.Loads(ctx, func() error { return tab.Click(ctx, "button[value='pause agent-15']") }))
	f.must(tab.Eval(ctx, place, &later))
	if later < -10 || later > 780 {
		t.Errorf("without scripts, an act leads back to %d pixels above the row", later)
	}
}
