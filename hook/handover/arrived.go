package handover

import (
	"heartbeat/hook/client"
	"heartbeat/hook/inbox"
)

// Arrived looks once in the client's transcript for the hand-over of an entry that
// was offered, and for a tool that was called for it: hooks that were turned off,
// removed or killed in the middle of a turn could not record it. If in doubt, it
// does not say Seen: a client that was killed may not have written everything. Of an
// entry that was handed over by a file it says Seen if a tool has read that.
func Arrived(f inbox.InFlight) inbox.Arrival {
	p := Of(&f)
	shows, byFile := p.shows, ByFile(&f)
	if byFile {
		r := newReader(&f)
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
	case called && (seen || f.State == inbox.Taken && !byFile): // who has not read it cannot have worked on it
		return inbox.Worked
	case seen:
		return inbox.Seen
	case err != nil:
		return inbox.Unknown
	}
	return inbox.Unseen
}

// ArrivedIn is Arrived for sessions whose client keeps its conversations in
// configDir: it also finds the transcript of a session that began with the entry.
func ArrivedIn(configDir string) func(inbox.InFlight) inbox.Arrival {
	return func(f inbox.InFlight) inbox.Arrival {
		if f.Transcript == "" && f.Via == inbox.ViaKickoff {
			f.Transcript, _ = FindTranscript(configDir, f.Session) // without one nothing is known
		}
		return Arrived(f)
	}
}
