package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heartbeat/hook/ask"
	"heartbeat/hook/settings"
	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// The client takes a hook's exit status 2 for "stderr is a prompt". These tests
// call a Stop hook as the client does, by /bin/sh and the command line that
// stands in the settings, where the runtime cannot even begin: it may fail in
// any way, but not with 2 and anything but the prompt.

// asInstalled is a hook call by the shell: of a generated entry, or of a hand-wired one as we
// advise it.
func asInstalled(f form, p stepper.Program) stepper.Program {
	var call strings.Builder
	call.WriteString(settings.Quote(p.Path))
	for _, a := range p.Args {
		call.WriteString(" " + settings.Quote(a))
	}
	command := "GOTRACEBACK=crash exec " + call.String()
	if f.ours() {
		command = strings.Replace(settings.Command("/"), "/ hook", call.String(), 1)
	}
	p.Path, p.Args = "/bin/sh", []string{"-c", command}
	return p
}

// stopIn is a lab at a Stop that hands over "two".
func stopIn(t *testing.T, f form, do func(l *lab, stop stepper.Program)) {
	inLab(t, f, promise.Retry, func(l *lab) {
		l.echo("one\ntwo\n", "one", "two")
		l.launch()
		for l.record.Count().Given == 0 || l.pending[0] != "Stop" {
			l.step(0, true)
		}
		do(l, l.command("Stop"))
	})
}

// checkPrompt fails where an outcome would be taken for a prompt that is none: status is the one
// that says that it is.
func checkPrompt(t *testing.T, what string, f form, o stepper.Outcome, status int) {
	t.Helper()
	if o.Status == status && (f == wiredJSON || o.Stderr != "two") {
		t.Errorf("%s, %s: status %d, stderr %.200q", f, what, status, o.Stderr)
	}
}

var speaking = []form{session, wiredStderr, wiredJSON}

// TestSIGQUITAtEachCallIsNoPrompt sends it before each system call, the runtime's first ones
// included, and those of the hand-wired entry's shell: 540, of which each form takes
// every thirty-sixth, by the sample, unless -full is given. Without the variable, or without a
// status of its own, 160 of them are
// "prompts". (Some take 5 s: an aborting runtime waits for its threads.)
func TestSIGQUITAtEachCallIsNoPrompt(t *testing.T) {
	t.Parallel()
	needPtrace(t)
	stride := testbed.Stride(36)
	turn := testbed.Turn(t, 36)
	for i, f := range speaking {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			stopIn(t, f, func(l *lab, stop stepper.Program) {
				prompt := ask.StatusPrompt
				if !f.ours() {
					stop, prompt = asInstalled(f, stop), 2
				}
				was := l.picture()
				for at := 1 + (turn+i*12)%stride; ; at += stride {
					l.restore(was)
					o, err := stepper.Interrupt(stop, syscall.SIGQUIT, at)
					if err != nil {
						t.Fatal(err)
					}
					testbed.Played(t, testbed.Kills, 1)
					checkPrompt(t, fmt.Sprintf("SIGQUIT before call %d", at), f, o, prompt)
					if !o.Killed {
						if at < 200 || f != wiredJSON && o.Status != prompt {
							t.Errorf("undisturbed: %+v", o)
						}
						return
					}
				}
			})
		})
	}
}

// limits are what a machine can be short of, for prlimit(1). A Go program ends with 2 whatever
// the environment says below 750 to 800 MiB of address space (by the machine) and 100 MiB of
// data: that is no prompt of a generated entry's. A limit is the client's, too, which needs more
// than 512 MiB of either to start (2.1.329), unless a wrapper of the shell sets it.
func limits(f form) []string {
	var all []string
	for n := range 12 {
		all = append(all, fmt.Sprintf("--nproc=%d", n))
	}
	space, data := []int{900, 1024}, []int{128, 256, 512}
	if f.ours() {
		space, data = append(space, 2, 3, 4, 8, 16, 64, 256, 488, 700), append(data, 1, 2, 4, 32, 64)
	}
	for _, mib := range space {
		all = append(all, fmt.Sprintf("--as=%d", mib<<20))
	}
	for _, mib := range data {
		all = append(all, fmt.Sprintf("--data=%d", mib<<20))
	}
	for n := range 12 {
		all = append(all, fmt.Sprintf("--nofile=%d", n))
	}
	return append(all, "--fsize=0", "--fsize=10", "--stack=65536", "--sigpending=0", "--memlock=0", "--core=unlimited")
}

// TestAMachineThatIsShortOfSomethingIsNoPrompt: threads, processes, memory,
// files.
func TestAMachineThatIsShortOfSomethingIsNoPrompt(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip("prlimit (util-linux) is not there: ", err)
	}
	for _, f := range speaking {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			stopIn(t, f, func(l *lab, stop stepper.Program) {
				was := l.picture()
				for _, limit := range limits(f) {
					l.restore(was)
					testbed.Played(t, testbed.FailingCalls, 1)
					checkPrompt(t, limit, f, limited(t, l, limit, asInstalled(f, stop)), 2)
				}
			})
		})
	}
}

// limited runs a program under a limit, as a user of its own where that is
// possible: processes are counted by user, and root's are not.
func limited(t *testing.T, l *lab, limit string, p stepper.Program) stepper.Outcome {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd := exec.Command("prlimit", append([]string{limit, p.Path}, p.Args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Dir, p.Env, strings.NewReader(p.Stdin), &stdout, &stderr
	if os.Geteuid() == 0 {
		uid := uint32(100_000 + rand.IntN(1_000_000))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		giveAway(t, l, int(uid))
	}
	_ = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal("prlimit did not start")
	}
	return stepper.Outcome{Status: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

// giveAway gives the lab to a user, and lets them reach the binary.
func giveAway(t *testing.T, l *lab, uid int) {
	t.Helper()
	err := errors.Join(os.Chmod(filepath.Dir(program(t, "heartbeat-stop")), 0o755), os.Chmod(filepath.Dir(filepath.Dir(l.home)), 0o711))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Dir(l.home), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}
