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

// TypingPause is how long nothing is handed to a session after a person's last key,
// unless its policy says otherwise.
const TypingPause = 2 * time.Minute

// Hush returns the time until which nothing is handed over because a person has
// typed, whether they are still attached or not; zero when nobody has.
func (r *Record) Hush() time.Time {
	if r.TypedAt.IsZero() {
		return time.Time{}
	}
	return r.TypedAt.Add(cmp.Or(r.Policy.TypingPause, TypingPause))
}

// typing reports whether a person is typing or has just typed.
func typing(r *Record, now time.Time) bool { return now.Before(r.Hush()) }

// attended reports whether a person is at the terminal who can answer a dialog.
func attended(r *Record, now time.Time) bool { return r.Attached > 0 && typing(r, now) }

// Line tracks what a person submitted at the terminal while the client was busy.
// The client takes it after the turn has ended, all prompts together (measured in
// 2.1.329). Until then the turn must be allowed to end: a hook that waits, or hands
// over more, keeps it from the model.
//
// The transcript shows what is in the line
// ({"type":"queue-operation","operation":"enqueue"}, and "dequeue" or "remove" when
// it is taken). It also shows commands, which no hook hears about. The transcript
// is written with a delay, so prompts that a hook heard about count, too.
type Line struct {
	Transcript string `json:"transcript,omitempty"`
	Offset     int64  `json:"offset,omitempty"` // the transcript is read up to here
	In         int    `json:"in,omitempty"`
	Out        int    `json:"out,omitempty"`
	// Submitted is how many prompts hooks have heard of, at least In.
	Submitted int `json:"submitted,omitempty"`
	// Let is In plus Out at the time when the turn was last allowed to end for the
	// line. If neither has changed since, nothing is in the line.
	Let int `json:"let,omitempty"`
}

// stands reports whether something that was typed waits for the turn's end.
func (l *Line) stands() bool {
	return max(l.In, l.Submitted) > l.Out && (l.Submitted > l.In || l.In+l.Out != l.Let)
}

// serve records that the turn is allowed to end for the line.
func (l *Line) serve() { l.Submitted, l.Let = l.In, l.In+l.Out }

// follow starts again when the transcript changes, after what it already holds: a
// new client starts with an empty line.
func (l *Line) follow(transcript string) {
	if l.Transcript != transcript {
		*l = Line{Transcript: transcript, Offset: handover.TranscriptSize(transcript)}
	}
}

// read reads what the transcript recorded since the last call. It ignores errors.
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

// lookAtLine reads what is in the client's line, if anybody may have typed at all.
func (r *Record) lookAtLine() {
	if !r.TypedAt.IsZero() || r.Line.Submitted > 0 {
		r.Line.read()
	}
}

// lineBehind is how long a Stop waits for the transcript to show that the typed
// text was taken. No other hook changes the session meanwhile, so this is shorter than
// they wait for that.
const lineBehind = time.Second

// settleLine is lookAtLine at the end of a turn. That turn may have been the one
// for the typed text, and the transcript may lag. If the turn were allowed to end
// then, no hook would be left waiting for work.
func (r *Record) settleLine() {
	deadline := time.Now().Add(lineBehind)
	for r.lookAtLine(); r.Line.stands() && time.Now().Before(deadline); r.lookAtLine() {
		time.Sleep(handover.LookAgain)
	}
	if r.Line.In > 0 { // the transcript has it by now: what was counted twice is not there
		r.Line.Submitted = r.Line.In
	}
}

// noteSubmitted records a prompt that was submitted in the middle of a turn: it has
// the turn's own prompt id, while any other prompt begins a turn.
func noteSubmitted(r *Record, p *client.Event) {
	if r.Phase == Turn && p.PromptID != "" && p.PromptID == r.PromptID {
		r.Line.Submitted++
	}
}
