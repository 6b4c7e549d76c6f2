package main

import (
	"io"
	"sync"
)

// clearLine erases from the cursor to the end of the line (ECMA-48, EL).
const clearLine = "\x1b[K"

// bottomLine writes to a terminal, or to another file, whose last line may show
// progress: what is written meanwhile scrolls above it. Each change is one write.
type bottomLine struct {
	mu   sync.Mutex
	w    io.Writer
	text string // what the last line shows; "": nothing
}

// Write writes whole lines.
func (b *bottomLine) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text == "" {
		return b.w.Write(p)
	}
	_, err := b.w.Write([]byte("\r" + clearLine + string(p) + b.text))
	return len(p), err
}

// show replaces the last line; "" removes it.
func (b *bottomLine) show(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text == b.text {
		return
	}
	b.text = text
	_, _ = io.WriteString(b.w, "\r"+clearLine+text)
}
