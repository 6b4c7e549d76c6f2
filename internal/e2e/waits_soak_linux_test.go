package e2e

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// TestASliceOfTheSoak is a short soak with a new seed each time. It is here because it
// mostly waits, as the tests beside it do.
func TestASliceOfTheSoak(t *testing.T) {
	t.Parallel()
	soak := filepath.Join(t.TempDir(), "soak")
	if err := testbed.Build(soak, "heartbeat/internal/soak"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(soak, "--agents", "6", "--for", "6s", "--rate", "3", "--every", "300ms", "-o", "json", "--dir", t.TempDir())
	cmd.Dir = filepath.Join("..", "soak")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	t.Logf("%s", errOut.String())
	var judged promise.Verdict
	if jsonErr := json.Unmarshal(out.Bytes(), &judged); jsonErr != nil {
		t.Fatalf("%v, %v: %s", err, jsonErr, out.String())
	}
	for _, f := range judged.Findings {
		t.Errorf("broken: %s", f)
	}
	if err != nil || judged.Given < 5 || len(judged.Done) < 3 {
		t.Errorf("%v: %+v", err, judged)
	}
}
