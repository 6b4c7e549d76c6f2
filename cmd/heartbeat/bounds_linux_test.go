package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
)

// TestWhatAgentsMakeCostsABoundedAmount, all at once: an agent that fills the folder of its scheduled
// prompts, one whose files are sparse ones of terabytes, eight that hold their queues' locks. Each
// command over the fleet ends, says little, and needs no more memory than
// orchestrator/README.md states.
func TestWhatAgentsMakeCostsABoundedAmount(t *testing.T) {
	t.Parallel()
	const mostMemory, mostText = 256 << 10, 64 << 10 // kilobytes, as wait4(2) has them; bytes
	w := newWorld(t)
	var agents strings.Builder
	agents.WriteString("  flood: {dir: flood}\n  sparse: {dir: sparse}\n")
	for i := range 8 {
		agents.WriteString(fmt.Sprintf("  locked%d: {dir: locked%d}\n", i, i))
	}
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n"+agents.String())
	w.ok("apply")
	home := func(agent string) string { return filepath.Join(w.dir, agent, ".heartbeat") }
	for i := range 8 {
		w.ok("send", fmt.Sprint("locked", i), "hello")
	}
	w.ok("send", "sparse", "hello")
	for _, name := range []string{
		".waiting.jsonl", "outbox.jsonl", "outbox.1.jsonl", ".dead-letter.jsonl", ".ids", "urgent.jsonl", "session.json", "fleet.json",
		".inbox-meta", ".in-flight", ".urgent-meta", ".inbox.jsonl.begun",
	} {
		f, err := os.OpenFile(filepath.Join(home("sparse"), name), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(1 << 40); err != nil {
			t.Skipf("the file system has no file of a terabyte: %v", err)
		}
		_ = f.Close()
	}
	w.ok("send", "--in", "1h", "flood", "hello")
	for i := range 5000 {
		w.put(fmt.Sprintf("flood/.heartbeat/later/%024x.json", i), "")
	}
	for i := range 4 {
		w.put(fmt.Sprintf("flood/.heartbeat/later/text%d.json", i), `{"id":"x","at":"2100-01-01T00:00:00Z","prompt":"`+strings.Repeat("x", 6<<20)+`"}`)
	}

	r := w.background()
	var unlock []func() error
	for i := range 8 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		u, err := flock.Lock(ctx, filepath.Join(home(fmt.Sprint("locked", i)), inbox.HookLock))
		if cancel(); err != nil {
			t.Fatal(err)
		}
		unlock = append(unlock, u)
	}
	for _, args := range [][]string{
		{"status"},
		{"status", "-o", "json"},
		{"inbox"},
		{"dead-letter"},
		{"replies"},
		{"history"},
		{"usage"},
		{"next"},
		{"approval"},
		{"events"},
		{"doctor"},
		{"recover", "sparse"},
		{"logs", "sparse"},
		{"send", "sparse", "more"},
		{"explain"},
	} {
		cmd := w.command(args...)
		out, _ := cmd.CombinedOutput() // what is wrong may well be its exit status
		usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if usage.Maxrss > mostMemory || len(out) > mostText {
			t.Errorf("heartbeat %s: %d MB of memory, %d bytes of output", strings.Join(args, " "), usage.Maxrss>>10, len(out))
		}
	}
	status := w.ok("status")
	if !strings.Contains(status, "flood") {
		t.Errorf("status does not name who cannot be read:\n%s", status)
	}
	for _, u := range unlock {
		if err := u(); err != nil {
			t.Error(err)
		}
	}
	r.stop()
	if usage := r.cmd.ProcessState.SysUsage().(*syscall.Rusage); usage.Maxrss > mostMemory {
		t.Errorf("the scheduler had %d MB of memory", usage.Maxrss>>10)
	}
}
