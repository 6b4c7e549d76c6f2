package testbed

import (
	"bytes"
	"sync"
)

// Output is a bytes.Buffer that can be read while a program writes to it.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write adds what a program writes.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns what was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
