package config

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Approvals are the rules that answer requests for an approval instead of a person, by
// the words that name a request: its category. Never comes before the others.
type Approvals struct {
	Always, Never []string
	// After is how many times in a row a person has to have approved a word.
	After map[string]int
	// ByPage has requests that no rule answers answered only by who has a token: by: page.
	ByPage bool
}

// approvals reads which requests are answered without a person.
func (l *loader) approvals(t table) Approvals {
	var a Approvals
	p, ok := t["approvals"]
	if !ok {
		return a
	}
	fields, ok := l.table(p, approvalKeys, func(key string) string {
		if slices.Contains(ApprovalCategories, key) {
			return fmt.Sprintf("for example always: [%s]", key)
		}
		return ""
	})
	if !ok {
		return a
	}
	a.Always, a.Never = l.approvalWords(fields, "always"), l.approvalWords(fields, "never")
	if p, ok := fields["after"]; ok {
		after, _ := l.table(p, ApprovalCategories, nil)
		for word := range after {
			if a.After == nil {
				a.After = map[string]int{}
			}
			a.After[word] = l.number(after, word, 1, 1)
		}
	}
	a.ByPage = enum(l, fields, "by", "person", []string{"person", "page"}) == "page"
	return a
}

// approvalWords reads the words that a rule names.
func (l *loader) approvalWords(t table, key string) (words []string) {
	p, ok := t[key]
	if !ok {
		return nil
	}
	p = p.here()
	if p.node.Kind != yaml.SequenceNode {
		l.problem(p, "must be a list, not "+kind(p.node), "for example [read]")
		return nil
	}
	for i, element := range p.node.Content {
		at := p.below(i, element)
		if word, ok := l.filled(at); ok && l.approvable(at, word) {
			words = append(words, word)
		}
	}
	return words
}

// approvable refuses a word that names no request: a never that is misspelt would
// reject nothing.
func (l *loader) approvable(p place, word string) bool {
	if slices.Contains(ApprovalCategories, word) {
		return true
	}
	hint := "the categories are " + strings.Join(ApprovalCategories, ", ")
	if near := Nearest(word, ApprovalCategories); len(near) > 0 {
		hint = "did you mean " + near[0] + "?"
	}
	l.problem(p, fmt.Sprintf("%q is not a category of approvals", cut(word)), hint)
	return false
}
