package session

import (
	"encoding/json"
	"sync"
	"time"

	"heartbeat/queue/wire"
)

// outlet writes a shim's reports.
type outlet struct {
	mu  sync.Mutex // held while one is written
	enc *json.Encoder

	asking   sync.Mutex
	requests []wire.Request // that have not been written yet, in their order
	writes   bool
}

// Encode writes a report, and before it all that was asked: a session's end comes after what its
// hooks have said.
func (o *outlet) Encode(r Report) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.writeNext() {
		continue
	}
	return o.enc.Encode(r)
}

// ask has a request written. It does not wait for a scheduler that reads nothing.
func (o *outlet) ask(r wire.Request) {
	o.asking.Lock()
	defer o.asking.Unlock()
	o.requests = append(o.requests, r)
	if !o.writes {
		o.writes = true
		go o.write()
	}
}

// write writes the requests until there are none. Without a scheduler nobody answers them.
func (o *outlet) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.writeNext() {
		continue
	}
}

// writeNext writes the first request, and reports whether there was one.
func (o *outlet) writeNext() bool {
	o.asking.Lock()
	if len(o.requests) == 0 {
		o.writes = false
		o.asking.Unlock()
		return false
	}
	r := o.requests[0]
	o.requests = o.requests[1:]
	o.asking.Unlock()
	_ = o.enc.Encode(Report{At: time.Now(), Ask: &r})
	return true
}
