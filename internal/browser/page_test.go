package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

func TestMain(m *testing.M) { os.Exit(testbed.Run(m)) }

// chromium is the browser of all tests, each of which opens tabs of its own. It ends with
// the last of those that use it.
var chromium struct {
	sync.Mutex
	*Browser
	users int
}

// patience bounds each test: the browser and the fleet share the machine with others.
const patience = 4 * time.Minute

// fleet is a running heartbeat with a page.
type fleet struct {
	t       *testing.T
	dir, at string // at is HOST:PORT
	home    string // the address of the page as the last link has it: browsers keep cookies by name
	env     []string
	run     *exec.Cmd
	ended   chan struct{} // when run has
}

const declared = `version: 1
name: office
max-sessions: 2
listen: [{address: "%s", serve: [page]}]
budget: {day: {turns: 500, cost: 20}}
groups: {desk: {max-sessions: 1}}
defaults: {command: [heartbeat, simulate, --home, .home], permissions: {allow: [Read]}}
agents:
  triage: {dir: agents/triage, group: desk, trigger: {cron: "0 0 1 1 *", prompt: "Look what is new."}}
  builder: {dir: agents/builder}
  archive: {dir: agents/archive, group: desk}
  broken: {dir: agents/broken, command: [no-such-client]}
  release: {dir: agents/release, until: {check: ["true"], approve: [release]}}
  aside: {dir: agents/aside, until: {check: ["true"], approve: [publish], aside: true}}
  cleaner: {dir: agents/cleaner, command: [heartbeat, simulate, --home, .home, --script, ../../asks.json], permissions: {allow: [Bash]}}
`

const asks = `{"rules": [{"match": "clean", "steps": [{"tool": "Bash", "command": "%s --file ../../heartbeat.yaml approval ask 'Drop the table customers_2024?' --category destroy --payload plan.sql"}, {"reply": "I have **asked**:\n\n- the table has ` + "`1204113`" + ` rows\n- the plan is at https://example.org/plan"}]}]}`

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir()}
	f.at = free(t)
	f.declares(declared, "triage", "builder", "archive", "broken", "release", "cleaner", "aside")
	f.must(os.WriteFile(filepath.Join(f.dir, "asks.json"), fmt.Appendf(nil, asks, testbed.Program(t, "heartbeat")), 0o600))
	f.must(os.WriteFile(filepath.Join(f.dir, "agents", "cleaner", "plan.sql"), []byte("BEGIN;\nDROP TABLE customers_2024 CASCADE; -- 1204113 rows, no backup since 2026-11-01\nCOMMIT;\n"), 0o600))
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HEARTBEAT_") && !strings.HasPrefix(v, "HOME=") && !strings.HasPrefix(v, "XDG_") && !strings.HasPrefix(v, "CLAUDE") && !strings.HasPrefix(v, "ANTHROPIC") {
			f.env = append(f.env, v)
		}
	}
	f.env = append(f.env, "HOME="+f.dir, "HEARTBEAT_STATE_DIR="+filepath.Join(f.dir, "state"))
	return f
}

// declares writes the fleet's file, with the address of its page, and makes the directories of
// its agents.
func (f *fleet) declares(file string, agents ...string) {
	f.t.Helper()
	for _, name := range agents {
		f.must(os.MkdirAll(filepath.Join(f.dir, "agents", name), 0o755))
	}
	f.must(os.WriteFile(filepath.Join(f.dir, "heartbeat.yaml"), fmt.Appendf(nil, file, f.at), 0o600))
}

