package browser

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

// TestAToolIsAllowedWhereItIsSaid: a tap writes the rule into the fleet's file, which stays as it
// was otherwise, and the next session may use the tool. What was not refused, and what cannot be
// loaded, is not done.
func TestAToolIsAllowedWhereItIsSaid(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f := newPictured(t)
	f.start()
	f.does("send", "reviewer", "--wait", "Review incoming/release-notes.md")
	tab := f.open(ctx, "act")
	f.must(tab.Go(ctx, f.home+"/page/"))
	const button = `button[value="allow reviewer WebFetch"]`
	f.shows(ctx, tab, "what was refused", `document.querySelector("#troubles").innerText.includes("reviewer was not allowed WebFetch") && document.querySelector('`+button+`') !== null`)
	f.must(tab.Eval(ctx, `document.querySelector('`+button+`').value = "allow reviewer Bash"`, nil))
	f.must(tab.Click(ctx, `button[value="allow reviewer Bash"]`))
	f.shows(ctx, tab, "that another tool is not allowed", `document.querySelector("#said").textContent.includes("was not refused it in its last session")`)
	f.must(tab.Go(ctx, f.home+"/page/"))
	f.must(tab.Click(ctx, button))
	f.shows(ctx, tab, "that it is allowed", `document.querySelector("#said").textContent.includes("reviewer may use WebFetch, from its next session on")`)
	f.shows(ctx, tab, "that nothing needs a person", `document.querySelector("#troubles").innerText.includes("All is well")`)
	file, err := os.ReadFile(filepath.Join(f.dir, "heartbeat.yaml"))
	f.must(err)
	want := strings.Replace(strings.Replace(pictured, "%s", f.at, 1), "permissions: {allow: [Read]}}", `permissions: {allow: ["WebFetch", Read]}}`, 1)
	if string(file) != want {
		t.Errorf("the file is\n%s, want\n%s", file, want)
	}
	f.does("send", "reviewer", "--wait", "Review incoming/release-notes.md once more")
	if !testbed.Await(testbed.Patience, func() bool {
		out := f.does("status", "reviewer", "-o", "json")
		return strings.Contains(out, `"acknowledged":2`) && !strings.Contains(out, `"denied"`)
	}) {
		t.Errorf("it is refused again: %s", f.does("status", "reviewer", "-o", "json"))
	}
	if out := f.does("events"); !strings.Contains(out, "allow reviewer WebFetch") {
		t.Errorf("the journal does not say who has allowed it: %s", out)
	}
}
