// Package handover decides what text a session is given and what proves that it
// arrived: an entry as the model sees it, and what the client's transcript shows of
// it and of the Stops. It reads transcripts, which belong to the client but which
// the agent can write, with limits, and writes nothing but the files that carry long prompts.
package handover

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/queue"
)

// GoOnPrompt is the prompt argument of a session that continues, in the same
// conversation, an entry whose turn was ended by a failure of the API.
const GoOnPrompt = "Go on with the task that was interrupted by a failure of the service, from where it stopped."

// IdleTick is the text of a turn without an entry, as in heartbeat-rs.
const IdleTick = "--- IDLE TICK ---"

// KickoffPrompt is the prompt argument of a session that starts with its first
// entry: a constant first line prevents a leading "/" or "-" from being read as a
// command or flag.
func KickoffPrompt(text string) string { return "Task from the queue:\n\n" + text }

// PromptFor is the text of an entry as our session gets it: Whole, or where to find
// that.
func PromptFor(g *queue.Given) string {
	if !ByFile(g) {
		return Whole(g)
	}
	return fmt.Sprintf("The next task is too long to be handed over itself. It is in the file %q, which has %d bytes. "+
		"Read all of that file, in parts where it has to be, and do what it says as if it stood here.", g.Handover.File, len(Whole(g)))
}

// Whole is the text of an entry: verbatim, below what its check has found if it is a
// later iteration, with a footer that warns of a repeat if a session may have worked on
// it before and repeats are marked.
func Whole(g *queue.Given) string {
	prompt := g.Prompt
	if g.Iteration > 1 {
		prompt = missing(g) + prompt
	}
	if !g.IsRepeat() || g.Handover.Unmarked {
		return prompt
	}
	return fmt.Sprintf("%s\n\n[heartbeat: attempt %d of this entry; an earlier one was interrupted. "+
		"Check what is already done before acting.]", prompt, g.Attempt)
}

// missing says which iteration an entry is in, and why it is not done.
func missing(g *queue.Given) string {
	number := strconv.Itoa(g.Iteration)
	if g.Most > 0 {
		number += " of " + strconv.Itoa(g.Most)
	}
	said := "It is not proven to be done, and its check said nothing.]"
	switch {
	case g.Answers != "":
		said = "You have asked people, and this is what they say:]\n\n" + g.Answers
	case g.Output != "":
		said = "It is not proven to be done. What its check said last:]\n\n" + g.Output
	}
	return "[heartbeat: iteration " + number + " of this entry. " + said + "\n\n[heartbeat: the entry:]\n\n"
}

// Proof is what a transcript shows if a hand-over has arrived.
type Proof struct {
	// Path is the transcript's; nothing before Offset is read.
	Path   string
	Offset int64
	// Asked is true if it is a prompt, and false if a Stop hook said it.
	Asked bool
	Text  string // as the model sees it
}

// Of returns the proof for an entry that was handed over.
func Of(g *queue.Given) Proof {
	h := g.Handover
	p := Proof{Path: h.Transcript, Offset: h.Offset, Asked: h.Via != queue.ViaStop, Text: PromptFor(g)}
	switch h.Via {
	case queue.ViaKickoff:
		p.Text = KickoffPrompt(p.Text)
	case queue.ViaResume:
		p.Text = GoOnPrompt
	}
	return p
}

// ByFile reports whether a session was handed over no more of an entry than the name of a
// file that has it.
func ByFile(g *queue.Given) bool { return g.Handover.File != "" }

// FitsArgument reports whether a session can be started with an entry as its first prompt,
// which needs no file.
func FitsArgument(g *queue.Given) bool { return client.Claude.Carries(Whole(g)) }

// In returns the proof in a transcript, if the entry's record names none.
func (p Proof) In(transcript string) Proof {
	p.Path = cmp.Or(p.Path, transcript)
	return p
}

// nothingProves is the offset of a hand-over that a transcript cannot prove.
const nothingProves = math.MaxInt64

// LookAgain is the pause between two looks at a transcript that the client is still
// writing.
const LookAgain = 20 * time.Millisecond

// Wait looks until the transcript holds the hand-over or patience is over.
func (p Proof) Wait(patience time.Duration) queue.Arrival {
	deadline := time.Now().Add(patience)
	for {
		arrived, next := p.look()
		if arrived == queue.Seen || !time.Now().Add(LookAgain).Before(deadline) {
			return arrived
		}
		p.Offset = next
		time.Sleep(LookAgain)
	}
}

// look reads the complete lines from the offset on. It returns where the next look
// continues.
func (p Proof) look() (arrived queue.Arrival, next int64) {
	arrived, next = queue.Unseen, p.Offset
	err := eachLine(p.Path, p.Offset, func(line []byte, end int64) bool {
		if next = end; p.shows(line) {
			arrived = queue.Seen
		}
		return arrived != queue.Seen
	})
	if err != nil {
		return queue.Unknown, next
	}
	return arrived, next
}

// shows reports whether a line shows that the text reached the model.
func (p Proof) shows(line []byte) bool {
	if p.Asked {
		return client.Claude.Transcript.Asked(line, p.Text)
	}
	return client.Claude.Transcript.HandedOver(line, p.Text)
}

// Answered looks until the transcript holds words of the agent after the hand-over,
// or patience is over. If the transcript does not hold the hand-over, nothing can
// be said, and the result is true.
func (p Proof) Answered(patience time.Duration) bool {
	deadline := time.Now().Add(patience)
	for handed := false; ; {
		answered, next := false, p.Offset
		err := eachLine(p.Path, p.Offset, func(line []byte, end int64) bool {
			next = end
			if !handed {
				handed = p.shows(line)
				return true
			}
			answered = speaks(line)
			return !answered
		})
		switch {
		case answered || err != nil && !errors.Is(err, fs.ErrNotExist): // the client may create it after its first turns
			return true
		case !time.Now().Add(LookAgain).Before(deadline):
			return !handed
		}
		p.Offset = next
		time.Sleep(LookAgain)
	}
}

// speaks reports whether a line of the transcript is words of the agent.
func speaks(line []byte) bool {
	_, words, _ := client.Claude.Transcript.Answered(line)
	return slices.ContainsFunc(words, func(text string) bool { return strings.TrimSpace(text) != "" })
}

// IsLike reports whether a hand-over by a Stop hook had a prompt.
func IsLike(before *queue.Given, prompt string) bool {
	return before != nil && before.Handover.Via == queue.ViaStop && before.Prompt == prompt
}

// NextOffset is where the transcript would show a prompt that follows a hand-over of the same
// client. An equal one before it may not be written yet, and would prove this one: NextOffset
// waits for it, at most this long.
func NextOffset(path, prompt string, before *queue.Given, patience time.Duration) int64 {
	if IsLike(before, prompt) && before.Handover.Offset != nothingProves {
		p := Of(before).In(path)
		if p.Path == path && p.Wait(patience) != queue.Seen {
			return nothingProves
		}
	}
	return TranscriptSize(path)
}
