package main

import (
	"os"
	"strings"
	"testing"
)

// TestWhatCannotBePrintedIsSaid: of a full disk behind stdout help said that the command
// line could not be parsed, and others no more than "write /dev/stdout".
func TestWhatCannotBePrintedIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.ok("apply")
	w.ok("send", "triage", "hello")
	if o := w.run("run", "--once"); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	for _, args := range [][]string{{"--help"}, {}, {"status", "--help"}, {"help", "limits"}, {"version"}, {"status"}, {"events"}, {"logs"}, {"logs", "--since", "1h"}, {"logs", "triage", "--raw"}, {"logs", "triage", "--raw", "-f"}, {"replies"}, {"history", "-o", "json"}, {"man"}, {"completion", "bash"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		cmd := w.command(args...)
		cmd.Stdout, cmd.Stderr = full, &stderr
		_ = cmd.Run() // its exit status is compared below
		full.Close()
		if got := stderr.String(); cmd.ProcessState.ExitCode() != exitError || !strings.HasPrefix(got, "heartbeat: cannot print the result: ") || strings.Count(got, "\n") != 1 {
			t.Errorf("%q: exit status %d: %s", args, cmd.ProcessState.ExitCode(), got)
		}
	}
}
