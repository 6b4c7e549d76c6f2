package durable

import (
	"bufio"
	"errors"
)

// Line returns the next line, including its newline, and how many bytes of the file
// it takes; of a line over most bytes only that number. With io.EOF it returns what
// follows the last newline.
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
