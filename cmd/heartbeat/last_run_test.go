package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"heartbeat/hook/flock"
)

// TestKilledSchedulerIsSilent: a run that ended without anybody having wanted that is said by
// status, doctor, their exit statuses and the next command of any kind; one that was asked to
// end, or that there never was, is no alarm.
func TestKilledSchedulerIsSilent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", strings.Replace(simulated, `"0 9 * * 1-5"`, `"*/5 * * * *"`, 1))
	w.ok("apply")
	is := func(when string, status, doctor int, page, warning string) {
		t.Helper()
		o := w.run("status")
		if o.status != status || !strings.Contains(o.stdout, page) || strings.Contains(o.stderr, "heartbeat:") {
			t.Errorf("%s: status %d\n%s%s", when, o.status, o.stdout, o.stderr)
		}
		if d := w.run("doctor"); d.status != doctor || warning != "" && !strings.Contains(strings.Join(strings.Fields(d.stdout), " "), "scheduler-ended seen "+warning) || warning == "" && strings.Contains(d.stdout, "scheduler-ended") {
			t.Errorf("%s: doctor %d\n%s%s", when, d.status, d.stdout, d.stderr)
		}
		for _, args := range [][]string{{"next"}, {"inbox"}, {"send", "triage", "x", "--id", "one"}, {"validate"}, {"replies"}} {
			if o := w.run(args...); warning != "" && !strings.Contains(o.stderr, "warning: "+warning) || warning == "" && strings.Contains(o.stderr, "scheduler (process") {
				t.Errorf("%s: heartbeat %q\n%s", when, args, o.stderr)
			}
		}
	}
	is("before the first run", 0, 0, "1 agent: 1 stopped", "")

	r := w.background()
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-r.done
	is("after kill -9", exitNotRunning, exitError, "! this fleet: the scheduler (process ", "the scheduler (process ")

	r = w.background()
	if !strings.Contains(r.stderr.String(), "was killed, or crashed, at ") {
		t.Errorf("the next run: %s", r.stderr)
	}
	is("while it runs", 0, 0, "scheduler: running for ", "")
	w.ok("stop")
	<-r.done
	is("after a stop", 0, 0, "by heartbeat stop", "")
	if out := strings.Join(strings.Fields(w.ok("next")), " "); !strings.Contains(out, "by heartbeat stop, ") || !strings.Contains(out, "ago; nothing fires until heartbeat run") {
		t.Errorf("next after a stop: %s", out)
	}

	r = w.background()
	r.stop()
	is("after SIGTERM", 0, 0, "by SIGTERM", "")

	if o := w.run("run", "--once"); o.status != 0 {
		t.Fatal(o.stderr)
	}
	is("after a run with --once", 0, 0, "ended at ", "")
}

// TestARunThatFailed: what a service manager starts again and again, and nobody sees.
func TestARunThatFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.ok("apply")
	unlock, err := flock.TryLockFolder(filepath.Join(w.dir, "agents/triage")) // as another run holds it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unlock() }()
	if o := w.run("run"); o.status == 0 {
		t.Fatalf("a run whose directory another one has: %s", o.stderr)
	}
	o := w.run("status")
	if o.status != exitNotRunning || !strings.Contains(o.stdout, "with an error: ") {
		t.Errorf("status %d\n%s", o.status, o.stdout)
	}
}

// TestASocketThatIsGone: a run that lives, and that no command reaches, is not "stopped".
func TestASocketThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.ok("apply")
	r := w.background()
	if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil { // it would make its socket again
		t.Fatal(err)
	}
	if o := w.run("status"); o.status != exitError || !strings.Contains(o.stdout, "a signal has stopped it") {
		t.Errorf("a run that is stopped: status %d\n%s", o.status, o.stdout)
	}
	record := "state/fleet/last-run.json" // as it is once the socket has been there for a while
	w.put(record, regexp.MustCompile(`"ready": "[^"]*"`).ReplaceAllString(w.get(record), `"ready": "2026-01-01T00:00:00Z"`))
	sockets, err := filepath.Glob(filepath.Join(w.dir, "state", "fleet", "run", "*.sock"))
	if err != nil || len(sockets) == 0 {
		t.Fatal(sockets, err)
	}
	for _, s := range sockets {
		if err := os.Remove(s); err != nil {
			t.Fatal(err)
		}
	}
	if o := w.run("status"); o.status != exitError || !strings.Contains(o.stdout, "its socket is not there") {
		t.Errorf("a run without its socket: status %d\n%s", o.status, o.stdout)
	}
}
