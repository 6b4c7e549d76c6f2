package simulate

import (
	"bytes"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// keyKind says what a key does; text is anything that goes into the prompt.
type keyKind int

const (
	keyText keyKind = iota
	keyEnter
	keyEscape
	keyInterrupt // ^C
	keyEnd       // ^D
	keyBackspace
	keyDown
	keyUp
	keyGone // the terminal is closed
)

type key struct {
	kind keyKind
	text string
}

// escapeDelay is how long a lone ESC may be the beginning of a sequence.
const escapeDelay = 50 * time.Millisecond

// maxSequence bounds an escape sequence and a paste without an end.
const maxSequence = 1 << 20

// readKeys turns a terminal's bytes into keys until it is closed.
func readKeys(tty *os.File, keys chan<- key) {
	chunks := make(chan []byte)
	go func() {
		defer close(chunks)
		for {
			buf := make([]byte, 4096)
			n, err := tty.Read(buf)
			if n > 0 {
				chunks <- buf[:n]
			}
			if err != nil || n == 0 {
				return
			}
		}
	}()
	var rest []byte
	for {
		var late <-chan time.Time
		if len(rest) > 0 {
			late = time.After(escapeDelay)
		}
		select {
		case chunk, ok := <-chunks:
			if !ok {
				keys <- key{kind: keyGone}
				return
			}
			rest = append(rest, chunk...)
			rest = parseKeys(rest, false, keys)
		case <-late:
			rest = parseKeys(rest, true, keys)
		}
	}
}

// parseKeys emits the keys in b and returns what may be the beginning of one;
// final says that nothing follows.
func parseKeys(b []byte, final bool, keys chan<- key) (rest []byte) {
	for len(b) > 0 {
		k, n := nextKey(b, final)
		if n == 0 {
			return b
		}
		if k != nil {
			keys <- *k
		}
		b = b[n:]
	}
	return nil
}

// controls are the single bytes that are keys of their own.
var controls = map[byte]keyKind{
	'\r': keyEnter, 3: keyInterrupt, 4: keyEnd, 0x7f: keyBackspace, 8: keyBackspace,
}

// nextKey reads one key: nil for bytes that are none (a terminal's replies,
// Alt and a letter), length 0 when it is not complete.
func nextKey(b []byte, final bool) (*key, int) {
	if b[0] == 0x1b {
		return escapeKey(b, final)
	}
	if kind, ok := controls[b[0]]; ok {
		return &key{kind: kind}, 1
	}
	n := 0
	for n < len(b) {
		if _, ok := controls[b[n]]; ok || b[n] == 0x1b {
			break
		}
		if !utf8.FullRune(b[n:]) && !final {
			break
		}
		_, size := utf8.DecodeRune(b[n:])
		n += size
	}
	if n == 0 {
		return nil, 0
	}
	return &key{keyText, strings.ToValidUTF8(string(b[:n]), "\ufffd")}, n
}

const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

func escapeKey(b []byte, final bool) (*key, int) {
	if len(b) == 1 {
		if final {
			return &key{kind: keyEscape}, 1
		}
		return nil, 0
	}
	switch {
	case b[1] == 0x1b: // ESC ESC
		return &key{kind: keyEscape}, 1
	case bytes.HasPrefix(b, []byte(pasteStart)):
		end := bytes.Index(b, []byte(pasteEnd))
		if end < 0 {
			return nil, giveUp(b, final && len(b) > maxSequence)
		}
		text := string(b[len(pasteStart):end])
		return &key{keyText, strings.ReplaceAll(text, "\r", "\n")}, end + len(pasteEnd)
	case b[1] == '[' || b[1] == 'O':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return arrow(b[i]), i + 1
			}
		}
		return nil, giveUp(b, final || len(b) > maxSequence)
	case b[1] == 'P' || b[1] == ']' || b[1] == '_': // a reply: up to ST or BEL
		if i := bytes.IndexAny(b, "\a\\"); i > 0 {
			return nil, i + 1
		}
		return nil, giveUp(b, final || len(b) > maxSequence)
	}
	return nil, 2 // Alt and a letter
}

func giveUp(b []byte, now bool) int {
	if now {
		return len(b)
	}
	return 0
}

func arrow(final byte) *key {
	switch final {
	case 'A':
		return &key{kind: keyUp}
	case 'B':
		return &key{kind: keyDown}
	}
	return nil
}
