package page

import (
	"strings"
	"testing"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/page/window"
	"heartbeat/orchestrator/transcript"
)

// TestWhatAnAgentSaysIsRendered: its marks are, and nothing in it becomes more than text. A
// link leads only where it says, and to no place of ours.
func TestWhatAnAgentSaysIsRendered(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"**bold** `code` ~~gone~~":             "<p><strong>bold</strong> <code>code</code> <del>gone</del></p>",
		"# Title":                              `<p class="said-title">Title</p>`,
		"one\ntwo":                             "<p>one<br>\ntwo</p>",
		"- a\n- b":                             "<ul>\n<li>a</li>\n<li>b</li>\n</ul>",
		"3. c":                                 "<ol start=\"3\">\n<li>c</li>\n</ol>",
		"```go x\na < b\n```":                  "<pre><code>a &lt; b\n</code></pre>",
		"    indented":                         "<pre><code>indented\n</code></pre>",
		"[docs](https://a.example/b?c=1&d=2)":  `<p><a rel="noopener noreferrer nofollow" href="https://a.example/b?c=1&amp;d=2">docs</a> (a.example)</p>`,
		"[me](mailto:a@b.example)":             `<p><a rel="noopener noreferrer nofollow" href="mailto:a@b.example">me</a> (a@b.example)</p>`,
		"see https://a.example/b.":             `<p>see <a rel="noopener noreferrer nofollow" href="https://a.example/b">https://a.example/b</a>.</p>`,
		"[x](javascript:alert(1))":             "<p>x</p>",
		"[x](JaVaScRiPt:alert(1))":             "<p>x</p>",
		"[x](/page/act) [y](//evil.example)":   "<p>x y</p>",
		"[main.go](main.go:42)":                "<p>main.go</p>",
		"[x](https://a.example@evil.example/)": "<p>x</p>",
		"<javascript:alert(1)>":                "<p>javascript:alert(1)</p>",
		"![a plan](https://evil.example/x)":    "<p>[picture: a plan]</p>",
		"a <b>b</b>":                           "<p>a &lt;b&gt;b&lt;/b&gt;</p>",
		"<script>\nx\n</script>":               "<pre>&lt;script&gt;\nx\n&lt;/script&gt;</pre>",
		"|a|b|\n|:-|-:|\n|1|2|":                "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table>",
	} {
		if got := strings.TrimSpace(string(rendered(foreign.Text(text)))); got != want {
			t.Errorf("%q is\n%s, want\n%s", text, got, want)
		}
	}
}

// TestARowHasNoMarks of what its agent said, and all of its words.
func TestARowHasNoMarks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Two remarks on **import --force**, see `a.go` and [it](https://a.example).": "Two remarks on import --force, see a.go and it.",
		"# Done": "Done", "1. one": "one", "a <b>b</b> https://a.example": "a <b>b</b> https://a.example", "<p>x</p>": "<p>x</p>",
		"```": "```", "---": "---", "": "", "2 < 3 & \"4\"": "2 < 3 & \"4\"", "a\nb": "a b",
	} {
		if got := unmarked(foreign.Text(text)); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestACallOfAToolIsItsGist, and the whole of it is unfolded.
func TestACallOfAToolIsItsGist(t *testing.T) {
	t.Parallel()
	l := window.Line{ID: 7, Line: transcript.Line{Kind: transcript.Tool, Name: "Bash", Text: `{"command":"git status","timeout":3}`}}
	html, err := newLab(t).page.draw("agent-line", l)
	for _, want := range []string{"<strong>Bash</strong></span> <code>git status</code></summary>", "{\n  &#34;command&#34;: &#34;git status&#34;,\n"} {
		if err != nil || !strings.Contains(string(html), want) {
			t.Errorf("without %q: %v %s", want, err, html)
		}
	}
}

// TestADeepTextIsRendered: nothing that an agent says ends the run.
func TestADeepTextIsRendered(t *testing.T) {
	t.Parallel()
	for _, deep := range []string{"> ", "[", "*a ", "- ", "![", "<", "`", "|a", "&", "**_", "(http://a.b/"} {
		if rendered(foreign.Text(strings.Repeat(deep, (4<<10)/len(deep)))) == "" {
			t.Errorf("%q comes to nothing", deep)
		}
	}
}
