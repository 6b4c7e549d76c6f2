package page

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/page/changes"
	"heartbeat/orchestrator/page/window"
	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/status"
)

// evil are texts that agents, files' names, webhooks and prompts may have: markup, what
// ends an attribute or an element of ours, addresses, what acts on a terminal or turns
// text around, and what our own templates and moments look like.
var evil = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'><svg/onload=alert(1)>`, "` onfocus=alert(1) autofocus x=",
	`</pre></textarea></title></style></summary><iframe src="//evil.example">`, `javascript:alert(1)`, `//evil.example/`, `https://evil.example/`,
	`data:text/html,<script>alert(1)</script>`, `{{.}}{{define "layout"}}x{{end}}`, `<time class="age" datetime="2026-01-01T00:00:00Z"></time>`,
	`<!-- `, ` --> ]]>`, `&lt;script&gt;`, "\x1b]0;title\x07\x1b[31m\x1b[2J", "\u009b31m", "\u202egpj.exe", "\u2066x\u2069", "\u2028\u2029\u00ad\ufeff", "a\x00b\x7f",
	"bad \xff\xfe utf-8", "\U000e0041", "line\r\nof\ttext\rover", "resume triage", "a b c", "../../etc", `<a href="https://evil.example" ping="x" style="position:fixed">click</a>`,
	"# title\n\n[click](javascript:alert(1)) [here](https://evil.example/ \"title\") <javascript:alert(1)> ![x](https://evil.example/x.png) [x][y]\n\n[y]: data:text/html,x\n\n- [ ] `<b>`\n\n```html onload=x\n<script>\n```\n\n|a|b|\n|:-|-:|\n|<i>|x|\n",
	"<div onclick=alert(1)>\n*x*\n</div>\n\n<!-- a -->\n\n<?php x ?>\n\n<![CDATA[x]]>\n\na <b onclick=x>b</b> <https://evil.example/\"onclick=x> &#x3C;script&#x3E; www.evil.example mail@evil.example",
	`<form action="https://evil.example"><input name="csrf">`, `<base href="https://evil.example/">`, `<meta http-equiv="refresh" content="0;url=//evil.example">`, `<link rel=stylesheet href=//evil.example>`,
}

// fill puts a text into each string of a value, one into each slice and map, and
// something into what points to something.
func fill(v reflect.Value, text string, deep int) {
	if !v.CanSet() || deep > 8 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Uint8:
		if v.Kind() == reflect.Uint8 {
			v.SetUint('+')
			return
		}
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, deep+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), text, deep+1)
		}
	case reflect.Map:
		key, of := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, text, deep+1)
		fill(of, text, deep+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, of)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Now().Add(-time.Minute)))
			return
		}
		for _, field := range v.Fields() {
			fill(field, text, deep+1)
		}
	}
}

func filled[T any](text string) (v T) {
	fill(reflect.ValueOf(&v).Elem(), text, 0)
	return v
}

// evilReads answers everything with a text.
type evilReads struct {
	text string
	err  error
}

func (r evilReads) Fleet(context.Context) (Fleet, error) { return filled[Fleet](r.text), nil }
func (r evilReads) Agent(context.Context, string) (status.Agent, []status.Trouble, error) {
	return filled[status.Agent](r.text), filled[[]status.Trouble](r.text), nil
}

func (r evilReads) Said(context.Context, string) ([]window.Line, error) {
	lines := filled[[]window.Line](r.text)
	for _, k := range []string{"prompt", "text", "tool", "result"} {
		l := filled[window.Line](r.text)
		reflect.ValueOf(&l).Elem().FieldByName("Kind").SetString(k)
		l.Failed = false
		lines = append(lines, l)
	}
	return lines, r.err
}

func (r evilReads) Screen(context.Context, string) (Screen, error) {
	all := filled[Screen](r.text)
	all.Note = ""
	return all, r.err
}

func (r evilReads) Queue(context.Context, string) (Queue, error) { return filled[Queue](r.text), r.err }

func (r evilReads) Triggers(string) ([]Trigger, error) { return filled[[]Trigger](r.text), r.err }

func (r evilReads) Record(context.Context, string) (Record, error) {
	return filled[Record](r.text), r.err
}

func (r evilReads) Changes(context.Context, string) (*changes.Changes, error) {
	return filled[*changes.Changes](r.text), r.err
}

func (r evilReads) Waiting() ([]approval.Request, error) {
	return filled[[]approval.Request](r.text), r.err
}

func (r evilReads) Done() ([]approval.Request, error) {
	return filled[[]approval.Request](r.text), r.err
}

func (r evilReads) Find(string) (approval.Request, error) {
	a := filled[approval.Request](r.text)
	a.State = approval.Asked
	return a, nil
}

func (r evilReads) Answer(context.Context, string, approval.Answer) (approval.Request, error) {
	return r.Find("")
}

