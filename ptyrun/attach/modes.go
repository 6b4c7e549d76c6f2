package attach

import (
	"bytes"
	"maps"
	"slices"
	"strconv"

	"heartbeat/ptyrun/screen"
)

// modes tracks the private modes (DEC) that output has set in a terminal, so that a
// terminal that joins late can be put into the same state, and out of it when it
// leaves. It tracks those that guests are shown.
type modes struct {
	state  modeState
	params []byte
	set    map[int]bool // the last state of each mode
}

type modeState int

const (
	plain modeState = iota
	escaped
	inSequence
)

// defaultOn are modes that are on in a fresh terminal: line wrap, the cursor.
var defaultOn = []int{7, 25}

const maxParams = 64

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
	if !private || final != 'h' && final != 'l' {
		return
	}
	for field := range bytes.SplitSeq(rest, []byte(";")) {
		n, err := strconv.Atoi(string(field))
		if err == nil && slices.Contains(screen.Modes, n) {
			if m.set == nil {
				m.set = map[int]bool{}
			}
			m.set[n] = final == 'h'
		}
	}
}

// enter returns what puts a fresh terminal into the tracked state.
func (m *modes) enter() []byte {
	var out []byte
	for _, n := range slices.Sorted(maps.Keys(m.set)) {
		if on := m.set[n]; on != slices.Contains(defaultOn, n) {
			out = appendMode(out, n, on)
		}
	}
	return out
}

// leave returns what puts a terminal in the tracked state back into a fresh one:
// its modes, colours and scroll region.
func (m *modes) leave() []byte {
	var out []byte
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(m.set))) {
		if on := slices.Contains(defaultOn, n); m.set[n] != on {
			out = appendMode(out, n, on)
		}
	}
	return append(out, "\x1b[0m\x1b[r"...)
}

func appendMode(dst []byte, n int, on bool) []byte {
	dst = append(dst, "\x1b[?"...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	if on {
		return append(dst, 'h')
	}
	return append(dst, 'l')
}
