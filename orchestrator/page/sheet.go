package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/hook/foreign"
)

// ErrNotFound means that what a page would show does not exist.
var ErrNotFound = errors.New("there is no such page")

// Sheet is the contents of one page. It depends on the address and on whether the viewer may act,
// and on nothing else about the viewer.
type Sheet struct {
	Title string
	// Crumb is what the way back to the fleet's page ends with; "": it is that page.
	Crumb string
	Parts []Part
	// Needs is how many troubles of the fleet need a person, Asks how many requests wait
	// for an answer.
	Needs, Asks int
}

// window is the title of the window, with what the page belongs to.
func (s Sheet) window(around string) string {
	title := s.Title
	if s.Crumb != "" {
		title += " · " + around
	}
	if s.Needs > 0 {
		return fmt.Sprintf("(%d) %s", s.Needs, title)
	}
	return title
}

// Part is a piece of a page that is sent again when it changes.
type Part struct {
	// ID is its element's, of our own making: letters, digits and hyphens (partID).
	ID string
	// Tag is its element's name; "": section. Class are its classes.
	Tag, Class string
	// Label names a section for people who cannot see it, or is "".
	Label string
	// HTML is what Page.draw returned.
	HTML template.HTML
	// Kids are the parts below HTML, in an element KidsTag ("": div) of the class
	// KidsClass.
	Kids               []Part
	KidsTag, KidsClass string
	// Open is true for a part of the tag details that is unfolded at first.
	Open bool
	// Still is true for what people fill in: it is not sent again.
	Still bool
	// Polite is true for what a screen reader is to read when it changes.
	Polite bool
}

// ask is a request for a page.
type ask struct {
	r *http.Request
	// Acts is true if the viewer may act.
	Acts bool
	Now  time.Time
}

// Path returns a variable of the page's path.
func (q ask) Path(name string) string { return q.r.PathValue(name) }

// Query returns a variable of the query in the address.
func (q ask) Query() url.Values { return q.r.URL.Query() }

// sheet is a page and its address: a pattern of http.ServeMux.
type sheet struct {
	path string
	show func(p *Page, ctx context.Context, q ask) (Sheet, error)
}

// draw executes a template, and makes control characters in the result harmless. What comes to
// nothing is "".
func (p *Page) draw(name string, data any) (template.HTML, error) {
	var b bytes.Buffer
	if err := p.html().ExecuteTemplate(&b, name, data); err != nil {
		return "", err
	}
	return template.HTML(strings.TrimSpace(strings.Map(still, b.String()))), nil //nolint:gosec // html/template has escaped it
}

// still replaces a character that acts on a terminal or turns text around.
func still(r rune) rune {
	if r != '\n' && r != '\t' && foreign.Acts(r) {
		return utf8.RuneError
	}
	return r
}

// partID returns an element's id for a name that may hold anything.
func partID(kind, name string) string {
	plain := len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == ""
	if plain {
		return kind + "-" + name
	}
	sum := sha256.Sum256([]byte(name))
	return kind + "-x" + hex.EncodeToString(sum[:8])
}

// Hash returns six characters that change with the part, but not with its kids.
func (t Part) Hash() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %v %v %s", t.Tag, t.Class, t.Label, t.Still, t.Polite, t.HTML))
	return hex.EncodeToString(sum[:3])
}

// Begin and End are the element around a part.
func (t Part) Begin() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<%s id="%s" data-part="%s"`, t.tag(), t.ID, t.Hash())
	for _, a := range [][2]string{{"class", t.Class}, {"aria-label", t.Label}} {
		if a[1] != "" {
			fmt.Fprintf(&b, ` %s="%s"`, a[0], template.HTMLEscapeString(a[1]))
		}
	}
	if t.Polite {
		b.WriteString(` role="status"`)
	}
	if t.Still {
		b.WriteString(` data-still`)
	}
	if t.Open {
		b.WriteString(` open`)
	}
	b.WriteString(">")
	return template.HTML(b.String()) //nolint:gosec // it is escaped
}

// End implements the end of Begin.
func (t Part) End() template.HTML { return template.HTML("</" + t.tag() + ">") } //nolint:gosec // it is ours

func (t Part) tag() string {
	if t.Tag == "" {
		return "section"
	}
	return t.Tag
}

// Below is the element around a part's kids, or "".
func (t Part) Below() template.HTML {
	if t.KidsTag == "" && len(t.Kids) == 0 {
		return ""
	}
	return template.HTML(fmt.Sprintf(`<%s id="%s-kids" class="%s">`, t.kidsTag(), t.ID, template.HTMLEscapeString(t.KidsClass))) //nolint:gosec // it is escaped
}

// BelowEnd is the end of Below.
func (t Part) BelowEnd() template.HTML {
	if t.Below() == "" {
		return ""
	}
	return template.HTML("</" + t.kidsTag() + ">") //nolint:gosec // it is ours
}

func (t Part) kidsTag() string {
	if t.KidsTag == "" {
		return "div"
	}
	return t.KidsTag
}
