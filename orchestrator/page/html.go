package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
)

//go:embed html/*.html
var pages embed.FS

//go:embed assets
var assets embed.FS

// parse reads the templates; a mistake in one shows in every test.
func parse() *template.Template {
	return template.Must(template.New("").Funcs(functions()).ParseFS(pages, "html/*.html"))
}

func functions() template.FuncMap {
	all := template.FuncMap{
		"agentURL": agentURL,
		"partID":   partID,
		"line":     foreign.Line,
		"span":     status.Span,
		"age":      func(t time.Time) template.HTML { return timeTag("age", t) },
		"till":     func(t time.Time) template.HTML { return timeTag("till", t) },
		"at":       func(t time.Time) template.HTML { return timeTag("at", t) },
		"tokens":   usage.Tokens,
		"count":    count,
		"command":  commandOf,
		"deed":     func(words ...string) string { return strings.Join(words, " ") },
		"percent":  func(f float64) string { return strconv.Itoa(int(f+0.5)) + " %" },
	}
	maps.Copy(all, agentFunctions())
	return all
}

// agentURL is the address of an agent's page.
func agentURL(name string) string { return Root + "agents/" + url.PathEscape(name) }

// count is a number with the thing that it counts.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// command is something to type, and a remark about it.
type command struct{ Line, Remark string }

// commandOf returns the command of a step, or nil: it is words.
func commandOf(step string) *command {
	if !strings.HasPrefix(step, "heartbeat ") {
		return nil
	}
	line, remark, _ := strings.Cut(step, "   # ")
	return &command{foreign.Line(line), foreign.Line(remark)}
}

// timeTag is a moment: how long ago (age), in how long (till), or when (at). Its text is
// filled in where it is shown, so that what only grows older has not changed.
func timeTag(class string, t time.Time) template.HTML {
	if t.IsZero() {
		return ""
	}
	return template.HTML(`<time class="` + class + `" datetime="` + t.UTC().Format(time.RFC3339) + `"></time>`) //nolint:gosec // both are ours
}

var timeTags = regexp.MustCompile(`<time class="(age|till|at)" datetime="([-0-9T:Z]+)"></time>`)

// fillAges writes the text of moments into a page. Nobody else writes such elements:
// the text of others is escaped.
func fillAges(html []byte, now time.Time) []byte {
	return timeTags.ReplaceAllFunc(html, func(tag []byte) []byte {
		parts := timeTags.FindSubmatch(tag)
		t, err := time.Parse(time.RFC3339, string(parts[2]))
		if err != nil {
			return tag
		}
		text := status.Age(now.Sub(t))
		switch class := string(parts[1]); {
		case class == "till" && t.After(now):
			text = "in " + status.Age(rounded(t.Sub(now)))
		case class == "till":
			text = "now"
		case class == "at":
			tag = fmt.Appendf(nil, `<time class="at" datetime="%s" title="%s"></time>`, parts[2], t.Local().Format(time.DateTime))
			text = moment(t, now)
		}
		return slices.Concat(tag[:len(tag)-len("</time>")], []byte(text), []byte("</time>"))
	})
}

// moment formats a time for a reader at another time: without the date if it is today, without
// the year if it is this year.
func moment(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// rounded rounds a future time to the units in which it is shown, so that something that ends in
// seven days is not said to end in six a moment later.
func rounded(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute} {
		if d >= unit+unit/2 && (unit < 24*time.Hour || d >= 48*time.Hour-unit/48) {
			return d.Round(unit)
		}
	}
	return d
}

// style is all stylesheets as one.
var style = sync.OnceValue(func() []byte {
	entries, err := assets.ReadDir("assets")
	if err != nil {
		panic(err) // it is embedded
	}
	var all bytes.Buffer
	for _, e := range entries { // in the order of their names
		if strings.HasSuffix(e.Name(), ".css") {
			all.Write(embedded(e.Name()))
		}
	}
	return all.Bytes()
})

func embedded(name string) []byte {
	body, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return body
}

func assetOf(name string) []byte {
	if name == "style.css" {
		return style()
	}
	return embedded(name)
}

// versionOfAssets changes with the assets of a page, so that browsers do not use old ones.
var versionOfAssets = sync.OnceValue(func() string {
	sum := sha256.Sum256(slices.Concat(style(), embedded("live.js"), embedded("keys.js"), embedded("icon.svg")))
	return hex.EncodeToString(sum[:6])
})
