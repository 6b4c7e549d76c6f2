package handover

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/hook/client"
	"heartbeat/queue"
)

// reader follows, line by line, whether a session has read the file in which it was handed
// over an entry: a call of a tool that names the file, and that did not fail. The agent may
// read it as it likes; a call that has a subagent read it names it, too.
type reader struct {
	name  string   // of the file, which no other hand-over has
	asked []string // the calls that name it
}

func newReader(g *queue.Given) reader { return reader{name: filepath.Base(g.Handover.File)} }

// reads reports whether a line of the transcript shows it.
func (r *reader) reads(line []byte) bool {
	r.asked = append(r.asked, client.Claude.Transcript.Names(line, r.name)...)
	return slices.ContainsFunc(client.Claude.Transcript.Worked(line), func(id string) bool { return slices.Contains(r.asked, id) })
}

// WasRead looks until a transcript shows that the session has read the file in which an entry
// was handed over, or patience is over. Without a name in the record it is this transcript.
func WasRead(g *queue.Given, transcript string, patience time.Duration) bool {
	tape := Tape{Path: cmp.Or(g.Handover.Transcript, transcript), Offset: g.Handover.Offset}
	if g.Handover.Via == queue.ViaResume { // it may have been read before the interruption
		tape.Offset = 0
	}
	r, read := newReader(g), false
	for deadline := time.Now().Add(patience); ; time.Sleep(LookAgain) {
		tape.Read(func(line []byte) { read = r.reads(line) || read })
		if read || !time.Now().Add(LookAgain).Before(deadline) {
			return read
		}
	}
}
