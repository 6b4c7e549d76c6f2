package screen

// filter drops the control strings that show nothing: OSC, DCS, APC, PM and
// SOS, each begun by ESC and a letter. The emulator's own parser takes the
// byte 0x9C inside a UTF-8 character for their end (charmbracelet/x issue
// 848) and would print the rest: the client's window title starts with such a
// character. A string ends as in xterm: at ST (ESC \), an OSC also at BEL;
// any other escape sequence, CAN and SUB break it off.
//
// Eight-bit control characters are no part of UTF-8 terminals and are
// dropped where they stand outside of a character. Numbers in control
// sequences are cut to three digits, in private ones (modes) to four: the
// emulator would carry out "repeat the last character 2,000,000,000 times"
// (CSI b), and takes over a second for a kilobyte of "9999 times".
type filter struct {
	state  state
	osc    bool
	more   int  // continuation bytes that the current character still lacks
	csi    bool // in ground: in a control sequence
	digits int  // of the sequence's current number, without leading zeros
	// private: the sequence began with one of < = > ?
	private bool
}

// How many digits of a number are passed on: no screen is larger than 999.
const (
	maxDigits        = 3
	maxPrivateDigits = 4
)

type state int

const (
	ground state = iota
	escape       // after an ESC that has not been passed on
	inside       // in a string
	ending       // in a string, after an ESC
)

const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
)

// appendTo appends to dst what is to be shown of p, which goes on where the
// last call ended. An ESC at the end of p is held back.
func (f *filter) appendTo(dst, p []byte) []byte {
	for _, b := range p {
		switch f.state {
		case ground:
			dst = f.show(dst, b)
		case escape:
			dst = f.escaped(dst, b)
		case inside:
			f.skip(b)
		case ending:
			if f.state = ground; b != '\\' {
				dst = f.escaped(dst, b) // the ESC began another sequence
			}
		}
	}
	return dst
}

func (f *filter) show(dst []byte, b byte) []byte {
	switch {
	case b == esc:
		f.state, f.more, f.csi = escape, 0, false
		return dst
	case f.csi && b < 0x80:
		return f.control(dst, b)
	case b < 0x80:
		f.more = 0
	case b < 0xc0: // continuation, or an eight-bit control character
		if f.more == 0 {
			return dst
		}
		f.more--
	case b < 0xe0:
		f.more = 1
	case b < 0xf0:
		f.more = 2
	default:
		f.more = 3
	}
	return append(dst, b)
}

// control handles a byte of a control sequence.
func (f *filter) control(dst []byte, b byte) []byte {
	switch {
	case b == '0' && f.digits == 0:
	case b >= '0' && b <= '9':
		most := maxDigits
		if f.private {
			most = maxPrivateDigits
		}
		if f.digits++; f.digits > most {
			f.digits = most
			return dst
		}
	case b >= '<' && b <= '?':
		f.digits, f.private = 0, true
	case b >= 0x20 && b < 0x40: // a separator or another parameter byte
		f.digits = 0
	case b >= 0x40 && b != del || b == can || b == sub:
		f.csi = false
	}
	return append(dst, b)
}

// escaped handles the byte after an ESC, which is passed on together with
// what it begins: a control character between the two is carried out first,
// and what cannot follow an ESC drops it.
func (f *filter) escaped(dst []byte, b byte) []byte {
	switch {
	case b == ']' || b == 'P' || b == '_' || b == '^' || b == 'X':
		f.state, f.osc = inside, b == ']'
	case b == esc || b == del || b >= 0x80 && b < 0xc0:
		f.state = escape
	case b == can || b == sub || b >= 0xc0:
		f.state = ground
		return f.show(dst, b)
	case b < 0x20:
		f.state = escape
		return append(dst, b)
	default:
		f.state, f.csi, f.digits, f.private = ground, b == '[', 0, false
		return append(dst, esc, b)
	}
	return dst
}

func (f *filter) skip(b byte) {
	switch {
	case b == esc:
		f.state = ending
	case b == can || b == sub || b == bel && f.osc:
		f.state = ground
	}
}
