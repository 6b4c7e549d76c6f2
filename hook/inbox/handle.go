package inbox

import (
	"strings"
	"unicode"
)

// Handle returns the id of an entry that may stand in a command line for a person to type:
// the first one of its ids that is typable; "": none is.
func Handle(ids ...string) string {
	for _, id := range ids {
		if Typable(id) {
			return id
		}
	}
	return ""
}

// Typable reports whether a shell takes a word as it is. Agents write ids: what a shell
// would run, expand or take for a flag is neither offered nor printed for people to copy.
func Typable(word string) bool {
	for i, r := range word {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune("_./@+,:", r):
		case i > 0 && strings.ContainsRune("-%=#", r):
		default:
			return false
		}
	}
	return word != ""
}
