package rooms

import (
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Who reads this repository has nothing else, so what a comment or a document
// refers to stands here: files by their paths, tests by their names, recordings
// of the client by their scenarios. Sections are numbered in no document of ours.
var (
	document = regexp.MustCompile(`[\w./-]*\w\.md\b`)
	section  = regexp.MustCompile(`(RFC \d+,? )?(§|\b[Ss]ections? \d)`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	recorded = regexp.MustCompile(`Recorded: ([a-z0-9_-]+(?:,\s[a-z0-9_-]+)*)`)
	testName = regexp.MustCompile(`\bTest[A-Z]\w*…?`)
	address  = regexp.MustCompile(`^[a-z]+:`)
)

// clients are documents that the client reads in a workspace.
var clients = []string{"CLAUDE.md", "CLAUDE.local.md"}

// Repository is what references may lead to.
type Repository struct {
	// Paths are the files and folders, from the root.
	Paths map[string]bool
	// Tests are the names of all test functions.
	Tests map[string]bool
}

// References returns what the comments of a Go file, or a Markdown file, refer
// to and the repository does not have.
func (r Repository) References(name string, source []byte) ([]string, error) {
	if path.Ext(name) == ".md" {
		return r.inMarkdown(name, string(source)), nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, group := range file.Comments {
		text := group.Text()
		for _, doc := range document.FindAllString(text, -1) {
			if !slices.Contains(clients, path.Base(doc)) && !r.Paths[path.Join(path.Dir(name), doc)] && !r.Paths[doc] {
				found = append(found, doc)
			}
		}
		found = append(found, sections(text)...)
	}
	return found, nil
}

func (r Repository) inMarkdown(name, text string) []string {
	var found []string
	for _, match := range link.FindAllStringSubmatch(text, -1) {
		target, _, _ := strings.Cut(match[1], "#")
		if target != "" && !address.MatchString(target) && !r.Paths[path.Join(path.Dir(name), target)] {
			found = append(found, target)
		}
	}
	for _, match := range recorded.FindAllStringSubmatch(text, -1) {
		for recording := range strings.FieldsFuncSeq(match[1], func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
			if !r.Paths["internal/e2e/testdata/"+recording+".txt"] {
				found = append(found, recording)
			}
		}
	}
	for _, test := range testName.FindAllString(text, -1) {
		if !strings.HasSuffix(test, "…") && !r.Tests[test] {
			found = append(found, test)
		}
	}
	return append(found, sections(text)...)
}

// sections returns the references to numbered sections, but for those of RFCs.
func sections(text string) []string {
	var found []string
	for _, match := range section.FindAllStringSubmatch(text, -1) {
		if match[1] == "" {
			found = append(found, match[0])
		}
	}
	return found
}
