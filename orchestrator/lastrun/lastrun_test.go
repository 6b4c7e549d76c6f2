package lastrun

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/state"
)

const envBegin = "LASTRUN_TEST_BEGIN"

// TestMain is a run that is there until it is killed, if the environment names a directory.
func TestMain(m *testing.M) {
	if dir := os.Getenv(envBegin); dir != "" {
		Begin(dir, Run{PID: os.Getpid(), Began: time.Now()}, slog.New(slog.DiscardHandler)).Ready()
		_, _ = os.Stdout.WriteString("there\n")
		select {}
	}
	os.Exit(m.Run())
}

// TestAKilledRunIsKnown: kill -9 leaves nobody who could say it; who comes next says it, and
// so does the next run of the one before it.
func TestAKilledRunIsKnown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if k := Of(dir); k != nil {
		t.Fatalf("a fleet that never ran: %+v", k)
	}
	run := exec.Command(os.Args[0])
	run.Env = append(os.Environ(), envBegin+"="+dir)
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if k := Of(dir); k == nil || !k.Lives || k.Past != nil || k.PID != run.Process.Pid || k.Ready.IsZero() {
		t.Errorf("a run that lives: %+v", k)
	}
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait()
	k := Of(dir)
	if k == nil || k.Lives || k.Past == nil || k.Past.How != Killed || !k.Past.Died() || time.Since(k.Past.Ended) > time.Minute || k.Past.Within != Every {
		t.Fatalf("a run that was killed: %+v", k)
	}
	next := Begin(dir, Run{PID: 1, Began: time.Now()}, slog.New(slog.DiscardHandler))
	if b := next.Before(); b == nil || b.How != Killed || b.PID != run.Process.Pid {
		t.Errorf("the run after it: %+v", b)
	}
	other := Begin(dir, Run{PID: 2, Began: time.Now()}, slog.New(slog.DiscardHandler))
	other.End(Failed, "another run has the directory")
	if k := Of(dir); !k.Lives || k.PID != 1 || k.How != "" {
		t.Errorf("a second run has said something of the first: %+v", k)
	}
	next.End(Stopped, ByCommand)
	if k := Of(dir); k.Lives || k.Past.How != Stopped || k.Past.Died() || k.Past.Within != 0 {
		t.Errorf("a run that was stopped: %+v", k)
	}
	if b := Begin(dir, Run{}, slog.New(slog.DiscardHandler)).Before(); b != nil {
		t.Errorf("the run after a stop: %+v", b)
	}
}

// TestHowItEnded: what the disk says of a run that nobody holds the lock for.
func TestHowItEnded(t *testing.T) {
	t.Parallel()
	group := t.TempDir()
	if err := os.WriteFile(filepath.Join(group, "memory.events.local"), []byte("low 0\nmax 3\noom 1\noom_kill 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-time.Hour)
	for name, tt := range map[string]struct {
		run  Run
		how  End
		died bool
		why  bool
	}{
		"a kill":                     {Run{Boot: hook.Boot()}, Killed, true, false},
		"a kill on another system":   {Run{}, Killed, true, false},
		"want of memory":             {Run{Boot: hook.Boot(), Memory: kills{group, 1}}, Killed, true, true},
		"another one's":              {Run{Boot: hook.Boot(), Memory: kills{group, 2}}, Killed, true, false},
		"a group that is gone":       {Run{Boot: hook.Boot(), Memory: kills{group + "x", 2}}, Killed, true, false},
		"a power loss":               {Run{Boot: "another"}, Rebooted, true, false},
		"an error":                   {Run{Boot: hook.Boot(), Ended: began, How: Failed, Why: "x"}, Failed, true, true},
		"a stop":                     {Run{Boot: hook.Boot(), Ended: began, How: Stopped, Why: ByCommand}, Stopped, false, true},
		"a signal":                   {Run{Boot: hook.Boot(), Ended: began, How: Stopped, Why: BySignal}, Stopped, false, true},
		"a reboot":                   {Run{Boot: "another", Ended: began, How: Stopped, Why: BySignal}, Stopped, true, true},
		"a stop, and later a reboot": {Run{Boot: "another", Ended: began, How: Stopped, Why: ByCommand}, Stopped, false, true},
	} {
		dir := t.TempDir()
		tt.run.Began = began
		if err := state.Save(filepath.Join(dir, recordFile), tt.run); err != nil {
			t.Fatal(err)
		}
		if hook.Boot() == "" && tt.run.Boot == "another" {
			continue // the system does not tell
		}
		k := Of(dir)
		if k == nil || k.Past == nil || k.Past.How != tt.how || k.Past.Died() != tt.died || (k.Past.Why != "") != tt.why || k.Past.Ended.Before(began) || k.Past.Text() == "" {
			t.Errorf("%s: %+v", name, k.Past)
		}
	}
}

// TestZones: a zone comes back as the one that it was, by its name or by itself.
func TestZones(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Skip(err) // no database here
	}
	database := ""
	for _, dir := range []string{"/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo"} {
		if _, err := os.Stat(filepath.Join(dir, "Europe/Rome")); err == nil {
			database = filepath.Join(dir, "Europe/Rome")
		}
	}
	for tz, want := range map[string]string{"Europe/Rome": "Europe/Rome", ":Europe/Rome": "Europe/Rome", "": "UTC", "Nowhere/Land": "UTC", database: "Europe/Rome"} {
		t.Setenv("TZ", tz)
		z := Here()
		if z.Name != want || z.Location() == nil || z.Location().String() != want {
			t.Errorf("TZ=%q: %+v", tz, z)
		}
	}
	if database == "" {
		return
	}
	data, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "localtime")
	if err := os.WriteFile(own, data, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TZ", own)
	if z := Here(); z.Name != "" || z.Location() == nil || at.In(z.Location()).Format(time.Kitchen) != at.In(rome).Format(time.Kitchen) {
		t.Errorf("a file of its own: %q", z.Name)
	}
	if (Zone{}).Location() != nil || (Zone{Name: "Nowhere/Land"}).Location() != nil {
		t.Error("a zone that is not known is one")
	}
}

// TestARunThatBeginsIsNotTakenForAKilledOne: between the look at the lock and that at the
// record a run had begun.
func TestARunThatBeginsIsNotTakenForAKilledOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	var ended atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		defer ended.Store(true)
		for range 200 {
			k := Begin(dir, Run{PID: 1, Began: time.Now()}, log)
			k.Ready()
			k.End(Stopped, ByCommand)
		}
	})
	for range 2 {
		all.Go(func() {
			for !ended.Load() {
				if k := Of(dir); k != nil && k.Past != nil && k.Past.How == Killed {
					t.Errorf("a run that was not killed: %+v", *k.Past)
					return
				}
			}
		})
	}
	all.Wait()
}
