package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/orchestrator/usage"
	"heartbeat/ptyrun"
)

// settingsLeft reports whether what the agent's client was passed is still there.
func (l *lab) settingsLeft() bool {
	_, err := os.Lstat((&Spec{StateDir: l.stateDir, Agent: "a"}).settingsFile())
	return !errors.Is(err, fs.ErrNotExist)
}

func passed(s *Spec) { s.Settings = []byte(`{"env":{"SECRET":"s"}}`) }

// TestPassedSettingsDoNotOutliveTheSession: the file, which may hold secrets, stayed
// for ever, however the session ended.
func TestPassedSettingsDoNotOutliveTheSession(t *testing.T) {
	t.Parallel()
	t.Run("ended", func(t *testing.T) {
		t.Parallel()
		l := newLab(t, "work")
		l.run(`cp "`+l.stateDir+`/passed/a.json" "$HOME/seen"`, passed)
		if _, err := os.Stat(filepath.Join(l.user, "seen")); err != nil {
			t.Errorf("the client was passed none: %v", err)
		}
		if l.settingsLeft() {
			t.Error("it is left")
		}
	})
	t.Run("not started", func(t *testing.T) {
		t.Parallel()
		l := newLab(t, "work")
		o := l.run("", passed, func(s *Spec) { s.Command = []string{filepath.Join(l.dir, "no-client")} })
		if o.ExitCode != 127 || l.settingsLeft() {
			t.Errorf("it is left: %t; %+v", l.settingsLeft(), o)
		}
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		shimOf := func(session string, p hook.Process) *shim {
			s := &shim{spec: Spec{Agent: "a", Session: session, Token: "00000000000000000000000000000c0c", StateDir: l.stateDir}, record: &hook.Record{Shim: p}}
			passed(&s.spec)
			if err := errors.Join(s.keepLeftover(), s.keepSettings()); err != nil {
				t.Fatal(err)
			}
			return s
		}
		start, err := ptyrun.StartTimeOf(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		gone := hook.Process{PID: os.Getpid(), Start: 1} // its number is another one's now
		shimOf("killed", gone)
		if _, err := l.sweep(); err != nil || l.settingsLeft() {
			t.Errorf("it is left: %t, %v", l.settingsLeft(), err)
		}
		shimOf("killed", gone)
		live := shimOf("live", hook.Process{PID: os.Getpid(), Start: start})
		if _, err := l.sweep(); err != nil || !l.settingsLeft() {
			t.Errorf("that of a live session is left: %t, %v", l.settingsLeft(), err)
		}
		if err := live.dropLeftover(); err != nil || l.settingsLeft() {
			t.Errorf("it is left at the end: %t, %v", l.settingsLeft(), err)
		}
	})
}

// TestANoteStaysUntilTheCostIsRecorded: where what a killed session had cost could
// not be recorded, as on a full disk, its note was removed and nobody counted it.
func TestANoteStaysUntilTheCostIsRecorded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.billed(time.Now(), func(s *Spec) { s.Token = "00000000000000000000000000000d0d" })
	s.record.Shim = hook.Process{PID: os.Getpid(), Start: 1}
	s.bill.begun = []usage.Record{{At: time.Now(), Agent: "a", Session: id, Number: 1, Sum: usage.Sum{Calls: 1}}}
	if err := s.keepLeftover(); err != nil {
		t.Fatal(err)
	}
	kept, end := storetest.Open(t, l.stateDir)
	end() // nothing can be written there any more
	if _, err := SweepLeftovers(t.Context(), kept, l.stateDir, "a", 0); err == nil || len(Leftovers(l.stateDir)) != 1 {
		t.Errorf("notes: %d, %v", len(Leftovers(l.stateDir)), err)
	}
	if _, err := SweepLeftovers(t.Context(), nil, l.stateDir, "a", 0); err != nil || len(Leftovers(l.stateDir)) != 1 {
		t.Errorf("who cannot record it: notes: %d, %v", len(Leftovers(l.stateDir)), err)
	}
	if _, err := l.sweep(); err != nil || len(Leftovers(l.stateDir)) != 0 || l.spent().Calls != 1 {
		t.Errorf("notes: %d, %v, recorded: %+v", len(Leftovers(l.stateDir)), err, l.spent())
	}
}

// TestTheSocketOfAKilledShimIsSwept: each one left its own behind, for ever.
func TestTheSocketOfAKilledShimIsSwept(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := &shim{
		spec:   Spec{Agent: "a", Session: "killed", Token: "00000000000000000000000000000d0e", StateDir: l.stateDir},
		record: &hook.Record{Shim: hook.Process{PID: os.Getpid(), Start: 1}},
	}
	socket := hooksSocket(l.stateDir, "killed")
	if err := errors.Join(s.keepLeftover(), os.MkdirAll(filepath.Dir(socket), 0o700), os.WriteFile(socket, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}
