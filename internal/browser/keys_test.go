package browser

import (
	"context"
	"os"
	"testing"
)

// TestKeys: what the sheet of keys says is so. No key does anything where somebody types.
func TestKeys(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	script, err := os.ReadFile(axe(t))
	if err != nil {
		t.Fatal(err)
	}
	f := newFleet(t)
	f.start()
	f.does("pause", "builder")
	tab := f.open(ctx, "act")
	f.shows(ctx, tab, "that it is live", `document.getElementById("link-state").textContent === "live"`)
	press := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			f.must(tab.Press(ctx, key, false))
		}
	}
	on := func(what, expression string) {
		t.Helper()
		f.shows(ctx, tab, what, expression)
	}
	press("?")
	on("the sheet of keys", `document.querySelector("#keys").open && document.querySelector("#keys").innerText.includes("find an agent")`)
	f.seen(ctx, tab, "keys", string(script))
	press("j")
	on("the sheet alone", `document.querySelector("#keys").contains(document.activeElement)`)
	f.must(tab.Eval(ctx, `document.querySelector("#keys form button").click()`, nil))
	press("/")
	on("where to type a name", `document.activeElement.id === "find"`)
	f.must(tab.Type(ctx, "Build"))
	const shown = `[...document.querySelectorAll("ul.rows > li")].filter((e) => e.offsetHeight > 0).map((e) => e.id).join()`
	on("the agent of this name", shown+` === "agent-builder"`)
	press("?", "j", "k")
	on("a name with what was typed", `document.querySelector("#find").value === "Build?jk" && !document.querySelector("#keys").open`)
	f.must(tab.Eval(ctx, `(() => { const e = document.querySelector("#find"); e.value = ""; e.dispatchEvent(new Event("input")); e.blur(); })()`, nil))
	on("all of them", shown+`.split(",").length === 7`)
	on("both problems", `document.querySelectorAll(".trouble").length === 2`)
	press("j")
	on("the first problem", `document.activeElement.closest(".trouble:first-child") !== null`)
	press("j", "j")
	on("the first agent", `document.activeElement.closest("#agent-triage") !== null`)
	press("j", "k", "k")
	on("the problem before it", `document.activeElement.closest(".trouble:last-child") !== null`)
	f.must(tab.Go(ctx, f.home+"/page/agents/archive"))
	f.shows(ctx, tab, "that it is live", `document.getElementById("link-state").textContent === "live"`)
	f.must(tab.Click(ctx, "#agent-text"))
	f.must(tab.Type(ctx, "By the keyboard"))
	f.must(tab.Press(ctx, "Enter", true))
	on("that it is queued", `document.querySelector("#said").textContent.includes("archive: queued") && document.querySelector("#agent-text").value === ""`)
	on("what came of it", `document.querySelector("#agent-said").innerText.includes("done: By the keyboard")`)
	f.must(tab.Eval(ctx, `document.activeElement.blur()`, nil))
	f.must(tab.Loads(ctx, func() error { return tab.Press(ctx, "/", false) }))
	on("where to type a name", `document.activeElement.id === "find"`)
	for _, e := range tab.Errors() {
		t.Errorf("the browser says: %s", e)
	}
}

// TestAnAnswerThatComesLateHidesNothing: the answer to a form has the page as it was when the form
// was sent. It came later than what the session said, took that away, and it was not told again.
func TestAnAnswerThatComesLateHidesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f := newFleet(t)
	f.start()
	tab := f.open(ctx, "act")
	f.must(tab.Go(ctx, f.home+"/page/agents/archive"))
	f.shows(ctx, tab, "that it is live", `document.getElementById("link-state").textContent === "live"`)
	f.must(tab.Eval(ctx, `(() => {
		const send = window.fetch;
		window.fetch = async (...what) => {
			const answer = await send(...what);
			while (!document.querySelector("#agent-said").innerText.includes("done: Late")) await new Promise((go) => setTimeout(go, 20));
			return answer;
		};
	})()`, nil))
	f.must(tab.Click(ctx, "#agent-text"))
	f.must(tab.Type(ctx, "Late"))
	f.must(tab.Press(ctx, "Enter", true))
	f.shows(ctx, tab, "that it is queued", `document.querySelector("#said").textContent.includes("archive: queued")`)
	f.shows(ctx, tab, "what came of it", `document.querySelector("#agent-said").innerText.includes("done: Late")`)
}
