package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"heartbeat/internal/promise"
)

// The record of a run and what tools add to it, below its folder.
const (
	recordFile = "record.jsonl"
	toolsFile  = "tools.jsonl"
)

// how is the way in which a prompt is sent.
type how string

const (
	bySend   how = "send"
	byID     how = "send --id"
	byEcho   how = "echo"
	bySlow   how = "slow writer"
	byFile   how = "watched file"
	byTicket how = "polled ticket"
	byCron   how = "cron"
)

// ordered reports whether a sender's prompts are queued in its order.
func (h how) ordered() bool { return h != byFile && h != byTicket && h != byCron }

// faultKind is what was done to the fleet.
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

// explains is what can come of it.
func (k faultKind) explains() promise.Kind {
	switch k {
	case faultKill, faultTerm, faultStop, faultSignal, faultDisk:
		return promise.Interrupted
	case faultRetry, faultTrigger:
		return promise.Requeued
	}
	return promise.Acted
}

// on is the fact of a fault that begins now; agent "" is all of them.
func (k faultKind) on(agent string, c class) promise.Fact {
	return promise.Fact{
		At: time.Now(), Kind: k.explains(), Agent: agent, What: strings.TrimSpace(string(k) + " " + string(c)),
		Lasting: k == faultStop || k == faultDisk, Unwitnessed: k == faultDisk || c == classHook || c == classTool,
	}
}

// slack is how long before an entry is given its hand-over can have begun to
// go wrong: a hook that proves that it arrived runs before the model is asked.
const slack = 3 * time.Second

// ledger is a record that is being written.
type ledger struct {
	mu   sync.Mutex
	file *os.File
}

func openLedger(dir string) (*ledger, error) {
	f, err := os.OpenFile(filepath.Join(dir, recordFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return &ledger{file: f}, err
}

// add writes and syncs a fact. It panics when the evidence cannot be kept:
// going on would prove nothing.
func (l *ledger) add(f promise.Fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := f.Write(l.file)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		panic("cannot keep the evidence: " + err.Error())
	}
}

// over adds a fault that is over now.
func (l *ledger) over(f promise.Fact) { l.overAt(f, time.Now()) }

func (l *ledger) overAt(f promise.Fact, at time.Time) {
	if f.Until = at; f.Kind == promise.Interrupted {
		f.Until = at.Add(slack)
	}
	l.add(f)
}

func readRecord(path string) (promise.Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return promise.Read(f)
}
