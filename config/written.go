package config

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// NotTextError says why what somebody wrote is not text, and where.
type NotTextError struct {
	Line, Column int
	Why, Hint    string
}

// Error has the place too: it never quotes what is there.
func (e *NotTextError) Error() string {
	return fmt.Sprintf("%s, in line %d, byte %d: %s", e.Why, e.Line, e.Column, e.Hint)
}

const saveAsUTF8 = "save it as UTF-8"

// Written returns the text of what a person wrote with any editor: UTF-8 without a byte
// order mark, each line with \n at its end. UTF-16 is read if it has its mark. The error
// is a *NotTextError.
func Written(data []byte) ([]byte, error) {
	if bytes.HasPrefix(data, []byte("\xff\xfe\x00\x00")) {
		return nil, &NotTextError{1, 1, "it is UTF-32", saveAsUTF8}
	}
	data = Decoded(data)
	if at := bytes.IndexByte(data, 0); at >= 0 {
		return nil, notText(data, at, "it holds a NUL character", "it is not text, or it is UTF-16: "+saveAsUTF8)
	}
	if !utf8.Valid(data) {
		at := 0
		for at < len(data) {
			r, size := utf8.DecodeRune(data[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		return nil, notText(data, at, "it is not UTF-8", saveAsUTF8)
	}
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), nil
}

// Decoded returns what a person wrote as UTF-8 without a byte order mark, and every other
// character as it is. UTF-16 is read if it has its mark.
func Decoded(data []byte) []byte {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		data = fromUTF16(data[2:], 0, 1)
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		data = fromUTF16(data[2:], 1, 0)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff"))
}

func notText(data []byte, at int, why, hint string) *NotTextError {
	before := data[:at]
	return &NotTextError{bytes.Count(before, []byte("\n")) + 1, at - bytes.LastIndexByte(before, '\n'), why, hint}
}

// fromUTF16 decodes pairs of bytes, of which low and high say the order. A byte that is
// left over is no character.
func fromUTF16(data []byte, low, high int) []byte {
	units := make([]uint16, 0, len(data)/2)
	for ; len(data) > 1; data = data[2:] {
		units = append(units, uint16(data[low])|uint16(data[high])<<8)
	}
	text := []byte(string(utf16.Decode(units)))
	if len(data) > 0 {
		text = append(text, 0xff)
	}
	return text
}
