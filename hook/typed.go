package hook

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/handover"
)

// TypingPause is how long after a person's last key a session is handed
// nothing, where its policy does not say.
const TypingPause = 2 * time.Minute

// Hush returns until when nothing is handed over because a person has typed,
// whether they are still there or not; zero when nobody has.
func (r *Record) Hush() time.Time {
	if r.TypedAt.IsZero() {
		return time.Time{}
	}
	return r.TypedAt.Add(cmp.Or(r.Policy.TypingPause, TypingPause))
}

// Hush is the same by what is shown, where nothing is decided by it.
func (s *Shown) Hush() time.Time {
	if s.TypedAt.IsZero() {
		return time.Time{}
	}
	return s.TypedAt.Add(TypingPause)
}

// typing reports whether a person types, or has just done so.
func typing(r *Record, now time.Time) bool { return now.Before(r.Hush()) }

// attended reports whether a person is at the terminal who can answer a dialog.
func attended(r *Record, now time.Time) bool { return r.Attached > 0 && typing(r, now) }

// Line is what a person has submitted at the terminal while the client was
// busy: it takes that once the turn has ended, prompts all together (measured
// in 2.1.329). Until then the turn must be let end: a hook that waits, or
// hands over more, keeps it from the model.
//
// The transcript says what stands in the line ({"type":"queue-operation",
// "operation":"enqueue"}, and "dequeue" or "remove" when it is taken), also of
// commands, which no hook hears of. It is written behind, so the prompts that
// a hook has heard of count, too.
type Line struct {
	Transcript string `json:"transcript,omitempty"`
	Offset     int64  `json:"offset,omitempty"` // the transcript is read up to here
	In         int    `json:"in,omitempty"`
	Out        int    `json:"out,omitempty"`
	// Submitted is how many prompts hooks have heard of, at least In.
	Submitted int `json:"submitted,omitempty"`
	// Let is In and Out together when the turn was last let end for the line.
	// When nothing has come of it, nothing stands in it.
	Let int `json:"let,omitempty"`
}

// stands reports whether something that was typed waits for the turn's end.
func (l *Line) stands() bool {
	return max(l.In, l.Submitted) > l.Out && (l.Submitted > l.In || l.In+l.Out != l.Let)
}

// serve notes that the turn is let end for the line.
func (l *Line) serve() { l.Submitted, l.Let = l.In, l.In+l.Out }

// follow begins anew where another transcript does, behind what it holds: a
// client starts with an empty line.
func (l *Line) follow(transcript string) {
	if l.Transcript != transcript {
		*l = Line{Transcript: transcript, Offset: handover.TranscriptSize(transcript)}
	}
}

// read takes in what the transcript says since the last look. What cannot be
// read says nothing.
func (l *Line) read() {
	f, err := durable.OpenFile(l.Transcript, os.O_RDONLY)
	if err != nil {
		return
	}
	defer f.Close()
	if _, err := f.Seek(l.Offset, io.SeekStart); err != nil {
		return
	}
	in := bufio.NewReaderSize(io.LimitReader(f, handover.MaxLook), 64<<10)
	for {
		line, length, err := durable.Line(in, handover.MaxLine)
		if err != nil {
			break
		}
		l.Offset += length
		l.take(line)
	}
	l.Submitted = max(l.Submitted, l.In)
}

func (l *Line) take(line []byte) {
	switch client.Claude.Transcript.Queued(line) {
	case client.Enqueued:
		l.In++
	case client.Dequeued:
		l.Out++
	case client.TakenBack:
		l.In = max(l.In, l.Submitted)
		l.Out = l.In
	}
}

// lookAtLine reads what stands in the client's line, where somebody may have
// typed at all.
func (r *Record) lookAtLine() {
	if !r.TypedAt.IsZero() || r.Line.Submitted > 0 {
		r.Line.read()
	}
}

// lineBehind is how long a Stop waits for the transcript to say that what was
// typed has been taken. The hook lock is held meanwhile, so it is less than the
// others wait for that.
const lineBehind = time.Second

// settleLine is lookAtLine at the end of a turn: that may have been the turn of
// what was typed, and the transcript be behind. A Stop that is let pass then has
// nobody wait for work any more.
func (r *Record) settleLine() {
	deadline := time.Now().Add(lineBehind)
	for r.lookAtLine(); r.Line.stands() && time.Now().Before(deadline); r.lookAtLine() {
		time.Sleep(handover.LookAgain)
	}
	if r.Line.In > 0 { // the transcript has it by now: what was counted twice is not there
		r.Line.Submitted = r.Line.In
	}
}

// noteSubmitted notes a prompt that was submitted in the middle of a turn: it
// comes with the turn's own prompt id, any other begins a turn.
func noteSubmitted(r *Record, p *client.Event) {
	if r.Phase == Turn && p.PromptID != "" && p.PromptID == r.PromptID {
		r.Line.Submitted++
	}
}
