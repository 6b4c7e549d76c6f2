package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/ptyrun"
)

// A shim that a killed scheduler left can be killed itself after the next
// scheduler has looked: the next shim finds what is left.
func TestShimEndsWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home, stateDir := filepath.Join(dir, ".heartbeat"), filepath.Join(dir, "state")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	const cookie = "00112233445566778899aabbccddeeff"
	left := exec.Command("sleep", "60")
	left.Env = []string{hook.EnvSession + "=" + cookie}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- left.Wait() }()
	// One that has cleared its environment is found by its control group.
	former := &shim{group: ptyrun.PlanGroup(), spec: Spec{Agent: "a", Session: "former", Token: cookie, StateDir: stateDir}, record: &hook.Record{
		// A process that is no more: its number is another one's now.
		Shim: hook.Process{PID: os.Getpid(), Start: 1},
	}}
	if err := former.keepLeftover(hook.Process{}); err != nil {
		t.Fatal(err)
	}
	nameless, err := ptyrun.Start(t.Context(), ptyrun.Config{
		Argv: []string{"/bin/sleep", "60"}, Env: []string{}, Group: former.group, Grace: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nameless.End(context.Background()) })
	spec, err := json.Marshal(Spec{
		Agent: "a", Session: "next", Token: "t", Dir: dir, Home: home, Inbox: filepath.Join(home, "inbox.jsonl"),
		StateDir: stateDir, Grace: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := RunShim(t.Context(), bytes.NewReader(append(spec, '\n')), &out, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		_ = left.Process.Kill()
		t.Error("what the former session left lives on")
	}
	if former.group != "" {
		select {
		case <-nameless.Done():
		case <-time.After(10 * time.Second):
			t.Error("what is in the former session's control group lives on")
		}
		if _, err := os.Stat(former.group); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the former session's control group is left: %v", err)
		}
	}
	if names, _ := os.ReadDir(filepath.Join(stateDir, "live")); len(names) != 0 {
		t.Errorf("it is still noted: %v", names)
	}
}
