package stepper

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Need skips a test where nothing can be stepped, and fails it on build machines (CI=true).
// try is a program that ends by itself.
func Need(t testing.TB, try Program) {
	t.Helper()
	_, err := Run(try, 0)
	switch {
	case err == nil:
	case errors.Is(err, ErrUnavailable) && os.Getenv("CI") != "true":
		t.Skip("no kill points here: ", err)
	default:
		t.Fatal(err)
	}
}

// Plain runs a program without stepping, which is several times faster. The Outcome has no
// calls.
func Plain(t testing.TB, p Program) Outcome {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Dir, p.Env, strings.NewReader(p.Stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return Outcome{Status: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}
