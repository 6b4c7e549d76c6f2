package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// TestTheServiceManagerIsTold what a run is doing, and no process of an agent
// can tell it anything.
func TestTheServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := filepath.Join(w.dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w.env = append(w.env, "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=2000000")
	w.put("heartbeat.yaml", simulated+"  spy:\n    dir: agents/spy\n    command: [heartbeat, simulate]\n    triggers:\n      - {poll: [sh, -c, \"env > env\"], every: 5m}\n")
	// hear waits for a datagram that begins with one of the words.
	hear := func(words ...string) string {
		t.Helper()
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		var b [4096]byte
		for {
			n, err := conn.Read(b[:])
			if err != nil {
				t.Fatalf("never heard %q: %v", words, err)
			}
			for _, word := range words {
				if strings.HasPrefix(string(b[:n]), word) {
					return string(b[:n])
				}
			}
		}
	}
	r := w.background()
	hear("READY=1")
	if got := hear("STATUS="); got != "STATUS=0 of 4 session slots taken; 2 agents" {
		t.Errorf("%s", got)
	}
	hear("WATCHDOG=1")
	until(t, "the command has run", func() bool { data, _ := os.ReadFile(filepath.Join(w.dir, "agents/spy/env")); return len(data) > 0 })
	if env := w.get("agents/spy/env"); strings.Contains(env, "NOTIFY_SOCKET") || strings.Contains(env, "WATCHDOG") {
		t.Errorf("the service manager's variables are passed on: %s", env)
	}
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got := hear("RELOADING=1", "READY=1"); !strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("%q", got)
	}
	hear("READY=1")
	w.ok("reload") // what the unit's ExecReload runs
	hear("RELOADING=1")
	hear("READY=1")
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	hear("STOPPING=1")
	if code := r.ended(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func TestServicePrint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "shutdown-grace: 2m\n"+simulated)
	o := w.run("service", "print", "systemd", "--run-arg=--metrics=:9464", "--run-arg=--watch-config")
	if o.status != 0 || !strings.Contains(o.stderr, "# systemctl --user enable --now heartbeat-fleet") {
		t.Fatalf("%+v", o)
	}
	for _, want := range []string{
		" -f " + w.dir + "/heartbeat.yaml run --metrics=:9464 --watch-config\n", " reload\n", "TimeoutStopSec=145\n",
		"RestartPreventExitStatus=2 78\n", "Environment=HEARTBEAT_STATE_DIR=" + w.dir + "/state\n", "WantedBy=default.target\n",
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("the unit lacks %q:\n%s", want, o.stdout)
		}
	}
	var printed struct {
		Name, Unit string
		Steps      []string
	}
	w.into(&printed, "service", "print", "launchd", "--system")
	if printed.Name != "heartbeat-fleet" || !strings.HasPrefix(printed.Unit, "<?xml") || len(printed.Steps) < 2 {
		t.Errorf("%+v", printed)
	}
	for args, status := range map[string]int{
		"service print systemd --user x":                      exitUsage,
		"service print upstart":                               exitUsage,
		"service print systemd --system --user no-such-user-": exitError,
		"service print systemd -f none.yaml":                  exitConfig,
	} {
		if o := w.run(strings.Fields(args)...); o.status != status || o.stdout != "" {
			t.Errorf("heartbeat %s: %+v", args, o)
		}
	}
}

// TestAServiceWithoutTheKeyOfThisShellIsWarnedOf: a unit holds no secret, and the service
// started without a login, and without a word.
func TestAServiceWithoutTheKeyOfThisShellIsWarnedOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "ANTHROPIC_API_KEY=made-up")
	w.put("heartbeat.yaml", oneAgent)
	w.put("key.env", "ANTHROPIC_API_KEY=made-up\n")
	if err := os.Chmod(filepath.Join(w.dir, "key.env"), 0o600); err != nil {
		t.Fatal(err)
	}
	const says = "ANTHROPIC_API_KEY is set here, and sessions of the service do not have it (triage): "
	for _, action := range []string{"print", "install --dry-run"} {
		if o := w.run(append([]string{"service"}, strings.Fields(action)...)...); o.status != 0 || !strings.Contains(o.stderr, says) || strings.Contains(o.stdout+o.stderr, "made-up") {
			t.Errorf("%s: %+v", action, o)
		}
	}
	w.put("heartbeat.yaml", oneAgent+"    env-file: key.env\n")
	if o := w.run("service", "print"); o.status != 0 || strings.Contains(o.stderr, "is set here") {
		t.Errorf("with an env-file: %+v", o)
	}
}

