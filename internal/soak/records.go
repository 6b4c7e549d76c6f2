package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// step is how far a sending came.
type step string

const (
	intended step = "intended" // about to be sent
	accepted step = "accepted" // the sender knows that it is
	refused  step = "refused"  // the sender was told that it is not
	unknown  step = "unknown"  // the sender was killed: it may be or not
)

// sending is one line of sent.jsonl.
type sending struct {
	At     time.Time `json:"at"`
	Step   step      `json:"step"`
	Agent  string    `json:"agent"`
	Sender string    `json:"sender"`
	// N counts a sender's prompts: what it sends later has a larger one.
	N      int    `json:"n"`
	Key    string `json:"key"` // stands in the prompt, and in no other
	How    how    `json:"how"`
	Prompt string `json:"prompt,omitempty"` // of intended
	ID     string `json:"id,omitempty"`
	Note   string `json:"note,omitempty"`
}

// how is the way in which a prompt is sent.
type how string

const (
	bySend   how = "send"
	byID     how = "send --id"
	byEcho   how = "echo"
	bySlow   how = "slow writer"
	byFile   how = "watched file"
	byTicket how = "polled ticket"
)

// ordered reports whether a sender's prompts are queued in its order.
func (h how) ordered() bool { return h != byFile && h != byTicket }

// fault is one line of faults.jsonl: something that was done to the fleet.
type fault struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Kind   faultKind `json:"kind"`
	Agent  string    `json:"agent"` // "" is all of them
	Class  class     `json:"class,omitempty"`
	PID    int       `json:"pid,omitempty"`
	Detail string    `json:"detail,omitempty"`
}

type faultKind string

const (
	faultKill      faultKind = "kill -9"
	faultTerm      faultKind = "SIGTERM"
	faultStop      faultKind = "SIGSTOP"
	faultSignal    faultKind = "other signal"
	faultDisk      faultKind = "disk full"
	faultReload    faultKind = "reload"
	faultBadReload faultKind = "bad reload"
	faultClock     faultKind = "clock step"
	faultRetry     faultKind = "dead-letter retry"
	faultTrigger   faultKind = "trigger"
	faultPause     faultKind = "pause"
	faultRecover   faultKind = "recover"
	faultAttach    faultKind = "attach"
	faultLook      faultKind = "look"
)

// interrupts reports whether a session can be interrupted by it, so that an
// entry is given again.
func (f fault) interrupts() bool {
	switch f.Kind {
	case faultKill, faultTerm, faultStop, faultSignal, faultDisk:
		return true
	}
	return false
}

// requeues reports whether a person had entries queued again by it.
func (f fault) requeues() bool { return f.Kind == faultRetry || f.Kind == faultTrigger }

// surprise is one line of surprises.jsonl: what no fault explains, seen while
// the fleet ran.
type surprise struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
}

// ledger is a file of JSON lines, each synced before add returns.
type ledger[T any] struct {
	mu   sync.Mutex
	file *os.File
	n    int
}

func openLedger[T any](dir, name string) (*ledger[T], error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return &ledger[T]{file: f}, err
}

// add panics when the evidence cannot be kept: going on would prove nothing.
func (l *ledger[T]) add(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line, err := json.Marshal(v)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		panic("cannot keep the evidence: " + err.Error())
	}
	l.n++
}

func (l *ledger[T]) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// readLines reads a file of JSON lines; one that does not exist has none. A
// last line without its end is passed over: its writer is at it, or was killed.
func readLines[T any](dir, name string) ([]T, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []T
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return all, nil
		}
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}
