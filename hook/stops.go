package hook

import (
	"path"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/inbox"
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
	if size := TranscriptSize(s.Path); size-s.Offset > maxTranscript {
		s.Offset, s.Prompt = size-maxTranscript/2, "" // amid a line, which is no record then
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

// others reads all Stops that stand in the transcript, and waits for one after
// which the client went on.
func (s *Stops) others(mine string, patience time.Duration) (others []string) {
	deadline := time.Now().Add(patience)
	for seen := false; ; {
		stop, found := s.next(mine)
		if found {
			// Where we had said nothing there is one that somebody else prolonged.
			seen = seen || stop.Continued && (mine != "" || len(stop.Others) > 0)
			others = client.AppendNew(others, stop.Others...)
			continue
		}
		if seen || !time.Now().Add(lookAgain).Before(deadline) {
			return others
		}
		time.Sleep(lookAgain)
	}
}

// ear is how far a waiting hook has listened to the transcript: it looks often,
// and each line is read once.
type ear struct {
	from  Stops
	spoke bool
}

// othersSpoke reports whether another hook of the Stop at which ours waits has
// had its say: the client goes on with that once ours ends. What a hook says is
// written when that hook has ended.
func (e *ear) othersSpoke() bool {
	e.from.skip()
	_ = eachLine(e.from.Path, e.from.Offset, func(line []byte, end int64) bool {
		e.from.Offset = end
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

// follow begins anew where another transcript does, behind what it holds.
func (s *Stops) follow(transcript string) {
	if s.Path != transcript {
		*s = Stops{Path: transcript, Offset: TranscriptSize(transcript)}
	}
}

// Stopped reports whether the client has demonstrably stopped after the Stop that
// a session settles: no hook had it go on.
func (s *Stops) Stopped(r *Record) bool {
	s.readAll(r.Transcript)
	return r.PromptID != "" && s.Over == r.PromptID
}

// CutShort returns the hook that had the client stop at the Stop at which ours
// handed over ("continue": false): the client has kept what we said, and gave it
// to no model. It is "" where none did.
func (s *Stops) CutShort(r *Record) string {
	if r.Phase != Turn || !r.Spoke || !r.strangers() {
		return ""
	}
	s.readAll(r.Transcript)
	if r.PromptID == "" || s.Cut != r.PromptID {
		return ""
	}
	return s.By
}

// PassedOver returns the hooks that have the client go on without ours being
// called, once the session has had as many turns as it may without an
// acknowledgement: nobody but the shim can end it then. Before that it is nil.
func (s *Stops) PassedOver(r *Record) []string {
	if r.Phase != Turn || r.Policy.MaxContinuations <= 0 {
		return nil
	}
	s.readAll(r.Transcript)
	if s.Alone == 0 || r.Continuations+s.Alone < r.Policy.MaxContinuations {
		return nil
	}
	return s.AloneBy
}

func (s *Stops) readAll(transcript string) {
	if s.Path != transcript {
		*s = Stops{Path: transcript}
	}
	for found := true; found; {
		_, found = s.next("")
	}
}

// Finished returns what acknowledges the entry in flight of a session that is no
// more, and that had settled its last turn; nil when nothing proves that it had.
// Whoever forges the proof could have written the outbox as well.
func Finished(home string, f inbox.InFlight, now time.Time) *inbox.Acknowledgement {
	shown, err := ReadRecord(home)
	if err != nil || shown == nil || shown.Session != f.Session || shown.Settles != f.DeliveryID {
		return nil
	}
	r := (*Terms)(nil).record(shown)
	if s := (Stops{Path: r.Transcript}); !s.Stopped(r) {
		return nil
	}
	return r.Acknowledges(now)
}

// Acknowledges is what acknowledges the entry whose turn the session settles.
func (r *Record) Acknowledges(now time.Time) *inbox.Acknowledgement {
	return &inbox.Acknowledgement{Session: r.Session, Reply: r.LastReply, Abandoned: r.BackgroundTasks, Now: now}
}
