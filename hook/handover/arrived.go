package handover

import (
	"heartbeat/hook/client"
	"heartbeat/queue"
)

// Arrived looks once in the client's transcript for the hand-over of an entry that
// was offered, and for a tool that was called for it: hooks that were turned off,
// removed or killed in the middle of a turn could not record it. If in doubt, it
// does not say Seen: a client that was killed may not have written everything. Of an
// entry that was handed over by a file it says Seen if a tool has read that.
func Arrived(g *queue.Given) queue.Arrival {
	p := Of(g)
	shows, byFile := p.shows, ByFile(g)
	if byFile {
		r := newReader(g)
		shows = r.reads
	}
	var seen, called bool // called since it was seen, or at all if it was not
	kept := false         // it was seen, and another Stop hook stopped the client
	err := eachLine(p.Path, p.Offset, func(line []byte, _ int64) bool {
		if !seen && shows(line) {
			seen, called = true, false
		} else if is, _, tool := client.Claude.Transcript.Answered(line); is {
			kept, called = false, called || tool
		} else if stop, _ := client.Claude.Transcript.Stopped(line); seen && stop != nil && stop.Prevented {
			kept = true
		}
		return !seen || !called
	})
	seen = seen && !kept
	switch {
	case called && (seen || g.State == queue.Taken && !byFile): // who has not read it cannot have worked on it
		return queue.Worked
	case seen:
		return queue.Seen
	case err != nil:
		return queue.Unknown
	}
	return queue.Unseen
}

// ArrivedIn is Arrived for sessions whose client keeps its conversations in
// configDir: it also finds the transcript of a session that began with the entry.
func ArrivedIn(configDir string) func(*queue.Given) queue.Arrival {
	return func(g *queue.Given) queue.Arrival {
		found := *g
		if h := &found.Handover; h.Transcript == "" && h.Via == queue.ViaKickoff {
			h.Transcript, _ = FindTranscript(configDir, h.Session) // without one nothing is known
		}
		return Arrived(&found)
	}
}
