package sources

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// onJSON renders a template that works on a document, in a poll and in a webhook.
func onJSON(t interface {
	Helper()
	Fatalf(string, ...any)
}, text, document string,
) string {
	t.Helper()
	value, err := DecodeJSON([]byte(document))
	if err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	poll, err := ParsePollTemplate(text, SplitJSON)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	hook, err := ParseWebhookTemplate(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	one, err := poll.Render(PollData{JSON: value, Output: document})
	if err != nil {
		t.Fatalf("%s of %s: %v", text, document, err)
	}
	two, err := hook.Render(NewWebhookData(value, document, func(string) (string, bool) { return "", false }))
	if err != nil || one != two {
		t.Fatalf("%s of %s: %q in a poll and %q in a webhook, %v", text, document, one, two, err)
	}
	return one
}

// TestWhatJSONSays walks what null, numbers, bools and what is not there mean.
func TestWhatJSONSays(t *testing.T) {
	t.Parallel()
	const document = `{"null": null, "n": 9, "zero": 0, "price": 10.50, "million": 1e6, "large": 123456789012345678901234567890,
		"id": 9007199254740993, "yes": true, "no": false, "text": "a<b", "digits": "007", "list": [1, null, {"a": null}], "object": {"b": "<", "a": null},
		"String": "s"}`
	for text, want := range map[string]string{
		"{{.JSON.null}}|{{.JSON.null.name.first}}|{{.JSON.gone}}|{{.JSON.gone.name}}|{{.JSON.n.name}}":                                                              "||||",
		"{{.JSON.n}} {{.JSON.price}} {{.JSON.million}} {{.JSON.large}} {{.JSON.id}} {{.JSON.yes}}":                                                                  "9 10.50 1000000 123456789012345678901234567890 9007199254740993 true",
		`{{.JSON.list}} {{.JSON.object}} {{.JSON.text}} {{.JSON.String}}`:                                                                                           `[1,null,{"a":null}] {"a":null,"b":"<"} a<b s`,
		"{{if gt .JSON.n 5}}hot{{end}}{{if lt .JSON.n 5}}cold{{end}}{{if gt .JSON.null 5}}x{{end}}{{if gt .JSON.text 5}}x{{end}}":                                   "hot",
		"{{gt .JSON.price 10}} {{lt .JSON.price 10.6}} {{eq .JSON.million 1000000}} {{gt .JSON.large .JSON.id}} {{eq .JSON.id 9007199254740992}}":                   "true true true true false",
		`{{eq .JSON.n "9"}} {{eq .JSON.null ""}} {{eq .JSON.gone nil}} {{eq .JSON.yes true}} {{eq .JSON.yes "true"}} {{eq .JSON.digits "7"}} {{eq .JSON.digits 7}}`: "true true true true true false false",
		`{{printf "%04d|%d|%d|%d|%d" .JSON.n .JSON.null .JSON.text .JSON.million .JSON.large}}`:                                                                     "0009||a<b|1000000|123456789012345678901234567890",
		`{{printf "%s|%v|%q|%5s|%-5d|" .JSON.n .JSON.null .JSON.n .JSON.yes .JSON.text}}`:                                                                           `9||"9"| true|a<b  |`,
		`{{printf "%.1f %.2f %t %x %5.1f" .JSON.price .JSON.n .JSON.yes .JSON.n .JSON.text}}`:                                                                       "10.5 9.00 true 9   a<b",
		"{{range .JSON.list}}({{.}}){{end}}{{range .JSON.null}}x{{end}}{{range .JSON.n}}[{{.}}]{{end}}{{range .JSON.gone}}x{{else}}none{{end}}":                     `(1)()({"a":null})[9]none`,
		"{{range $k, $v := .JSON.object}}{{$k}}={{$v}} {{end}}":                                                                                                     "a= b=< ",
		"{{index .JSON.list 0}}|{{index .JSON.list 7}}|{{index .JSON.list 2 `a`}}|{{index .JSON `n`}}|{{len .JSON.list}} {{len .JSON.null}}":                        "1|||9|3 0",
		"{{if .JSON.zero}}x{{end}}{{if .JSON.no}}x{{end}}{{if .JSON.null}}x{{end}}{{if .JSON.gone}}x{{end}}{{or .JSON.null .JSON.n}}":                               "9",
		"{{with .JSON.object}}{{.b}}{{.a.c}}{{$.JSON.n}}{{end}}{{(index .JSON.list 2).a}}{{slice .JSON.text 0 9}}":                                                  "<9a<b",
		"{{print .JSON.null .JSON.n}} {{html .JSON.text .JSON.null}} {{.JSON.text | printf `%s`}} {{define `x`}}{{.JSON.n}}{{end}}{{template `x` .}}":               "9 a&lt;b a<b 9",
	} {
		if got := onJSON(t, text, document); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestValidateRefusesWhatCannotWork: also where a trial run does not come by.
func TestValidateRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{if .JSON.a}}{{.JSON.a 5}}{{end}}":                   "is not a function",
		"{{if .JSON.a}}{{.JSON.a | .JSON.b}}{{end}}":           "is not a function",
		"{{if .JSON.a}}{{call .JSON.a}}{{end}}":                "no function to call",
		"{{if .JSON.a}}{{lt .JSON.a}}{{end}}":                  "lt has 1 values and needs 2",
		"{{if .JSON.a}}{{not .JSON.a 5}}{{end}}":               "not has 2 values and takes 1",
		"{{if .JSON.a}}{{template `x`}}{{end}}":                `no template "x"`,
		"{{if .JSON.a}}{{printf `%d`}}{{end}}":                 "printf has 0 values for a format of 1",
		"{{if .JSON.a}}{{printf `100% of %d` .JSON.a}}{{end}}": "printf",
		"{{if .JSON.a}}{{printf `%y` .JSON.a}}{{end}}":         "printf does not know %y",
		"{{if .JSON.a}}{{.Jason}}{{end}}":                      "there is no {{.Jason}}",
		"{{range .JSON.a}}{{$.lacks}}{{end}}":                  "there is no {{.lacks}}",
		"{{if .JSON.a}}{{.Header}}{{end}}":                     "Header}}",
		"{{range .JSON.a}}{{.Header `X`}}{{end}}":              "Header}} inside of range",
	} {
		_, err := ParseWebhookTemplate(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for _, parse := range []func(string) (*Template, error){ParseCronTemplate, ParseFileTemplate} {
		if _, err := parse("{{printf `%d %s` 5}}"); err == nil {
			t.Error("a format with too few values is taken")
		}
	}
	tmpl, err := ParseFileTemplate("{{printf `%d %q` .Name .Paths}} {{index .Paths 1}}")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tmpl.Render(FileData{Name: "a", Paths: []string{"b"}}); got != `a ["b"] ` || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// aValue draws JSON.
func aValue(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Just(any(nil)), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64Range(-1e15, 1e15).AsAny(),
		rapid.SampledFrom([]any{json.Number("1e6"), json.Number("-0.0"), json.Number("1e400"), json.Number("123456789012345678901234567890"), json.Number(strings.Repeat("7", 500))}),
		rapid.StringMatching("[a-z0-9 ]{0,3}").AsAny(),
	}
	if depth > 0 {
		kinds = append(kinds, rapid.SliceOfN(aValue(depth-1), 0, 3).AsAny(), rapid.MapOfN(rapid.StringMatching("[ab]"), aValue(depth-1), 0, 2).AsAny())
	}
	return rapid.OneOf(kinds...)
}

// anExpression draws what stands between braces.
func anExpression(t *rapid.T, depth int) string {
	leaves := []string{".JSON", ".JSON.a", ".JSON.a.b", ".JSON.b.a.b", ".Body", "$.JSON.b", "$.JSON", ".a", ".b.a", ".", "5", "99999999999999999999", "18446744073709551615", "1i", "0.5", `"x"`, `"9"`, "true", "nil", "`%d`"}
	if depth == 0 {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	arg := func() string {
		at := rapid.IntRange(0, depth).Draw(t, "depth")
		if at == depth {
			return anExpression(t, 0)
		}
		return "(" + anExpression(t, at) + ")"
	}
	name := rapid.SampledFrom([]string{
		"eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "index", "slice", "len", "print", "println", "html", "js", "urlquery", "printf", "field", "call",
	}).Draw(t, "function")
	switch name {
	case "printf":
		verb := rapid.SampledFrom(strings.Split("v s q d b o O x X c U e E f F g G t 04d +d .2f -5s #x #v 5.1f % y", " ")).Draw(t, "verb")
		return fmt.Sprintf("printf %q %s", "%"+verb, arg())
	case "field":
		return arg() + ".a.b"
	}
	var text strings.Builder
	text.WriteString(name)
	for range rapid.IntRange(0, 3).Draw(t, "arguments") {
		text.WriteString(" " + arg())
	}
	return text.String()
}

func aTemplate(t *rapid.T, depth int) string {
	e := anExpression(t, rapid.IntRange(0, 2).Draw(t, "depth"))
	if depth == 0 {
		return "{{" + e + "}}"
	}
	body := aTemplate(t, depth-1)
	return rapid.SampledFrom([]string{
		"{{" + e + "}}" + body, "{{if " + e + "}}" + body + "{{else}}x{{end}}", "{{range " + e + "}}" + body + "{{end}}", "{{with " + e + "}}" + body + "{{end}}",
		"{{range $i, $e := " + e + "}}{{$e.a}}" + body + "{{end}}", "{{$v := " + e + "}}{{$v.a.b}}{{printf `%d` $v}}" + body,
		"{{define `d`}}" + body + "{{end}}{{template `d` " + e + "}}", "{{" + e + " | printf `%s %d` 5}}" + body,
	}).Draw(t, "shape")
}

// TestNoTemplateFailsForWhatJSONSays: whatever validate accepts makes a prompt of
// whatever a command prints or somebody sends.
func TestNoTemplateFailsForWhatJSONSays(t *testing.T) {
	t.Parallel()
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string { return aTemplate(t, 2) }).Filter(func(text string) bool {
			_, err := ParseWebhookTemplate(text)
			return err == nil
		}).Draw(t, "template")
		accepted++
		document, err := json.Marshal(aValue(3).Draw(t, "document"))
		if err != nil {
			t.Fatal(err)
		}
		got := onJSON(t, strings.ReplaceAll(text, ".Body", ".JSON"), string(document))
		for _, bad := range []string{"%!", "<nil>", "<no value>", "map["} {
			if strings.Contains(got, bad) {
				t.Fatalf("%s of %s: %q", text, document, got)
			}
		}
	})
	if accepted < 5 {
		t.Errorf("only %d templates were accepted", accepted)
	}
}