// free returns an address that nobody has. Its port is not one that the system gives to
// who asks for any: it stays free while the fleet is not running.
func free(t *testing.T) string {
	t.Helper()
	for range 100 {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(12000)))
		if l, err := net.Listen("tcp", at); err == nil {
			_ = l.Close()
			return at
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(f.t.Context(), testbed.Program(f.t, "heartbeat"), args...)
	cmd.Dir, cmd.Env = f.dir, f.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The context of a test ends before its cleanups: a scheduler that it kills leaves a
	// session behind, which writes into the folder that is being removed.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

// does runs a command and returns what it has printed.
func (f *fleet) does(args ...string) string {
	f.t.Helper()
	out, err := f.command(args...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("heartbeat %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// start runs the fleet until stop is called or the test ends.
func (f *fleet) start() (stop func()) {
	f.t.Helper()
	f.run = f.command("run")
	f.run.Stderr = f.t.Output()
	f.must(f.run.Start())
	ended := make(chan struct{})
	f.ended = ended
	go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(ended) }(f.run)
	stop = func() {
		_ = f.run.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(testbed.Patience):
			_ = syscall.Kill(-f.run.Process.Pid, syscall.SIGKILL)
			<-ended
		}
	}
	f.t.Cleanup(stop)
	if !testbed.Await(testbed.Patience, func() bool {
		conn, err := net.Dial("tcp", f.at)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}) {
		f.t.Fatal("the page is not served")
	}
	return stop
}

// link makes a link for a browser.
func (f *fleet) link(role string) string {
	f.t.Helper()
	var out struct{ Data struct{ URL string } }
	f.must(json.Unmarshal([]byte(f.does("page", "link", "--role", role, "--name", "the "+role+" phone", "-o", "json")), &out))
	f.home, _, _ = strings.Cut(out.Data.URL, "/page/")
	return out.Data.URL
}

// tool is what the tests need that the machine may not have.
func tool(t *testing.T, path, what string) string {
	t.Helper()
	if _, err := os.Stat(path); err == nil && path != "" {
		return path
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is missing", what)
	}
	t.Skip(what + " is missing")
	return ""
}

// browser returns the running browser, which stays until the test has ended.
func browser(t *testing.T) *Browser {
	t.Helper()
	path := tool(t, Find(), "Chromium (apt-get install chromium)")
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.users == 0 {
		dir, err := os.MkdirTemp("", "chromium-")
		if err == nil {
			chromium.Browser, err = Start(path, dir)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	chromium.users++
	t.Cleanup(func() {
		chromium.Lock()
		defer chromium.Unlock()
		if chromium.users--; chromium.users == 0 {
			_ = chromium.Close()
		}
	})
	return chromium.Browser
}

// open enters the page by a link, in a tab that shares nothing with others.
func (f *fleet) open(ctx context.Context, role string) *Tab {
	f.t.Helper()
	tab, err := browser(f.t).Open(ctx)
	f.must(err)
	f.must(tab.Look(ctx, 360, false))
	f.must(tab.Go(ctx, f.link(role)))
	f.must(tab.Loads(ctx, func() error { return tab.Eval(ctx, `document.querySelector("main button").click()`, nil) }))
	var path string
	f.must(tab.Eval(ctx, "location.pathname", &path))
	if path != "/page/" {
		f.t.Fatalf("the link leads to %s", path)
	}
	return tab
}

// shows waits until a condition holds in a page, of its own accord.
func (f *fleet) shows(ctx context.Context, tab *Tab, what, condition string) {
	f.t.Helper()
	if !testbed.Await(testbed.Patience, func() bool {
		var is bool
		return tab.Eval(ctx, condition, &is) == nil && is
	}) {
		var text string
		_ = tab.Eval(ctx, "document.body.innerText", &text)
		f.t.Fatalf("%s is not shown: %s", what, text)
	}
}

// ways are how a page is looked at: at 320 pixels nothing may be cut off.
type way struct {
	width int
	dark  bool
}

// changed makes an agent's directory a repository in which something has changed.
func (f *fleet) changed(agent string) {
	f.t.Helper()
	dir := filepath.Join(f.dir, "agents", agent)
	f.must(os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o600))
	for _, args := range [][]string{{"init", "-q"}, {"add", "main.go"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "The first"}} {
		cmd := exec.CommandContext(f.t.Context(), "git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(f.env, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			f.t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	f.must(os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { println() }\n"), 0o600))
	f.must(os.WriteFile(filepath.Join(dir, "a <new> file"), []byte("<script>alert(1)</script>\n"), 0o600))
}

// violations says what axe has found, if anything.
const violations = `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) =>
	v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + (n.any[0] ? n.any[0].message : "")).join("; ")))`

// TestEachPage: a page fits a phone and a desk, has
// nothing that keeps somebody out, and makes the browser complain of nothing.
// HEARTBEAT_SHOTS names a folder for pictures.
func TestEachPage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	script, err := os.ReadFile(axe(t))
	if err != nil {
		t.Fatal(err)
	}
	f := newFleet(t)
	f.does("send", "archive", "--id", "old", "An old prompt")
	f.does("inbox", "archive", "drop", "old")
	f.does("send", "broken", "This waits for a client")
	f.changed("triage")
	f.start()
	f.does("send", "triage", "--wait", `What is new? <img src=x onerror=alert(1)> "quoted"`)
	f.does("pause", "builder")
	f.does("send", "builder", "--id", "b1", "This waits for resume")
	f.does("send", "release", "--id", "r1", "Make the release")
	f.does("send", "cleaner", "clean the tables up")
	f.does("send", "aside", "Publish the notes")
	tab := f.open(ctx, "act")
	f.shows(ctx, tab, "what is wrong", `document.body.innerText.includes("no-such-client")`)
	request, destroys := f.asked(ctx, tab, "release"), f.asked(ctx, tab, "cleaner")
	f.look(ctx, tab, "/page/", string(script))
	others := []string{strings.TrimPrefix(request, "/page/"), strings.TrimPrefix(destroys, "/page/"), "agents/broken", "agents/cleaner", "agents/builder", "agents/aside", "agents/archive/changes", "agents/archive/record", "agents/release", "agents/triage", "agents/archive", "agents/triage/record", "agents/triage/plots?of=6h", "agents/triage/changes", "plots?of=90d", "approvals"}
	f.shows(ctx, tab, "what waits aside", `/1 aside for/.test(document.querySelector("#agent-aside").innerText)`)
	for _, at := range testbed.SampleOf(t, others, 3) {
		f.look(ctx, tab, "/page/"+at, string(script))
	}
	f.answers(ctx, tab, request)
	f.dropsAside(ctx, tab)
	f.must(tab.Scripts(ctx, true))
	f.must(tab.Go(ctx, f.home+"/page/agents/release/record"))
	f.shows(ctx, tab, "which prompt was checked", `/check: [^\n]*iteration 1[^\n]*\nMake the release/.test(document.querySelector("#agent-ends").innerText)`)
	f.turnedAway(ctx, tab, string(script))
}

// axe is the path of axe-core's script.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("HEARTBEAT_AXE")
	if path == "" {
		path = "../../.ci/browser/node_modules/axe-core/axe.min.js"
	}
	return tool(t, path, "axe-core (.ci/browser/install)")
}

