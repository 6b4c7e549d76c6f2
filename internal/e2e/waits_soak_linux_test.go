package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// soakProgram builds the soak once.
var soakProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "soak-")
	path := filepath.Join(dir, "soak")
	if err == nil {
		err = testbed.Build(path, "heartbeat/internal/soak")
	}
	return path, err
})

// soak runs one over the programs that are tested.
func soak(t *testing.T, args ...string) (judged promise.Verdict, err error) {
	t.Helper()
	program, err := soakProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append(args, "--programs", testbed.Programs(t), "-o", "json", "--dir", t.TempDir())...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	t.Logf("%s", errOut.String())
	if jsonErr := json.Unmarshal(out.Bytes(), &judged); jsonErr != nil {
		t.Fatalf("%v, %v: %s", err, jsonErr, out.String())
	}
	return judged, err
}

// TestASliceOfTheSoak is a short soak with a new seed each time. It is here because it
// mostly waits, as the tests beside it do.
func TestASliceOfTheSoak(t *testing.T) {
	t.Parallel()
	judged, err := soak(t, "--agents", "6", "--for", "6s", "--rate", "3", "--every", "300ms")
	for _, n := range judged.Done {
		testbed.Played(t, testbed.Faults, n)
	}
	for _, f := range judged.Findings {
		t.Errorf("broken: %s", f)
	}
	if err != nil || judged.Given < 5 || len(judged.Done) < 3 {
		t.Errorf("%v: %+v", err, judged)
	}
}

// TestTheSoakFindsWhatIsPlanted between the hooks and their clients: the judge that finds
// nothing in the slice above would find it.
func TestTheSoakFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]promise.Wrong{
		"loss": promise.Lost, "double": promise.Doubled, "unmarked": promise.Unmarked, "garbled": promise.Garbled, "silence": promise.Waiting,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			settle := "15s" // a busy machine may need it to hand over what is planted
			if what == "silence" {
				settle = "5s" // all of it passes
			}
			judged, err := soak(t, "--agents", "2", "--for", "4s", "--rate", "6", "--only", "none", "--settle", settle, "--plant", what)
			testbed.Played(t, testbed.Plants, 1)
			if err == nil || !judged.Has(want) {
				t.Errorf("%v: found %v, want %q", err, judged.Findings, want)
			}
		})
	}
}