// container runs heartbeat as the first process of a PID namespace.
func (w *world) container(args ...string) *exec.Cmd {
	w.t.Helper()
	inner := w.command(args...)
	flags := []string{"--pid", "--fork", "--mount-proc", "--kill-child"}
	if os.Geteuid() != 0 {
		flags = append(flags, "--user", "--map-root-user")
	}
	if out, err := exec.CommandContext(w.t.Context(), "unshare", append(flags, "true")...).CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			w.t.Fatalf("no PID namespace: %v: %s", err, out)
		}
		w.t.Skipf("no PID namespace: %v: %s", err, out)
	}
	cmd := exec.CommandContext(w.t.Context(), "unshare", append(append(flags, inner.Path), args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = inner.Dir, inner.Env, inner.WaitDelay
	return cmd
}

// childrenOf returns the pids of a process's children, and how many of them are
// zombies.
func childrenOf(t *testing.T, pid int) (pids []int, zombies int) {
	t.Helper()
	procs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		stat, err := os.ReadFile("/proc/" + p.Name() + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[1] != strconv.Itoa(pid) {
			continue
		}
		n, _ := strconv.Atoi(p.Name())
		pids = append(pids, n)
		if fields[0] == "Z" {
			zombies++
		}
	}
	return pids, zombies
}

// An agent whose commands and whose client leave orphans behind.
const littering = `version: 1
name: fleet
agents:
  triage:
    dir: agents/triage
    command: [heartbeat, simulate, --script, SCRIPT]
    triggers:
      - poll: [sh, -c, "for i in 1 2 3; do (setsid sh -c 'sleep 0.2; echo x >> orphans' &); done; echo a prompt"]
        every: 1s
`

const litterScript = `{"rules": [{"steps": [
	{"tool": "Bash", "command": "for i in 1 2 3; do (setsid sh -c 'sleep 0.2; echo x >> orphans' &); done; exit 3"}, {"reply": "ok"}]}]}`

// TestFirstProcessOfAContainer reaps what others leave, passes signals on, and
// has the scheduler's exit status; sessions keep theirs.
func TestFirstProcessOfAContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("script.json", litterScript)
	w.put("heartbeat.yaml", strings.Replace(littering, "SCRIPT", filepath.Join(w.dir, "script.json"), 1))
	cmd := w.container("run")
	out := &testbed.Output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", out)
		}
	})
	until(t, "orphans have ended and entries are done", func() bool {
		data, _ := os.ReadFile(filepath.Join(w.dir, "agents/triage/orphans"))
		return strings.Count(string(data), "x") >= 15 && w.agent("triage").Acknowledged >= 2
	})
	first, _ := childrenOf(t, cmd.Process.Pid)
	if len(first) != 1 {
		t.Fatalf("children of unshare: %v", first)
	}
	until(t, "no zombie is left with the first process", func() bool { _, z := childrenOf(t, first[0]); return z == 0 })
	if text := out.String(); strings.Contains(text, "shim failed") || strings.Contains(text, "no child processes") {
		t.Errorf("an exit status was stolen")
	}
	if err := syscall.Kill(first[0], syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if !strings.Contains(w.ok("events"), "drained") {
		t.Errorf("no session has ended as it should:\n%s", w.ok("events"))
	}
}

// TestExitStatusOfTheFirstProcess is that of the scheduler, however it ends.
func TestExitStatusOfTheFirstProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 2\n")
	status := func(cmd *exec.Cmd, err error) int {
		t.Helper()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode()
	}
	cmd := w.container("run", "-o", "json")
	out, err := cmd.Output()
	if got := status(cmd, err); got != exitConfig {
		t.Errorf("a bad configuration: %d", got)
	}
	if r := envelopeOf(t, outcome{stdout: string(out), status: exitConfig}); *r.Error.Code != "bad-configuration" || strings.Count(string(out), "\n") != 1 {
		t.Errorf("one envelope is printed, by the child: %s", out)
	}

	w.put("heartbeat.yaml", simulated)
	cmd = w.container("run")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the scheduler answers", func() bool { return w.fleet().Scheduler.PID > 1 })
	first, _ := childrenOf(t, cmd.Process.Pid)
	scheduler, _ := childrenOf(t, first[0])
	if len(scheduler) != 1 || syscall.Kill(scheduler[0], syscall.SIGKILL) != nil {
		t.Fatalf("children of the first process: %v", scheduler)
	}
	if got := status(cmd, cmd.Wait()); got != 128+9 {
		t.Errorf("a scheduler that was killed: %d", got)
	}
}