// asked is the address of what an agent asks.
func (f *fleet) asked(ctx context.Context, tab *Tab, agent string) (path string) {
	f.t.Helper()
	link := `document.querySelector("#agent-` + agent + ` .actions a[href^='/page/approvals/']")`
	f.shows(ctx, tab, "what "+agent+" asks", link+" !== null")
	f.must(tab.Eval(ctx, link+".pathname", &path))
	return path
}

// answers says no to a request with a note, in a browser that runs no scripts.
func (f *fleet) answers(ctx context.Context, tab *Tab, request string) {
	f.t.Helper()
	f.must(tab.Scripts(ctx, false))
	f.must(tab.Go(ctx, f.home+request))
	f.must(tab.Click(ctx, "#approval-note"))
	f.must(tab.Type(ctx, "Not <b>before</b> Monday"))
	f.must(tab.Loads(ctx, func() error { return tab.Click(ctx, "#approval-answer button[value^=reject]") }))
	var text string
	f.must(tab.Eval(ctx, "document.body.innerText", &text))
	if !strings.Contains(text, "release: rejected") || !strings.Contains(text, "Not <b>before</b> Monday") {
		f.t.Errorf("without scripts an answer shows: %s", text)
	}
}

// look looks at one page in all ways.
func (f *fleet) look(ctx context.Context, tab *Tab, at, axe string) {
	f.t.Helper()
	f.must(tab.Go(ctx, f.home+at))
	f.seen(ctx, tab, at, axe)
	for _, e := range tab.Errors() {
		f.t.Errorf("%s: the browser says: %s", at, e)
	}
}

