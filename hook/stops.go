package hook

import (
	"cmp"
	"fmt"
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
}

// next returns the next Stop, or false when none stands there yet. mine is what
// our own hook has said at it, or "".
func (s *Stops) next(mine string) (stop client.Stopping, found bool) {
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
		if stop.CutBy != "" {
			s.Cut, s.By = s.Prompt, ShownCommand(stop.CutBy)
		}
		return false
	})
	return stop, found && err == nil
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

// MaxGates bounds how many hooks a record names.
const MaxGates = 16

// maxCommand bounds what is kept of a command line.
const maxCommand = 1000

// ShownCommand is a hook's command line as a record has it: bounded, on one line.
func ShownCommand(command string) string { return shorten(command, maxCommand) }

// goneOn notes that the client goes on after a Stop at which we let it end, or
// not we alone: others are the hooks that had it. Where that is learned the
// session hands nothing more over, as theirs and ours would go out together and
// the entry before be taken for done.
func (r *Record) goneOn(others []string, now time.Time) {
	for _, command := range others {
		if len(r.Gates) < MaxGates {
			r.Gates = client.AppendNew(r.Gates, ShownCommand(command))
		}
	}
	r.Prolonged = true
	if r.Ruling != nil && light(r.Ruling.Why) && !r.Ruling.Final {
		r.Ruling = nil
	}
	r.Settles = ""
	leave(r, Turn, now)
}

// strangers reports whether other Stop hooks run beside ours.
func (r *Record) strangers() bool { return r.Policy.ForeignStopHooks || r.Prolonged }

// Gated reports whether the session takes one entry: a hook is known to have the
// client go on, from before or by now.
func (r *Record) Gated() bool {
	return r.Policy.Gated || r.Prolonged && r.Policy.Foreign == ForeignLearn
}

// heedOthers learns, at a Stop, from the transcript whether other Stop hooks had
// the client go on since the one before. The lock is not held while we look. It
// is false when the lock, or the session, was lost meanwhile.
func (t *tick) heedOthers() bool {
	r := t.Record
	if t.event.Name != client.Stop || t.event.AgentID != "" || t.event.Cut || r.HandOvers != t.handOvers {
		return true
	}
	spoke := r.Spoke
	if !t.event.StopHookActive || spoke && !r.strangers() {
		if r.Spoke = false; spoke {
			t.save() // what follows may read it anew
		}
		return true
	}
	heard, mine := r.Heard, ""
	if heard.Path != t.event.Transcript {
		heard = Stops{Path: t.event.Transcript}
	}
	if spoke {
		mine = t.lastSaid()
	}
	t.exit()
	others := heard.others(mine, client.Claude.Transcript.Behind)
	crashPoint("heeded")
	if !t.enter(lockPatience) {
		return false
	}
	r = t.Record
	r.Heard, r.Spoke = heard, false
	if !spoke {
		r.Continuations++
		if len(others) == 0 {
			others = []string{client.UnknownHook}
		}
	}
	if len(others) > 0 {
		r.goneOn(others, time.Now())
	}
	t.save() // what follows may read it anew
	return true
}

// lastSaid is the text with which our last Stop hook had the client go on.
func (t *tick) lastSaid() string {
	flight, err := t.InFlight()
	if err != nil || flight == nil {
		return idleTickPrompt
	}
	return PromptFor(flight, flight.Prompt())
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

// settles reports whether the entry at whose Stop we are is done only once it is
// known that no other Stop hook has the client go on. next says that another one
// is queued. Where we hand over or wait there is nothing to wait for but the next
// Stop: the entry is done now, unless other hooks are known to have the client go
// on.
func settles(r *Record, next bool, now time.Time) bool {
	p := r.Policy
	switch {
	case !r.strangers():
		return false
	case r.Gated() || r.Ruling != nil || p.Context == ContextEntry:
		return true
	case typing(r, now):
		return false
	}
	return !next && p.Mode != Persist && r.Attached == 0
}

// settle lets the turn end, and leaves it to the shim to say whether it did.
func (t *tick) settle(a *inbox.Acknowledgement) int {
	r := t.Record
	flight, err := t.Advance(inbox.Taken, t.event.PromptID)
	if err != nil {
		t.log("%v", err)
		return t.giveUp()
	}
	crashPoint("settling")
	r.LastReply, r.Settles = Cut(a.Reply, inbox.MaxReply), flight.DeliveryID
	if r.Prolonged && runsAway(r) {
		return t.runAway()
	}
	leave(r, Settling, time.Now())
	t.save()
	return 0
}

// letGo notes that a turn ends at which nothing was handed over. Where there are
// other Stop hooks the client may go on: the shim says whether it did not.
func (t *tick) letGo() {
	if r := t.Record; r.strangers() && r.Phase == Ending && r.Ruling != nil && r.Ruling.Why != EndRunaway {
		leave(r, Settling, time.Now())
	}
}

// follow begins anew where another transcript does, behind what it holds.
func (s *Stops) follow(transcript string) {
	if s.Path != transcript {
		*s = Stops{Path: transcript, Offset: TranscriptSize(transcript)}
	}
}

// runsAway reports whether the session has had as many turns as it may without
// an acknowledgement.
func runsAway(r *Record) bool {
	return r.Policy.MaxContinuations > 0 && r.Continuations >= r.Policy.MaxContinuations
}

// holdRunaway is how long the Stop of a runaway is held open. The shim ends the
// client meanwhile, which makes no model call while a Stop hook runs.
const holdRunaway = 30 * time.Second

// NameHooks names hooks, by their command lines, within a line that people read:
// the first two of them, and no more of each than tells it from others.
func NameHooks(commands []string) string {
	var names []string
	for i, command := range commands {
		if i == 2 {
			names = append(names, fmt.Sprintf("%d more", len(commands)-i))
			break
		}
		names = append(names, shorten(command, 60))
	}
	return cmp.Or(strings.Join(names, "; "), "another Stop hook")
}

// runAway ends the session. What other hooks have said by now would be the next
// turn.
func (t *tick) runAway() int {
	r := t.Record
	why := "turns without an acknowledgement"
	if len(r.Gates) > 0 {
		why = NameHooks(r.Gates) + " has the client go on"
	}
	r.End(EndRunaway, why, time.Now())
	leave(r, Ending, time.Now())
	t.save()
	t.exit()
	crashPoint("runaway")
	for deadline := time.Now().Add(holdRunaway); time.Now().Before(deadline) && lives(t.client) && !t.gone(); {
		time.Sleep(lookAgain)
	}
	return 0
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