func (r evilReads) Series(_ context.Context, _ string, since, now time.Time, every series.Every) (series.Past, error) {
	return series.Past{Since: since, Now: now, Every: every, Points: []series.Point{filled[series.Point](r.text)}}, nil
}

// elements and attributes that our templates have.
var (
	elements = strings.Fields("html head meta title link script body a header nav p main h1 h2 h3 form input div section ul ol li dl dt dd span strong code pre button time details summary " +
		"textarea label table thead tbody tr th td figure figcaption svg path meter footer br kbd q em del blockquote hr")
	attributes = strings.Fields("id class href lang charset name content rel src defer type action method value autocomplete data-at data-part data-still disabled title aria-label aria-current aria-hidden aria-labelledby " +
		"role tabindex form rows maxlength for scope datetime open min max high hidden start viewBox preserveAspectRatio focusable vector-effect d")
	addresses = []string{"href", "src", "action"}
)

// TestNothingThatOthersWriteActs: on each page, with each of these texts wherever others
// can write one, there are elements, attributes and addresses of ours alone, and no
// character that acts.
func TestNothingThatOthersWriteActs(t *testing.T) {
	t.Parallel()
	texts := append(slices.Clone(evil), strings.Join(evil, " "), strings.Join(evil, "\n"))
	for _, text := range texts {
		for _, failed := range []error{nil, errors.New(text)} {
			reads := evilReads{text, failed}
			p := New(Options{Fleet: "fleet", Read: reads, Agents: reads, Approvals: reads})
			for _, s := range sheets {
				for _, acts := range []bool{true, false} {
					at := strings.NewReplacer("{$}", "", "{agent}", "triage", "{id}", "4f1c02d3").Replace(s.path)
					shown, err := p.look(t.Context(), view{at, acts})
					if err != nil {
						if failed == nil {
							t.Errorf("%s with %q: %v", at, text, err)
						}
						continue
					}
					who := access.Who{Role: access.Look}
					if acts {
						who.Role = access.Act
					}
					w := httptest.NewRecorder()
					p.layout(w, 200, frame{Sheet: shown, Who: who, Key: "key", At: at, Said: &said{Text: text}})
					if t.Failed() {
						return
					}
					safePage(t, at, text, w.Body.String())
				}
			}
		}
	}
}

func safePage(t *testing.T, at, text, body string) {
	t.Helper()
	for _, r := range body {
		if r != '\n' && r != '\t' && r != utf8.RuneError && foreign.Acts(r) {
			t.Errorf("%s with %q: %U comes out", at, text, r)
			return
		}
	}
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(body, "<!doctype html>")))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("%s with %q: %v", at, text, err)
			return
		}
		switch e := token.(type) {
		case xml.Comment, xml.ProcInst, xml.Directive:
			t.Errorf("%s with %q: %q", at, text, e)
		case xml.StartElement:
			if !slices.Contains(elements, e.Name.Local) || e.Name.Local == "script" && !ourScript(e) {
				t.Errorf("%s with %q: <%s>", at, text, e.Name.Local)
			}
			for _, a := range e.Attr {
				known := slices.Contains(attributes, a.Name.Local)
				if !known || slices.Contains(addresses, a.Name.Local) && !ourAddress(a.Value) && !leadsOut(e, a) {
					t.Errorf("%s with %q: <%s %s=%q>", at, text, e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
}

func ourScript(e xml.StartElement) bool {
	return slices.ContainsFunc(e.Attr, func(a xml.Attr) bool {
		return a.Name.Local == "src" && (strings.HasPrefix(a.Value, "/page/live.js?v=") || strings.HasPrefix(a.Value, "/page/keys.js?v="))
	})
}

// leadsOut reports whether an attribute is the address of a link of an agent's text to a web
// page or a mailbox, which learns nothing of ours.
func leadsOut(e xml.StartElement, to xml.Attr) bool {
	alone := slices.Contains(e.Attr, xml.Attr{Name: xml.Name{Local: "rel"}, Value: "noopener noreferrer nofollow"})
	return e.Name.Local == "a" && alone && len(e.Attr) == 2 && to.Name.Local == "href" && (strings.HasPrefix(to.Value, "https://") || strings.HasPrefix(to.Value, "http://") || strings.HasPrefix(to.Value, "mailto:"))
}

func ourAddress(url string) bool {
	return strings.HasPrefix(url, "/page/") || strings.HasPrefix(url, "?of=") || url == "#main"
}

// TestButtonsNameOnlyWhatIsOurs: an id that an agent made up names nothing.
func TestButtonsNameOnlyWhatIsOurs(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{"4f1c02d3a9be": true, "a b": false, "": false, `x" onclick="y`: false, "-x": false, "../x": false, strings.Repeat("a", 200): false} {
		if got := ours(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}
