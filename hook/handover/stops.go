package handover

import (
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
	"heartbeat/hook/settings"
)

// Stops reads what the Stops of a conversation left in its transcript: one record
// for each, written once all of its hooks have ended (2.1.329).
type Stops struct {
	Path   string `json:"path,omitempty"`
	Offset int64  `json:"offset,omitempty"` // where the next look begins
	Prompt string `json:"prompt,omitempty"` // the last prompt_id that was read
	Over   string `json:"over,omitempty"`   // that of the last turn that no hook prolonged
	Cut    string `json:"cut,omitempty"`    // that at whose Stop one hook stopped the client although another continued it
	By     string `json:"by,omitempty"`     // the command line of that hook, or client.UnknownHook
	// Alone is at how many Stops in a row other hooks continued the client and ours
	// was not called, AloneBy their command lines.
	Alone   int      `json:"alone,omitempty"`
	AloneBy []string `json:"alone_by,omitempty"`
}

// MaxGates limits how many hooks a record names.
const MaxGates = 16

// maxCommand limits how much of a command line is kept.
const maxCommand = 1000

// ShownCommand is a hook's command line as a record has it: shortened, on one line.
func ShownCommand(command string) string { return foreign.Short(command, maxCommand) }

// next returns the next Stop, or false if there is none yet. mine is what our own
// hook said at it, or "".
func (s *Stops) next(mine string) (stop client.Stopping, found bool) {
	s.skip()
	err := eachLine(s.Path, s.Offset, func(line []byte, end int64) bool {
		s.Offset = end
		record, prompt := client.Claude.Transcript.Stopped(line)
		if prompt != "" {
			s.Prompt = prompt
		}
		if found = record != nil; !found {
			return true
		}
		stop = record.Judge(mine, settings.Ours)
		if !stop.Continued {
			s.Over = s.Prompt
		}
		if !stop.Alone {
			s.Alone, s.AloneBy = 0, nil
		} else if s.Alone++; len(s.AloneBy) < MaxGates {
			for _, command := range stop.Others {
				s.AloneBy = client.AppendNew(s.AloneBy, ShownCommand(command))
			}
		}
		if stop.CutBy != "" {
			s.Cut, s.By = s.Prompt, ShownCommand(stop.CutBy)
		}
		return false
	})
	return stop, found && err == nil
}

// skip passes over what is too far back to be read: a conversation of weeks may
// have any size when it is first read. Nobody needs to know about the Stops before
// that any more.
func (s *Stops) skip() {
	if size := TranscriptSize(s.Path); size-s.Offset > MaxLook {
		s.Offset, s.Prompt = size-MaxLook/2, "" // in the middle of a line, which is then no record
	}
}

// Others reads all Stops in the transcript, and waits for one after which the
// client continued.
func (s *Stops) Others(mine string, patience time.Duration) (others []string) {
	deadline := time.Now().Add(patience)
	for seen := false; ; {
		stop, found := s.next(mine)
		if found {
			// If we said nothing, there is one that somebody else prolonged.
			seen = seen || stop.Continued && (mine != "" || len(stop.Others) > 0)
			others = client.AppendNew(others, stop.Others...)
			continue
		}
		if seen || !time.Now().Add(LookAgain).Before(deadline) {
			return others
		}
		time.Sleep(LookAgain)
	}
}

// Ear is how far a waiting hook has read the transcript: it looks often, and reads
// each line once.
type Ear struct {
	From  Stops
	spoke bool
}

// OthersSpoke reports whether another hook has spoken at the Stop at which ours
// waits: once ours ends, the client continues with that. What a hook says is
// written when that hook has ended.
func (e *Ear) OthersSpoke() bool {
	e.From.skip()
	_ = eachLine(e.From.Path, e.From.Offset, func(line []byte, end int64) bool {
		e.From.Offset = end
		switch client.Claude.Transcript.Spoke(line) {
		case client.Silence:
			e.spoke = false
		case client.Said:
			e.spoke = true
		}
		return true
	})
	return e.spoke
}

// Follow starts over at the end of another transcript, if there is another one.
func (s *Stops) Follow(transcript string) {
	if s.Path != transcript {
		*s = Stops{Path: transcript, Offset: TranscriptSize(transcript)}
	}
}

// Stopped reports whether the client has demonstrably stopped after the last Stop
// of a prompt: no hook continued it.
func (s *Stops) Stopped(transcript, prompt string) bool {
	s.readAll(transcript)
	return prompt != "" && s.Over == prompt
}

// CutShort returns the hook that stopped the client at the Stop of a prompt
// although another one continued it ("continue": false): the client has kept what
// that one said, and given it to no model. It is "" if there was none.
func (s *Stops) CutShort(transcript, prompt string) string {
	s.readAll(transcript)
	if prompt == "" || s.Cut != prompt {
		return ""
	}
	return s.By
}

// PassedOver returns at how many Stops in a row, up to the last one, other hooks
// continued the client without a call of ours, and which hooks.
func (s *Stops) PassedOver(transcript string) (times int, by []string) {
	s.readAll(transcript)
	return s.Alone, s.AloneBy
}

func (s *Stops) readAll(transcript string) {
	if s.Path != transcript {
		*s = Stops{Path: transcript}
	}
	for found := true; found; {
		_, found = s.next("")
	}
}
