package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Wording is a phrase that a reader has to read twice, and what to write instead.
type Wording struct {
	phrase  *regexp.Regexp
	Instead string
	// Code is true if comments, and documents about the code, avoid it too.
	Code bool
}

func wording(phrase, instead string) Wording {
	return Wording{phrase: regexp.MustCompile(`(?i)` + phrase), Instead: instead}
}

func everywhere(w Wording) Wording {
	w.Code = true
	return w
}

// wordings are the phrases that are not used.
var wordings = []Wording{
	everywhere(wording(`(?-i:(?:^|\s)anew\b)`, "again, from the start, new")), // but for names in code
	everywhere(wording(`\bof that(?:$|[.,;:)])`, "name the thing")),
	everywhere(wording(`\b(?:sees? to|be seen to)\b`, "mend, handle, make sure")),
	everywhere(wording(`\breckon`, "count, expect")),
	everywhere(wording(`\b(?:is|are) whose\b`, "name the thing")),
	wording(`\bof (?:whom|whose)\b`, "name the thing"),
	everywhere(wording(`\bin work\b`, "being worked on")),
	everywhere(wording(`\bfor want of\b`, "without")),
	everywhere(wording(`\b(?:albeit|hereby|hitherto|lest|ought|shall|thereby|therein|thereof|upon|whereby|wherein)\b`, "a word of today")),
	wording(`\b(?:by|of) which\b`, "a sentence of its own"),
	wording(`\b(?:is|are|was|were) to be\b`, "has to be, will be"),
	wording(`(?:it|this|that|one|or) is none\b`, "is not one"),
	wording(`\bof no use\b`, "useless"),
	wording(`; else\b`, "; otherwise"),
	wording(`\bgood once\b`, "works once"),
	wording(`\bbeside that\b`, "as well"),
	wording(`\bcame? to: `, "the result: "),
	wording(`\bin the mean\b`, "on average"),
	wording(`\bor so\b`, "about"),
}

// notOne finds "it is no file", which is "it is not a file".
var notOne = regexp.MustCompile(`(?i)(\w+) (?:is|are) no (\w+)`)

// Unclear returns the phrases of a text that are not used, with what to write instead.
// With code true it is a comment, or a document about the code.
func Unclear(text string, code bool) (found []string) {
	for _, w := range wordings {
		if m := w.phrase.FindString(text); m != "" && (w.Code || !code) {
			found = append(found, strconv.Quote(strings.TrimSpace(m))+", write: "+w.Instead)
		}
	}
	for _, m := range notOne.FindAllStringSubmatch(text, -1) {
		if !code && !strings.EqualFold(m[1], "there") && !slices.Contains([]string{"longer", "more", "other", "second"}, m[2]) {
			found = append(found, strconv.Quote(m[0])+", write: is not a")
		}
	}
	return found
}

// Said is a text of a Go file: a string, or a comment with Code true.
type Said struct {
	Line int
	Text string
	Code bool
}

// Texts returns the strings and comments of a Go file.
func Texts(name string, source []byte) (all []Said, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, group := range file.Comments {
		all = append(all, Said{files.Position(group.Pos()).Line, strings.Join(strings.Fields(group.Text()), " "), true})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING {
			value, _ := strconv.Unquote(text.Value) // the parser has read it
			all = append(all, Said{files.Position(text.Pos()).Line, strings.Join(strings.Fields(value), " "), false})
		}
		return true
	})
	return all, nil
}
