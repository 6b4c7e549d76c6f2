package handover

import (
	"path"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
)

// Stops reads what the Stops of a conversation left in its transcript: one
// record for each, written when all of its hooks had ended (2.1.329).
type Stops struct {
	Path   string `json:"path,omitempty"`
	Offset int64  `json:"offset,omitempty"` // where the next look begins
	Prompt string `json:"prompt,omitempty"` // the prompt_id that was read last
	Over   string `json:"over,omitempty"`   // the one of the last turn that no hook prolonged
	Cut    string `json:"cut,omitempty"`    // the one at whose Stop a hook had it end although another had it go on
	By     string `json:"by,omitempty"`     // the command line of that hook, or client.UnknownHook
	// Alone is at how many Stops in a row others had the client go on and none of
	// ours was called, AloneBy their command lines.
	Alone   int      `json:"alone,omitempty"`
	AloneBy []string `json:"alone_by,omitempty"`
}

// MaxGates bounds how many hooks a record names.
const MaxGates = 16

// maxCommand bounds what is kept of a command line.
const maxCommand = 1000

// ShownCommand is a hook's command line as a record has it: bounded, on one line.
func ShownCommand(command string) string { return foreign.Short(command, maxCommand) }

// next returns the next Stop, or false when none stands there yet. mine is what
// our own hook has said at it, or "".
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
		stop = record.Judge(mine, ours)
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

// skip passes over what lies too far back to be looked at: a conversation that
// goes on for weeks may be of any size when it is first looked at. What a Stop
// before that says nobody asks for any more.
func (s *Stops) skip() {
	if size := TranscriptSize(s.Path); size-s.Offset > MaxLook {
		s.Offset, s.Prompt = size-MaxLook/2, "" // amid a line, which is no record then
	}
}

// ours reports whether a command line is that of a hook of ours.
func ours(command string) bool {
	words := strings.Fields(command)
	n := len(words)
	if n < 2 || words[n-1] != "hook" {
		return false
	}
	program := path.Base(strings.Trim(words[n-2], `'"`))
	return program == "heartbeat-stop" || program == "heartbeat"
}

// Others reads all Stops that stand in the transcript, and waits for one after
// which the client went on.
func (s *Stops) Others(mine string, patience time.Duration) (others []string) {
	deadline := time.Now().Add(patience)
	for seen := false; ; {
		stop, found := s.next(mine)
		if found {
			// Where we had said nothing there is one that somebody else prolonged.
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

// Ear is how far a waiting hook has listened to the transcript: it looks often,
// and each line is read once.
type Ear struct {
	From  Stops
	spoke bool
}

// OthersSpoke reports whether another hook of the Stop at which ours waits has
// had its say: the client goes on with that once ours ends. What a hook says is
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

// Follow begins anew where another transcript does, behind what it holds.
func (s *Stops) Follow(transcript string) {
	if s.Path != transcript {
		*s = Stops{Path: transcript, Offset: TranscriptSize(transcript)}
	}
}

// Stopped reports whether the client has demonstrably stopped after the last Stop of
// a prompt: no hook had it go on.
func (s *Stops) Stopped(transcript, prompt string) bool {
	s.readAll(transcript)
	return prompt != "" && s.Over == prompt
}

// CutShort returns the hook that had the client stop at the Stop of a prompt
// although another one had it go on ("continue": false): the client has kept what
// that said, and gave it to no model. It is "" where none did.
func (s *Stops) CutShort(transcript, prompt string) string {
	s.readAll(transcript)
	if prompt == "" || s.Cut != prompt {
		return ""
	}
	return s.By
}

// PassedOver returns at how many Stops in a row, up to the last one, other hooks had
// the client go on without ours being called, and which ones.
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
