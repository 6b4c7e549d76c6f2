package attach

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// kind says what a frame is. On the wire a frame is its kind, the length of its
// data as four bytes (big-endian), and the data.
type kind byte

const (
	frameHello   kind = 'h' // from the guest: a Guest as JSON, the first frame
	frameWelcome kind = 'w' // to the guest: a Session as JSON, the first frame
	frameHistory kind = 'y' // to the guest: the last output before it joined
	frameOutput  kind = 'o' // to the guest
	frameInput   kind = 'i' // from the guest
	frameLeave   kind = 'l' // from the guest: it leaves on purpose
	frameSize    kind = 's' // in both directions: a Size as JSON
	frameEnded   kind = 'e' // to the guest: why nothing more comes, the last frame
)

// maxFrame limits the data of one frame.
const maxFrame = 64 << 10

// Size is a terminal's size.
type Size struct {
	Rows int `json:"rows"`
	Cols int `json:"cols"`
}

// maxSide limits a size: the kernel's own limit is 65,535, but an emulator's memory
// is smaller.
const maxSide = 1000

func (s Size) valid() bool { return s.Rows > 0 && s.Cols > 0 && s.Rows <= maxSide && s.Cols <= maxSide }

// Guest is a person who joins.
type Guest struct {
	// ReadOnly is for a guest who only looks: keys and sizes from it are ignored.
	ReadOnly bool `json:"read_only,omitempty"`
	// Size is the size of the guest's own terminal; the session's follows it. Zero
	// leaves the session's size as it is.
	Size Size `json:"size,omitzero"`
}

// Session is what a guest is told about the terminal that it joins.
type Session struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Size    Size   `json:"size"`
	// Modes are the escape sequences that put a terminal into the same state as the
	// session's.
	Modes []byte `json:"modes,omitempty"`
}

// appendFrame appends data as frames of a kind, at least one.
func appendFrame(dst []byte, k kind, data []byte) []byte {
	for {
		part := data[:min(len(data), maxFrame)]
		data = data[len(part):]
		dst = append(dst, byte(k))
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(part)))
		if dst = append(dst, part...); len(data) == 0 {
			return dst
		}
	}
}

// frameOf returns a frame with a value as JSON.
func frameOf(k kind, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // types of this package only
	}
	return appendFrame(nil, k, data)
}

// readFrame reads one frame. The data is valid for as long as the caller keeps it.
func readFrame(r *bufio.Reader) (kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes is too long", n)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, err
	}
	return kind(head[0]), data, nil
}
