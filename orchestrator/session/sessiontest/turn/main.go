// Command turn answers one hook as the shim of a session does, and then does what the hook would:
// in one process, so that it can be killed at each of its system calls. The session's record is
// taken from session.json, and left there.
//
// The payload is on its standard input. HEARTBEAT_HOME is the folder of the queue and of the
// record, HEARTBEAT_SESSION the session's token, and CLAUDE_PID the client.
//
// With the arguments "recover INBOX POLICY" it recovers the queue of a session that is gone, as the
// scheduler does, and says on standard error what became of the entry.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/ask"
	"heartbeat/hook/handover"
	"heartbeat/hook/harden"
	"heartbeat/hook/inbox"
	"heartbeat/hook/process"
	"heartbeat/queue/wire"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "recover" {
		recoverOrphan(os.Args[2], inbox.OrphanPolicy(os.Args[3]))
		return
	}
	harden.FollowShell()
	home, token := os.Getenv(ask.EnvHome), os.Getenv(ask.EnvSession)
	shown, err := hook.ReadRecord(home)
	if err != nil || shown == nil || shown.TokenHash != hook.TokenHash(token) {
		fmt.Fprintln(os.Stderr, "no record: ", err)
		os.Exit(1)
	}
	record := (*hook.Record)(shown)
	var live *hook.Live
	asked := inbox.RequestsOf(inbox.Place{Inbox: record.Inbox, Home: home, Dir: filepath.Dir(home)}, record.Session)
	requests := make(chan wire.Request, 100)
	live = hook.NewLive(record, home, token, func(r wire.Request) { requests <- r })
	go func() {
		for r := range requests {
			live.Answered(asked.Carry(context.Background(), r))
		}
	}()
	c := newCaller(token, os.Stdin)
	live.Answer(context.Background(), c, func() (hook.Caller, error) {
		pid, err := strconv.Atoi(os.Getenv("CLAUDE_PID"))
		return hook.Caller{Client: process.Of(pid), Hook: process.Of(os.Getpid())}, err
	})
	os.Exit(c.status)
}

func recoverOrphan(path string, policy inbox.OrphanPolicy) {
	err := inbox.HoldOrphaned(context.Background(), inbox.Place{Inbox: path}, false, func(q inbox.Orphaned) error {
		outcome, _, err := q.Recover(inbox.Interruption{
			Policy: policy, Counts: true, Now: time.Now(),
			Arrived: func(f inbox.InFlight) inbox.Arrival { return inbox.Arrival(handover.Arrived(f.Given())) },
			Begins:  func(f inbox.InFlight) bool { return handover.FitsArgument(f.Given()) },
		})
		for _, note := range append(q.Notes(), "recover: "+string(outcome)) {
			fmt.Fprintln(os.Stderr, note)
		}
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// caller is a hook's connection, and the hook.
type caller struct {
	asks   io.Reader
	status int

	mu     sync.Mutex
	answer bytes.Buffer
	says   chan byte // what the hook says of the answer
	closed chan struct{}
}

func newCaller(token string, payload io.Reader) *caller {
	data, err := io.ReadAll(payload)
	if err != nil {
		panic(err)
	}
	return &caller{asks: bytes.NewReader(ask.Encode(token, ask.Event, data)), says: make(chan byte, 1), closed: make(chan struct{})}
}

func (c *caller) Read(b []byte) (int, error) {
	if n, err := c.asks.Read(b); n > 0 {
		return n, err
	}
	select {
	case b[0] = <-c.says:
		return 1, nil
	case <-c.closed:
		return 0, io.EOF
	}
}

// Write takes a part of an answer, and acts on one that is whole.
func (c *caller) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer.Write(b)
	a, whole := ask.Decode(c.answer.Bytes())
	if !whole {
		return len(b), nil
	}
	c.answer.Reset()
	switch a.Kind {
	case ask.Prompt:
		c.says <- c.write(os.Stderr, a.Body)
		c.status = ask.StatusPrompt
	case ask.Print:
		c.says <- c.write(os.Stdout, a.Body)
	case ask.Nothing, ask.Theirs:
	}
	return len(b), nil
}

func (c *caller) write(to io.Writer, text []byte) byte {
	if _, err := to.Write(text); err != nil {
		return ask.Refused
	}
	return ask.Taken
}

func (c *caller) Close() error {
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	return nil
}

func (c *caller) SetReadDeadline(time.Time) error  { return nil }
func (c *caller) SetWriteDeadline(time.Time) error { return nil }
