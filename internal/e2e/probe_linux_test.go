package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/orchestrator/clients"
	"heartbeat/orchestrator/probe"
)

// Probed has runs in the lab know a client as one that keeps all promises: to find that
// out takes more of a processor than a test.
func (l *Lab) Probed(path string) {
	l.t.Helper()
	p := clients.At(path, l.Env())
	folder := filepath.Join(l.Dir, "state", ".clients")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		l.t.Fatal(err)
	}
	l.WriteJSON(filepath.Join(folder, p.ID+".json"), probe.Result{Kept: probe.Promises()})
}

// TestAProbeOfTheRealClient: doctor --probe finds the client that everything was measured
// with to keep all promises, with nothing of this test's environment in reach.
func TestAProbeOfTheRealClient(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	f := newFleet(t, c, nil)
	out, errs, code := f.heartbeat("", "doctor", "--probe", "--client", c.path, "-o", "json")
	var said struct {
		Data struct {
			Clients []struct {
				probe.Result
				Verdict probe.Verdict
			}
		}
	}
	lines := strings.Split(strings.TrimSpace(out), "\n") // before the last: that it still runs
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &said); err != nil || len(said.Data.Clients) != 1 {
		t.Fatalf("exit %d: %v\n%s%s", code, err, out, errs)
	}
	r := said.Data.Clients[0]
	if code != 0 || r.Verdict != probe.Good || len(r.Kept) != len(probe.Promises()) || !r.Isolated {
		t.Errorf("exit %d: %+v", code, r)
	}
	if n := len(f.API.Requests()) + len(f.API.Others()); n != 0 {
		t.Errorf("%d requests reached the address in our environment", n)
	}
	t.Logf("%s: %d ms, once %q", r.Version, r.DurationMS, r.Once)
}

// installedName is the client's own name: by it the test binary is the stand-in that
// asks our API, with the faults in a file beside it.
const installedName = "claude"

func installedFaults() []string {
	args := []string{"--api"}
	faults, _ := os.ReadFile(os.Args[0] + ".faults")
	for fault := range strings.FieldsSeq(string(faults)) {
		args = append(args, "--broken", fault)
	}
	return args
}

// install puts a client in the place of the one before it, as an update does, and returns
// its path.
func (f *Lab) install(faults string) string {
	f.t.Helper()
	path := filepath.Join(f.Dir, installedName)
	if err := os.WriteFile(path+".faults", []byte(faults), 0o600); err != nil {
		f.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	// By another process: no child of a parallel test holds the copy open for writing when
	// it is run (ETXTBSY).
	if out, err := exec.Command("sh", "-c", `cp "$0" "$1.new" && mv "$1.new" "$1"`, self, path).CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestAClientThatUpdatesItself: a run tries each client that is new before it relies on
// it. With client-drift: hold a bad one gets no prompt, and the agent continues by itself
// once a good one is there.
func TestAClientThatUpdatesItself(t *testing.T) {
	t.Parallel()
	f := newFleet(t, client{name: "installed", path: "claude", real: true}, []string{"client-drift: hold"})
	yaml, err := os.ReadFile(f.file)
	if err != nil {
		t.Fatal(err)
	}
	f.write(f.file, strings.Replace(string(yaml), `["claude"]`, `["`+f.install("")+`"]`, 1))
	s := f.start()
	f.send("one")
	f.Until("the first reply", func() bool { return len(f.outbox()) == 1 })

	f.install("exit-2-twice")
	f.send("two")
	held := func() bool { return strings.Contains(f.must("", "status"), "held for") }
	f.Until("the agent is held", held)
	for _, command := range [][]string{{"status"}, {"doctor"}} {
		out, _, _ := f.heartbeat("", command...)
		if !strings.Contains(squeezed(out), "does not do what heartbeat relies on: hand-over: what a Stop hook has said reached the model 2 times in one request") {
			t.Errorf("%s does not say why:\n%s", command[0], out)
		}
	}
	if len(f.outbox()) != 1 || strings.Contains(strings.Join(f.prompts(), "|"), "two") {
		t.Errorf("the bad client has got a prompt: %q", f.prompts())
	}

	f.install("")
	f.Until("the second reply", func() bool { return len(f.outbox()) == 2 })
	out := f.must("", "events")
	var verdicts []string
	for line := range strings.Lines(out) {
		for _, v := range []string{"good", "bad", "unknown"} {
			if strings.Contains(line, "): "+v) {
				verdicts = append(verdicts, v)
			}
		}
	}
	if got := strings.Join(verdicts, " "); got != "good bad good" {
		t.Errorf("probes said %q:\n%s", got, out)
	}
	s.stop()
}
