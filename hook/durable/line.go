package durable

import (
	"bufio"
	"errors"
)

// Line returns the next line, its newline included, and how many bytes of the
// file it is; of one over most bytes only that. With io.EOF it is what stands
// behind the last newline.
func Line(in *bufio.Reader, most int64) (line []byte, length int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if length += int64(len(part)); length <= most {
			line = append(line, part...)
		} else {
			line = nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, length, err
		}
	}
}
