package screen

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Filter passes on of a program's output what it shows: text, colours, the
// cursor, erasing and scrolling, and the modes of Modes. The zero value is
// ready; output may be cut anywhere.
//
// Everything else stops here, for who looks at a program that they do not
// trust. Queries (device attributes, the cursor's position, colours) would be
// answered by the looker's terminal, and the answer typed into the program.
// OSC, DCS, APC, PM and SOS strings set its title and its clipboard. The
// keyboard protocols change what its keys send, so that the looker could not
// leave. A bell, other character sets, tab stops, the window's size and the
// scrollback are the looker's own. Eight-bit control characters (C1) are
// none of UTF-8's, but some terminals carry them out; what turns the direction
// of text around shows other text than there is.
//
// The parser is that of DEC's terminals (vt100.net/emu/dec_ansi_parser) for
// UTF-8: a string ends at ST (ESC \), an OSC also at BEL; another escape
// sequence, CAN and SUB break it off. A library's does not serve: that of
// charmbracelet/x takes the byte 0x9C inside a UTF-8 character for a string's
// end (its issue 848) and prints the rest; Claude Code's window title begins
// with such a character.
//
// Numbers are cut to maxNumber: a terminal, and the emulator here, would carry
// out "repeat the last character 2,000,000,000 times" (CSI b).
type Filter struct {
	state state
	osc   bool
	// seq is the part of a control sequence after its CSI that has arrived, and
	// char the part of a character.
	seq  []byte
	char []byte
	// oneScreen leaves out the alternate screens.
	oneScreen bool
}

// Modes are the private modes (DECSET) that a Filter passes on: cursor keys,
// origin, line wrap, the cursor, alternate screens, the mouse in its present
// encoding, focus, bracketed paste and synchronized output. They do not include
// those that make a terminal report by itself what nobody did at it: the colour
// scheme (2031), its size (2048).
var Modes = []int{1, 6, 7, 25, 47, 1000, 1002, 1003, 1004, 1006, 1047, 1049, 2004, 2026}

const (
	// maxNumber limits a number: no screen is larger.
	maxNumber = 999
	// maxSequence limits a control sequence; the client's longest are colours.
	maxSequence = 128
	// maxNumbers limits how many numbers one has.
	maxNumbers = 32
)

type state int

const (
	ground   state = iota
	escape         // after an ESC
	charset        // after an ESC and intermediates
	sequence       // after a CSI
	passed         // in a sequence that is not passed on
	inside         // in a string
	ending         // in a string, after an ESC
)

const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
)

// reset is what RIS (ESC c) shows, without its effects on the terminal.
const reset = "\x1b[0m\x1b[r\x1b[2J\x1b[H"

// Only returns a writer that passes on to w only what shows.
func Only(w io.Writer) io.Writer { return &filtering{w: w} }

// Page returns a writer as [Only] does, which also leaves out the alternate screens
// (modes 47, 1047 and 1049): what was shown there vanished when they were left.
func Page(w io.Writer) io.Writer { return &filtering{w: w, f: Filter{oneScreen: true}} }

var alternateScreens = []int{47, 1047, 1049}

type filtering struct {
	w io.Writer
	f Filter
}

