// Package explain says what the words mean that status, the journal, doctor, dead
// letters and exit codes use: the one closed list of them.
package explain

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
)

//go:embed words.txt
var text string

// Word is a word that heartbeat uses for something.
type Word struct {
	Word string `json:"word"`
	// Of is where it stands: state, trouble, phase, end (of a session), event,
	// dead letter, recovered (what became of an interrupted prompt), source (how the reset
	// of a limit is known), entry, check, approval (its state), stop (what our Stop hook did),
	// token (its role), API failure, notice, doctor, exit and its code.
	Of []string `json:"of"`
	// Means says what it is, Then what follows by itself, Do what to type.
	Means string `json:"means"`
	Then  string `json:"then"`
	Do    string `json:"do"`
}

// Words are all of them.
var Words = sync.OnceValue(func() []Word {
	var all []Word
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		lines := strings.SplitN(block, "\n", 4)
		word, of, _ := strings.Cut(lines[0], ": ")
		all = append(all, Word{
			Word: word, Of: strings.Split(of, ", "), Means: lines[1],
			Then: strings.TrimPrefix(lines[2], "then: "), Do: strings.TrimPrefix(lines[3], "do: "),
		})
	}
	return all
})

// Within returns the words that a text has in it, in their order there, each once:
// of "api-failure (authentication_failed)" both.
func Within(text string) (found []Word) {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '-' && r != '_' && !unicode.IsLetter(r) }) {
		w, there := Find(part)
		if there && !slices.ContainsFunc(found, func(f Word) bool { return f.Word == w.Word }) {
			found = append(found, w)
		}
	}
	return found
}

// Find returns what a word means.
func Find(word string) (Word, bool) {
	for _, w := range Words() {
		if strings.EqualFold(w.Word, word) {
			return w, true
		}
	}
	return Word{}, false
}
