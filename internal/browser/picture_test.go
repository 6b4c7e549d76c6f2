package browser

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

// pictured is the fleet of docs/page.png.
const pictured = `version: 1
name: office
max-sessions: 2
listen: [{address: "%s", serve: [page]}]
budget: {day: {cost: 20}}
defaults: {command: [heartbeat, simulate, --home, .home, --script, ../../picture.json], permissions: {allow: [Read, Bash]}}
agents:
  clerk: {dir: agents/clerk, trigger: {cron: "0 7 * * *", prompt: "Sort the mail in mail/ and say what needs an answer today."}}
  fixer: {dir: agents/fixer}
  reviewer: {dir: agents/reviewer, permissions: {allow: [Read]}}
  release: {dir: agents/release, until: {check: ["true"], approve: [release]}}
`

const pictureScript = `{"rules": [
  {"match": "mail", "steps": [{"reply": "One of 3 mails needs you today: the dentist moves Thursday to 8:30 unless you call."}]},
  {"match": "ticket 42", "steps": [{"tool": "Bash", "command": "make test"}, {"reply": "It passes."}]},
  {"match": "Review", "steps": [{"tool": "WebFetch", "input": {"url": "https://example.org/licence", "prompt": "What does it ask for?"}}, {"reply": "Two remarks on **import --force**; I could not read the licence."}]},
  {"match": "release", "steps": [{"reply": "Release 2.4 is built and tagged."}]}]}`

const (
	pictureFile = "../../docs/page.png"
	// mostPicture is how many bytes the README's picture has at most.
	mostPicture = 150 << 10
)

// TestThePictureOfThePage: the README has a picture of the page, which is not large. With
// UPDATE_GOLDEN=1 it is made anew, of a fleet on the simulated client.
func TestThePictureOfThePage(t *testing.T) {
	t.Parallel()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		draw(ctx, t)
	}
	data, err := os.ReadFile(pictureFile)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil || picture.Width != 960 || picture.Height < 400 || len(data) > mostPicture {
		t.Errorf("%+v, %d bytes, %v", picture, len(data), err)
	}
}

// newPictured is the fleet of the picture.
func newPictured(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t)
	f.declares(pictured, "clerk", "fixer", "reviewer", "release")
	f.must(os.WriteFile(filepath.Join(f.dir, "picture.json"), []byte(pictureScript), 0o600))
	return f
}

func draw(ctx context.Context, t *testing.T) {
	t.Helper()
	f := newPictured(t)
	f.must(os.WriteFile(filepath.Join(f.dir, "agents", "fixer", "Makefile"), []byte("test:\n\tsleep 300\n"), 0o600))
	f.start()
	f.does("send", "clerk", "--wait", "Sort the mail in mail/ and say what needs an answer today.")
	f.does("send", "reviewer", "--wait", "Review incoming/release-notes.md")
	f.does("send", "release", "Build release 2.4")
	f.does("send", "fixer", "Work on ticket 42: export all rows")
	f.does("send", "fixer", "Work on ticket 43: the login page is blank in Safari")
	tab := f.open(ctx, "act")
	f.must(tab.Look(ctx, 960, false))
	for _, what := range []string{"release asks", "reviewer was not allowed", "make test"} {
		f.shows(ctx, tab, what, `document.getElementById("parts").innerText.includes("`+what+`")`)
	}
	f.must(tab.Eval(ctx, `document.querySelector("footer").remove()`, nil))
	f.must(tab.Eval(ctx, `document.querySelector("main").style.minHeight = "0"`, nil))
	f.must(tab.Eval(ctx, `document.body.style.minHeight = "0"`, nil))
	shot, err := tab.Shot(ctx)
	f.must(err)
	f.must(os.WriteFile(pictureFile, shot, 0o644)) //nolint:gosec // a picture of the documents
}