// Write implements io.Writer.
func (f *filtering) Write(p []byte) (int, error) {
	if _, err := f.w.Write(f.f.AppendTo(nil, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// AppendTo appends to dst what p shows; p continues where the last call ended.
// Sequences and characters are appended whole, once their end has arrived.
func (f *Filter) AppendTo(dst, p []byte) []byte {
	for _, b := range p {
		dst = f.next(dst, b)
	}
	return dst
}

func (f *Filter) next(dst []byte, b byte) []byte {
	switch {
	case f.state == ground:
		return f.text(dst, b)
	case f.state == inside || f.state == ending:
		return f.skip(dst, b)
	case b == can || b == sub:
		f.state = ground
	case b == esc:
		f.state = escape
	case b == del:
	case b < ' ': // carried out within a sequence
		dst = control(dst, b)
	case b >= 0x80: // no sequence continues like this
		f.state = ground
		return f.text(dst, b)
	case f.state == escape:
		return f.escaped(dst, b)
	case f.state == charset:
		if b >= '0' {
			f.state = ground
		}
	case b < '@':
		if f.seq = append(f.seq, b); len(f.seq) > maxSequence {
			f.state, f.seq = passed, f.seq[:0]
		}
	default:
		if f.state == sequence {
			dst = f.appendSequence(dst, string(f.seq), b)
		}
		f.state = ground
	}
	return dst
}

// text handles a byte outside of sequences.
func (f *Filter) text(dst []byte, b byte) []byte {
	if len(f.char) > 0 && (b < 0x80 || b >= 0xc0) { // a character that was cut off
		dst = f.character(dst)
	}
	switch {
	case b == esc:
		f.state = escape
	case b < ' ' || b == del:
		dst = control(dst, b)
	case b < 0x80:
		dst = append(dst, b)
	case len(f.char) == 0 && b < 0xa0: // C1
	default:
		if f.char = append(f.char, b); utf8.FullRune(f.char) {
			dst = f.character(dst)
		}
	}
	return dst
}

// character passes on the character that is complete.
func (f *Filter) character(dst []byte) []byte {
	r, n := utf8.DecodeRune(f.char)
	whole := n == len(f.char)
	f.char = f.char[:0]
	switch {
	case !whole:
		return utf8.AppendRune(dst, utf8.RuneError)
	case r < 0xa0 || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r):
		return dst
	}
	return utf8.AppendRune(dst, r)
}

// control passes on the control characters that move the cursor.
func control(dst []byte, b byte) []byte {
	if b >= '\b' && b <= '\r' {
		return append(dst, b)
	}
	return dst
}

// escaped handles the byte after an ESC.
func (f *Filter) escaped(dst []byte, b byte) []byte {
	f.state = ground
	switch b {
	case '[':
		f.state, f.seq = sequence, f.seq[:0]
	case ']', 'P', '_', '^', 'X':
		f.state, f.osc = inside, b == ']'
	case '7', '8', 'D', 'E', 'M': // save and restore the cursor, lines down and up
		return append(dst, esc, b)
	case 'c':
		return append(dst, reset...)
	default:
		if b < '0' {
			f.state = charset
		}
	}
	return dst
}

// skip handles a byte of a string.
func (f *Filter) skip(dst []byte, b byte) []byte {
	ended := f.state == ending
	switch {
	case b == can || b == sub || b == bel && f.osc && !ended:
		f.state = ground
	case b == esc:
		f.state = ending
	case ended && b == '\\':
		f.state = ground
	case ended: // the ESC began another sequence
		f.state = escape
		return f.next(dst, b)
	}
	return dst
}

// appendSequence appends a control sequence if it is one that shows.
func (f *Filter) appendSequence(dst []byte, params string, final byte) []byte {
	if modes, private := strings.CutPrefix(params, "?"); private {
		if final == 'h' || final == 'l' {
			return f.appendModes(dst, modes, final)
		}
		return dst
	}
	separators := ";"
	if final == 'm' {
		separators = ";:"
	}
	if strings.Trim(params, "0123456789"+separators) != "" {
		return dst // intermediates, another prefix
	}
	switch final {
	case 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'Z', 'a', 'd', 'e', 'f', '`': // cursor
	case 'K', 'L', 'M', 'P', 'X', '@', 'b', 'm', 'r': // erase, insert, delete, repeat, colours, scroll region
	case 'S', 'T': // scroll; with more numbers T follows the mouse
		if strings.Contains(params, ";") {
			return dst
		}
	case 's', 'u': // save and restore the cursor; with numbers s sets margins
		if params != "" {
			return dst
		}
	case 'J': // 3 erases what the looker's terminal has scrolled out
		if n, _ := strconv.Atoi(params); n > 2 || strings.Contains(params, ";") {
			return dst
		}
	default:
		return dst
	}
	return append(appendNumbers(append(dst, esc, '['), params), final)
}

// appendNumbers appends the numbers of a sequence, limited to what is allowed.
func appendNumbers(dst []byte, params string) []byte {
	numbers := 1
	for params != "" {
		end := strings.IndexAny(params, ";:")
		if end < 0 {
			end = len(params)
		}
		if end > 0 {
			n, err := strconv.Atoi(params[:end])
			if err != nil { // it does not even fit into an int
				n = maxNumber
			}
			dst = strconv.AppendInt(dst, int64(min(n, maxNumber)), 10)
		}
		if params = params[end:]; params != "" {
			if numbers++; numbers > maxNumbers {
				return dst
			}
			dst, params = append(dst, params[0]), params[1:]
		}
	}
	return dst
}

// appendModes appends those of the modes that are passed on.
func (f *Filter) appendModes(dst []byte, modes string, final byte) []byte {
	var kept []string
	for field := range strings.SplitSeq(modes, ";") {
		n, err := strconv.Atoi(field)
		if err == nil && slices.Contains(Modes, n) && len(kept) < maxNumbers && (!f.oneScreen || !slices.Contains(alternateScreens, n)) {
			kept = append(kept, strconv.Itoa(n))
		}
	}
	if len(kept) == 0 {
		return dst
	}
	dst = append(dst, "\x1b[?"...)
	return append(append(dst, strings.Join(kept, ";")...), final)
}
