package attach

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// reports are what a terminal sends although no key was pressed: answers to
// queries, reports of focus and of the colour scheme, the mouse.
var reports = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:` + strings.Join([]string{
		`\x1b\[\?[0-9;]*(?:[cnu]|\$y)`,          // device attributes, status, keyboard protocol, modes
		`\x1b\[>[0-9;]*c`,                       // secondary device attributes
		`\x1b\[[0-9]+;[0-9]+R`,                  // cursor position
		`\x1b\[[IO]`,                            // focus
		`\x1b\[<[0-9;]*[Mm]`,                    // mouse (SGR)
		`\x1b\[[0-9;]*t`,                        // window
		`\x1b[\]P_][^\x07\x1b]*(?:\x07|\x1b\\)`, // OSC, DCS, APC: colours, version
	}, "|") + `)*$`)
})

// onlyReports reports whether input holds nothing that a person typed.
func onlyReports(input []byte) bool { return reports().Match(input) }

// Keys is a sequence of keys; the zero value is an empty one.
type Keys struct{ keys []detachKey }

// detachKey is one key as terminals send it.
type detachKey struct {
	plain byte
	// more are the same key in the keyboard protocols that programs switch on.
	more [][]byte
}

// ParseKeys reads a sequence of keys, separated by commas: each is a character, or
// ctrl- and a letter or one of @ [ \ ] ^ _, as in docker's --detach-keys.
func ParseKeys(text string) (Keys, error) {
	var seq Keys
	for word := range strings.SplitSeq(text, ",") {
		k, err := parseKey(word)
		if err != nil {
			return Keys{}, err
		}
		seq.keys = append(seq.keys, k)
	}
	return seq, nil
}

func parseKey(word string) (detachKey, error) {
	name, ctrl := strings.CutPrefix(strings.ToLower(word), "ctrl-")
	switch {
	case !ctrl && len(word) == 1 && word[0] > ' ' && word[0] < 0x7f:
		return detachKey{plain: word[0]}, nil
	case ctrl && len(name) == 1 && (name[0] >= 'a' && name[0] <= 'z' || strings.Contains(`@[\]^_`, name)):
		code := strconv.Itoa(int(name[0]))
		return detachKey{
			plain: strings.ToUpper(name)[0] & 0x1f,
			more:  [][]byte{[]byte("\x1b[" + code + ";5u"), []byte("\x1b[27;5;" + code + "~")},
		}, nil
	}
	return detachKey{}, fmt.Errorf("%q is not a key, like ctrl-\\, ctrl-p or q", word)
}

// head returns the length of the key at the beginning of input, or 0. A key arrives
// in one piece.
func (k detachKey) head(input []byte) int {
	if input[0] == k.plain {
		return 1
	}
	for _, m := range k.more {
		if bytes.HasPrefix(input, m) {
			return len(m)
		}
	}
	return 0
}

// leaver looks for the keys with which a guest leaves. It holds back what may be
// their beginning until that is decided.
type leaver struct {
	seq  Keys
	held []byte
	at   int // keys of seq that are held
}

// pass returns which part of input is to be typed, and whether the guest leaves.
func (l *leaver) pass(input []byte) (typed []byte, leave bool) {
	if len(l.seq.keys) == 0 {
		return input, false
	}
	for len(input) > 0 {
		n := l.seq.keys[l.at].head(input)
		switch {
		case n > 0:
			l.held, input = append(l.held, input[:n]...), input[n:]
			if l.at++; l.at == len(l.seq.keys) {
				return typed, true
			}
		case l.at > 0: // it was not the sequence: check the same key again
			typed = append(typed, l.held...)
			l.held, l.at = nil, 0
		default:
			typed, input = append(typed, input[0]), input[1:]
		}
	}
	return typed, false
}
