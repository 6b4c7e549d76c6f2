package page

import (
	"bytes"
	"html/template"
	"net/url"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"heartbeat/hook/foreign"
)

// markdown renders what agents say. Its renderer of HTML is ours where the text could become
// more than text: HTML in it is shown as it was written, a link leads only to a web page or a
// mailbox, and says to which; a picture is its description; a heading is no heading of the page.
var markdown = goldmark.New(
	goldmark.WithExtensions(
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)),
		extension.Strikethrough, extension.NewLinkify(extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"})),
	),
	goldmark.WithRendererOptions(html.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(harmless{}, 1))),
)

// rendered renders a text of an agent.
func rendered(t foreign.Text) template.HTML {
	var b bytes.Buffer
	said := textOf(t.Raw())
	if err := markdown.Convert([]byte(said), &b); err != nil { // a buffer takes all
		return template.HTML(template.HTMLEscapeString(said)) //nolint:gosec // it is escaped
	}
	return template.HTML(b.String()) //nolint:gosec // by harmless, and by a renderer that lets no HTML through
}

// unmarked is a text of an agent in one line, without the marks that rendered would render.
func unmarked(t foreign.Text) string {
	source := []byte(t.String())
	var b bytes.Buffer
	_ = ast.Walk(markdown.Parser().Parse(text.NewReader(source)), func(n ast.Node, enters bool) (ast.WalkStatus, error) { // it returns what the function does
		switch n := n.(type) {
		case *ast.Text:
			if enters {
				b.Write(n.Value(source))
			}
		case *ast.AutoLink:
			if enters {
				b.Write(n.Label(source))
			}
		case *ast.RawHTML:
			if enters {
				b.Write(n.Segments.Value(source))
			}
		case *ast.HTMLBlock, *ast.CodeBlock:
			if enters {
				b.Write(n.Lines().Value(source))
			}
		}
		return ast.WalkContinue, nil
	})
	if b.Len() == 0 { // a line of marks alone
		return t.String()
	}
	return foreign.Line(b.String())
}

// harmless renders what goldmark would render as what the text's author wanted.
type harmless struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (harmless) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, enters bool) (ast.WalkStatus, error) {
		block := n.(*ast.HTMLBlock) //nolint:forcetypeassert // of this kind
		if !enters {
			return ast.WalkContinue, nil
		}
		written := block.Lines().Value(source)
		if block.HasClosure() {
			written = append(bytes.Clone(written), block.ClosureLine.Value(source)...)
		}
		return write(w, "<pre>", string(written), "</pre>\n")
	})
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, enters bool) (ast.WalkStatus, error) {
		if !enters {
			return ast.WalkContinue, nil
		}
		return write(w, "", string(n.(*ast.RawHTML).Segments.Value(source)), "") //nolint:forcetypeassert // of this kind
	})
	r.Register(ast.KindHeading, func(w util.BufWriter, _ []byte, _ ast.Node, enters bool) (ast.WalkStatus, error) {
		if enters {
			return write(w, `<p class="said-title">`, "", "")
		}
		return write(w, "", "", "</p>\n")
	})
	code := func(w util.BufWriter, source []byte, n ast.Node, enters bool) (ast.WalkStatus, error) {
		if !enters {
			return ast.WalkContinue, nil
		}
		return write(w, "<pre><code>", string(n.Lines().Value(source)), "</code></pre>\n")
	}
	r.Register(ast.KindFencedCodeBlock, code)
	r.Register(ast.KindCodeBlock, code)
	r.Register(ast.KindLink, func(w util.BufWriter, source []byte, n ast.Node, enters bool) (ast.WalkStatus, error) {
		to, host := outside(string(n.(*ast.Link).Destination)) //nolint:forcetypeassert // of this kind
		switch {
		case to == "":
			return ast.WalkContinue, nil
		case enters:
			return write(w, `<a rel="noopener noreferrer nofollow" href="`, to, `">`)
		}
		return write(w, "</a> (", host, ")")
	})
	r.Register(ast.KindAutoLink, func(w util.BufWriter, source []byte, n ast.Node, enters bool) (ast.WalkStatus, error) {
		if !enters {
			return ast.WalkContinue, nil
		}
		link := n.(*ast.AutoLink) //nolint:forcetypeassert // of this kind
		to := string(link.URL(source))
		if link.AutoLinkType == ast.AutoLinkEmail {
			to = "mailto:" + to
		}
		if to, _ = outside(to); to == "" {
			return write(w, "", string(link.Label(source)), "")
		}
		return write(w, `<a rel="noopener noreferrer nofollow" href="`+template.HTMLEscapeString(to)+`">`, string(link.Label(source)), "</a>")
	})
	r.Register(ast.KindImage, func(w util.BufWriter, source []byte, _ ast.Node, enters bool) (ast.WalkStatus, error) {
		if enters {
			return write(w, "", "[picture: ", "")
		}
		return write(w, "", "]", "")
	})
}

// write writes a text, escaped, between what is ours.
func write(w util.BufWriter, before, text, after string) (ast.WalkStatus, error) {
	_, err := w.WriteString(before + template.HTMLEscapeString(text) + after)
	return ast.WalkContinue, err
}

// outside returns the address of a link that may be followed, and whose it is; "": it may not.
func outside(address string) (to, host string) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "", ""
	case u.Scheme == "mailto" && u.Opaque != "":
		return u.String(), u.Opaque
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil:
		return u.String(), u.Host
	}
	return "", ""
}
