package session

import (
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/ask"
	"heartbeat/queue/wire"
)

// TestTheSocketOfTheHooksComesBack where somebody has removed it, and the end of the session
// waits for nobody who has connected to it since.
func TestTheSocketOfTheHooksComesBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	log := slog.New(slog.DiscardHandler)
	s := &shim{spec: Spec{Session: id, StateDir: l.stateDir}, log: log, failed: complaints{log: log}}
	s.live = hook.NewLive(&hook.Record{}, l.home, "t", func(wire.Request) {})
	if err := s.answer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.hooks.path); err != nil {
		t.Fatal(err)
	}
	s.keepListening(time.Now().Add(2 * lookEvery))
	name, done, err := ask.ShortName(s.hooks.path)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	conn, err := net.Dial("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	question := ask.Encode("t", ask.Event, []byte("x"))
	if _, err := conn.Write(question[:len(question)-4]); err != nil { // the rest never comes
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { s.answered(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second): // a hook may take 30 to say what it asks
		t.Error("the session does not end")
	}
}
