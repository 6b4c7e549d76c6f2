package handover

import (
	"os"
	"path/filepath"
	"testing"

	"heartbeat/internal/fakeapi"
	"heartbeat/internal/simulate/script"
	"heartbeat/queue"
)

// TestModelsKnowHowATaskIsHandedOverByAFile: of the stand-in and of the fake API, in the
// words in which it is.
func TestModelsKnowHowATaskIsHandedOverByAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), `a "b" \ ü.txt`)
	if err := os.WriteFile(file, []byte("the task"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := PromptFor(&queue.Given{Entry: queue.Entry{Handover: queue.Handover{Via: queue.ViaStop, File: file}}, Text: queue.Text{Prompt: "the task"}})
	if got := script.TaskFile("Stop hook feedback:\n[x]: " + text); got != file {
		t.Errorf("the stand-in reads %q", got)
	}
	if path, task, is := fakeapi.TaskFile(text); path != file || task != "the task" || !is {
		t.Errorf("the fake API's model reads %q, %q", path, task)
	}
}
