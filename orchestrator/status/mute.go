package status

import (
	"fmt"
	"time"

	"heartbeat/hook/process"
)

// Mute is a run that has the fleet, and does not answer.
type Mute struct {
	PID int `json:"pid"` // 0: not known
	// Seen is when it demonstrably lived last, up to a minute early; zero: not known.
	Seen time.Time `json:"seen,omitzero"`
	// State is its process's, as ps(1) prints it; "": not known.
	State string `json:"state,omitempty"`
	// NoSocket is true if it lives, and the socket that takes its commands is not there.
	NoSocket bool `json:"no_socket,omitempty"`
}

// Stopped reports whether its process is stopped: it does nothing, however long one waits.
func (m Mute) Stopped() bool { return m.halt() != process.Halt{} }

func (m Mute) halt() process.Halt {
	if m.State == "" {
		return process.Halt{}
	}
	return process.HaltOf(m.PID, m.State[0])
}

// Text says who does not answer, why as far as that is known, and since when.
func (m Mute) Text(now time.Time) string {
	text := "the scheduler" + process.Numbered(m.PID) + " does not answer"
	switch {
	case m.NoSocket:
		return "the scheduler" + process.Numbered(m.PID) + " runs, and commands cannot reach it: its socket is not there"
	case m.Stopped():
		text += ": " + m.halt().By + " has stopped it"
	case m.State == "D":
		text += ": it waits for a disk"
	}
	if !m.Seen.IsZero() {
		text += fmt.Sprintf("; it was last seen %s ago, at %s", Age(max(0, now.Sub(m.Seen))), m.Seen.Local().Format(time.DateTime))
	}
	return text
}

// Do is what to do about it; ours is how a command line for the fleet begins.
func (m Mute) Do(ours string) string {
	end := fmt.Sprintf("if it still does not answer, kill %[1]d, or kill -KILL %[1]d if that does not help: it ends with its sessions; then %[2]s run", m.PID, ours)
	switch {
	case m.NoSocket:
		return fmt.Sprintf("wait a few seconds: it makes its socket again; if it does not, kill %d, then %s run", m.PID, ours)
	case m.Stopped():
		return m.halt().Do
	case m.State == "D":
		return "look at the disk or the network file system of the fleet's directories; it goes on when that answers"
	case m.PID == 0:
		return "find it (ps -C heartbeat) and see whether it is stopped or hangs"
	case m.State == "": // the system does not tell
		return fmt.Sprintf("ps -o stat= -p %[1]d; if that prints T, kill -CONT %[1]d; ", m.PID) + end
	}
	return "wait, if the machine is busy; " + end
}

// Then is what follows.
func (m Mute) Then() string {
	if m.State == "T" {
		return "it goes on where it was; prompts wait as they stand"
	}
	return ""
}
