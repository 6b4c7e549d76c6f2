package handover

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook/client"
	"heartbeat/queue"
)

// TestALongPromptWithoutItsFileIsNotHandedOver: there is no text of it.
func TestALongPromptWithoutItsFileIsNotHandedOver(t *testing.T) {
	t.Parallel()
	g := given(strings.Repeat("x", client.MostWhole+1), queue.ViaStop)
	g.Handover.File = filepath.Join(t.TempDir(), "gone", "prompt-1.txt")
	if text, err := TextOf(g); err == nil || text != "" {
		t.Errorf("it is handed over as %.100q, %v", text, err)
	}
}

// TestWhetherALongPromptCanBeHandedOverIsKnownBefore a session is paid for, where the client would
// cut it.
func TestWhetherALongPromptCanBeHandedOverIsKnownBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		does bool
	}{
		"long":                    {strings.Repeat("x", 200<<10), true},
		"short":                   {"one", false},
		"none":                    {"", false},
		"the argument carries it": {strings.Repeat("x", client.MostWhole+1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := filepath.Join(t.TempDir(), ".heartbeat")
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := Unhandable(home, c.text); err != nil {
				t.Errorf("with room: %v", err)
			}
			if err := os.MkdirAll(filepath.Join(home, longTry, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := Unhandable(home, c.text); (err != nil) != c.does {
				t.Errorf("without: %v", err)
			}
			if err := os.RemoveAll(filepath.Join(home, longTry)); err != nil {
				t.Fatal(err)
			}
			if err := Unhandable(home, c.text); err != nil {
				t.Errorf("with room again: %v", err)
			}
		})
	}
}

// TestATrialNeedsTheRoomOfAHandOver: on a disk with room for the text alone, six sessions
// were paid for that could record what they took, and not write the file.
func TestATrialNeedsTheRoomOfAHandOver(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\u2028\"<x>", 20<<10)
	record, err := json.Marshal(long)
	if err != nil {
		t.Fatal(err)
	}
	if what, err := trial(long); err != nil || len(what) < len(long)+2*len(record) {
		t.Errorf("the trial has %d bytes, the text %d, its record %d; %v", len(what), len(long), len(record), err)
	}
}