// seen looks at what a tab shows in all ways.
func (f *fleet) seen(ctx context.Context, tab *Tab, at, axe string) {
	f.t.Helper()
	f.must(tab.Eval(ctx, axe, nil))
	ways := []way{{320, false}, {360, true}, {1440, false}}
	if folder := os.Getenv("HEARTBEAT_SHOTS"); folder != "" || *testbed.Full {
		ways = append(ways, way{360, false}, way{1440, true})
	}
	for _, w := range ways {
		f.must(tab.Look(ctx, w.width, w.dark))
		var wide int
		f.must(tab.Eval(ctx, "document.scrollingElement.scrollWidth", &wide))
		if wide > w.width {
			f.t.Errorf("%s is %d pixels wide on a screen of %d", at, wide, w.width)
		}
		if w.width != 320 {
			var found []string
			f.must(tab.Eval(ctx, violations, &found))
			for _, v := range found {
				f.t.Errorf("%s, %+v: %s", at, w, v)
			}
		}
		if folder := os.Getenv("HEARTBEAT_SHOTS"); folder != "" {
			shot, err := tab.Shot(ctx)
			f.must(err)
			name := strings.Trim(strings.ReplaceAll(at, "/", "-"), "-")
			f.must(os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d-%v.png", strings.ReplaceAll(url.PathEscape(name), "%", "-"), w.width, w.dark)), shot, 0o600))
		}
	}
}

// turnedAway looks at what somebody sees who is offered a link, and who is refused.
func (f *fleet) turnedAway(ctx context.Context, tab *Tab, axe string) {
	f.t.Helper()
	f.must(tab.Go(ctx, f.link("look")))
	f.seen(ctx, tab, "the link", axe)
	f.must(tab.Go(ctx, f.home+"/page/agents/nobody"))
	f.seen(ctx, tab, "no such page", axe)
	f.must(tab.Go(ctx, f.home+"/page/"))
	const post = `(() => { const form = document.createElement("form"); form.method = "post"; form.action = "%s"; document.body.append(form); form.submit(); })()`
	f.must(tab.Loads(ctx, func() error { return tab.Eval(ctx, fmt.Sprintf(post, "/page/act"), nil) }))
	f.seen(ctx, tab, "a form of another page", axe)
	f.must(tab.Go(ctx, f.home+"/page/"))
	f.must(tab.Eval(ctx, `document.querySelector("footer form button").click()`, nil))
	f.shows(ctx, tab, "that it has left", `document.querySelector("footer form") === null && document.querySelector("h1") !== null`)
	f.seen(ctx, tab, "left", axe)
	f.must(tab.Go(ctx, f.home+"/page/"))
	f.seen(ctx, tab, "no token", axe)
	_ = tab.Errors() // that it is refused
}

// TestAPageIsLive: what changes elsewhere shows by itself, what is tapped is done, and
// a page that was left open over a restart goes on: what is tapped meanwhile is not done,
// and what was typed stays. Who may not look any more sees why, and nothing else.
func TestAPageIsLive(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f := newFleet(t)
	queue := filepath.Join(f.dir, "agents", "builder", ".heartbeat")
	f.must(os.MkdirAll(queue, 0o700))
	f.must(os.WriteFile(filepath.Join(queue, "inbox.jsonl"), []byte("one\ntwo\n"), 0o600))
	f.must(os.WriteFile(filepath.Join(queue, ".inbox-offset"), []byte("rubbish"), 0o600))
	stop := f.start()
	tab := f.open(ctx, "act")
	f.answersTheQueue(ctx, tab)
	f.must(tab.Eval(ctx, "window.stays = true", nil))
	live := `document.getElementById("link-state").textContent === "live"`
	f.shows(ctx, tab, "that it is live", live)
	f.does("pause", "triage")
	f.shows(ctx, tab, "the pause", `window.stays && document.querySelector("#agent-triage .state").textContent.includes("paused")`)
	f.must(tab.Eval(ctx, `(() => { const b = document.querySelector("#agent-triage button[value='resume triage']"); b.focus(); b.click(); b.click(); })()`, nil))
	f.shows(ctx, tab, "what was done, where it was tapped", `window.stays && document.querySelector("[role=status] > .said.good").textContent.includes("triage: resumed") && document.activeElement.value === "pause triage"`)
	if out := f.does("events"); strings.Count(out, "triage acted by the act phone") != 1 {
		t.Errorf("the journal says: %s", out)
	}
	stop()
	f.shows(ctx, tab, "that it is not live", "!("+live+")")
	f.must(tab.Eval(ctx, `(() => { document.querySelector("#parts").insertAdjacentHTML("beforeend", "<input id='typed' form='act' name='text-builder' value='typed'>"); document.querySelector("#agent-builder button[value='pause builder']").click(); })()`, nil))
	f.shows(ctx, tab, "that nothing was done", `window.stays && document.querySelector("#not-done").textContent.startsWith("Not done: the fleet does not answer") && document.querySelector("#typed").value === "typed"`)
	_ = tab.Errors() // that nobody answers meanwhile
	f.start()
	f.does("pause", "builder")
	f.shows(ctx, tab, "the pause after a restart", `window.stays && document.querySelector("#agent-builder .state").textContent.includes("paused")`)
	f.does("page", "revoke", "--all")
	f.shows(ctx, tab, "that a link is needed", `document.querySelector("h1").textContent === "Not signed in" && !document.body.innerText.includes("triage")`)
}

// answersTheQueue goes from the list to the agent whose queue asks, and has it continue.
func (f *fleet) answersTheQueue(ctx context.Context, tab *Tab) {
	f.t.Helper()
	f.shows(ctx, tab, "that a queue asks", `document.querySelector("#agent-builder .actions a") !== null`)
	f.must(tab.Loads(ctx, func() error { return tab.Click(ctx, "#agent-builder .actions a") }))
	f.must(tab.Click(ctx, "#agent-queue button[value='answer builder start']"))
	f.shows(ctx, tab, "that it continues", `document.querySelector(".said.good").textContent.includes("hands over 2 prompts") && document.querySelector("#agent-queue").textContent === ""`)
	f.must(tab.Go(ctx, f.home+"/page/"))
}

// dropsAside drops what an agent has set aside, which can be answered there, too.
func (f *fleet) dropsAside(ctx context.Context, tab *Tab) {
	f.t.Helper()
	f.must(tab.Go(ctx, f.home+"/page/agents/aside"))
	var asks bool
	f.must(tab.Eval(ctx, `document.querySelector("#agent-queue a[href^='/page/approvals/']") !== null`, &asks))
	f.must(tab.Loads(ctx, func() error { return tab.Click(ctx, "#agent-queue button[value^='drop aside']") }))
	var text string
	f.must(tab.Eval(ctx, "document.body.innerText", &text))
	if !asks || !strings.Contains(text, "aside: dropped") || strings.Contains(text, "The queue goes on") {
		f.t.Errorf("answerable %v; dropped aside, the page shows: %s", asks, text)
	}
}
