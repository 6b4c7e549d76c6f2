package attach

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
)

// modes knows the private modes (DEC) that output has set in a terminal, so
// that a terminal which joins late can be brought into the same state, and one
// that leaves out of it. Of the keyboard protocols that stack it knows only
// whether something was put on the stack.
type modes struct {
	state  modeState
	params []byte
	set    map[int]bool // what was said last of a mode
	pushed int          // CSI > … u (the kitty keyboard protocol)
}

type modeState int

const (
	plain modeState = iota
	escaped
	inSequence
)

// defaultOn are modes that a terminal starts with: line wrap, the cursor.
var defaultOn = []int{7, 25}

// trackedModes are those worth restoring: keys, wrap, cursor, mouse, focus,
// alternate screens, bracketed paste, notices of the colour scheme.
var trackedModes = []int{1, 7, 25, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1047, 1049, 2004, 2031}

const maxParams = 64

// maxPushed bounds what is taken off the keyboard protocol's stack in the end:
// terminals keep few entries and drop the oldest.
const maxPushed = 64

// note reads output, which may be cut anywhere.
func (m *modes) note(p []byte) {
	for _, b := range p {
		switch {
		case b == 0x1b:
			m.state = escaped
		case m.state == escaped && b == '[':
			m.state, m.params = inSequence, m.params[:0]
		case m.state == inSequence && b >= 0x20 && b < 0x40:
			if m.params = append(m.params, b); len(m.params) > maxParams {
				m.state = plain
			}
		case m.state == inSequence && b >= 0x40:
			m.end(b)
			m.state = plain
		default:
			m.state = plain
		}
	}
}

// end handles a whole control sequence.
func (m *modes) end(final byte) {
	rest, private := bytes.CutPrefix(m.params, []byte("?"))
	switch {
	case private && (final == 'h' || final == 'l'):
		for field := range bytes.SplitSeq(rest, []byte(";")) {
			n, err := strconv.Atoi(string(field))
			if err == nil && slices.Contains(trackedModes, n) {
				if m.set == nil {
					m.set = map[int]bool{}
				}
				m.set[n] = final == 'h'
			}
		}
	case final == 'u' && bytes.HasPrefix(m.params, []byte(">")):
		m.pushed = min(m.pushed+1, maxPushed)
	case final == 'u' && bytes.HasPrefix(m.params, []byte("<")):
		n, err := strconv.Atoi(string(m.params[1:]))
		if err != nil {
			n = 1
		}
		m.pushed = max(m.pushed-n, 0)
	}
}

// enter is what brings a fresh terminal into the noted state.
func (m *modes) enter() []byte {
	var out []byte
	for _, n := range slices.Sorted(maps.Keys(m.set)) {
		if on := m.set[n]; on != slices.Contains(defaultOn, n) {
			out = appendMode(out, n, on)
		}
	}
	return out
}

// leave is what brings a terminal in the noted state back to a fresh one.
func (m *modes) leave() []byte {
	out := bytes.Repeat([]byte("\x1b[<u"), m.pushed)
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(m.set))) {
		if on := slices.Contains(defaultOn, n); m.set[n] != on {
			out = appendMode(out, n, on)
		}
	}
	return append(out, "\x1b[0m"...)
}

func appendMode(dst []byte, n int, on bool) []byte {
	dst = append(dst, "\x1b[?"...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	if on {
		return append(dst, 'h')
	}
	return append(dst, 'l')
}
