package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/hook/ask"
	"heartbeat/internal/promise"
)

// A plant is a defect between the hooks and their clients: this program takes the hook's
// place, calls it, and changes what the client hears. So the judge is judged: what it finds
// in a run with a plant it would find in a heartbeat that does the same.

// hookName is the hook's program, by which this one knows that it stands in its place.
const hookName = "heartbeat-stop"

// plants are the names of all, each with what the judge has to find.
var plants = map[string]promise.Wrong{
	"loss": promise.Lost, "double": promise.Doubled, "unmarked": promise.Unmarked, "garbled": promise.Garbled, "silence": promise.Waiting,
}

// envPlant tells this program in the hook's place what is planted: heartbeat copies hooks to
// where nobody replaces them.
const envPlant = "HEARTBEAT_SOAK_PLANT"

// plant is what is planted.
type plant struct {
	What string `json:"what"`
	Dir  string `json:"dir"` // of its own, with the hook
}

// put puts this program in the place of a hook.
func (p plant) put(hook string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return errors.Join(os.Mkdir(p.Dir, 0o700), os.Rename(hook, p.file(hookName)), copyFile(self, hook))
}

// variable is what the processes of the fleet find in their environment.
func (p plant) variable() string {
	text, _ := json.Marshal(p) // two strings are always encoded
	return envPlant + "=" + string(text)
}

func copyFile(from, to string) error {
	out, err := exec.Command("cp", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot copy %s: %w: %s", from, err, out)
	}
	return nil
}

// heard is what a hook call came to.
type heard struct {
	status         int
	stdout, stderr []byte
}

// plantedHook is this program in the hook's place.
func plantedHook() int {
	var p plant
	if err := json.Unmarshal([]byte(os.Getenv(envPlant)), &p); err != nil {
		fmt.Fprintln(os.Stderr, "no plant:", err)
		return 1
	}
	input, _ := io.ReadAll(os.Stdin)
	h := p.hears(input)
	_, _ = os.Stdout.Write(h.stdout)
	_, _ = os.Stderr.Write(h.stderr)
	return h.status
}

// hears returns what the client hears.
func (p plant) hears(input []byte) heard {
	if p.What == "silence" && slices.Equal(os.Args[1:], []string{"hook"}) {
		return heard{}
	}
	h := p.call(input)
	var payload map[string]any
	if json.Unmarshal(input, &payload) != nil || payload["hook_event_name"] != "Stop" || h.status != ask.StatusPrompt {
		return h
	}
	now := string(h.stderr)
	last := p.file("last-" + os.Getenv("HEARTBEAT_AGENT"))
	before, _ := os.ReadFile(last)
	_ = os.WriteFile(last, h.stderr, 0o600)
	if p.What != "loss" && p.What != "garbled" && len(before) == 0 || !p.once() {
		return h
	}
	switch p.What {
	case "loss": // the hook hears that the prompt has arrived, and is done
		transcribe(payload, "user", "Stop hook feedback:\n["+hookName+"]: "+now)
		transcribe(payload, "assistant", []any{map[string]string{"type": "text", "text": "done"}})
		payload["stop_hook_active"], payload["last_assistant_message"] = true, "done"
		again, _ := json.Marshal(payload)
		return p.call(again)
	case "garbled":
		h.stderr = []byte(now + "?")
	case "double":
		h.stderr = []byte(string(before) + "\n\n[heartbeat: attempt 2 of this entry; an earlier one was interrupted.]")
	case "unmarked":
		h.stderr = before
	}
	return h
}

// call calls the hook.
func (p plant) call(input []byte) heard {
	var out, errOut bytes.Buffer
	cmd := exec.Command(p.file(hookName), os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &errOut
	_ = cmd.Run()
	if cmd.ProcessState == nil {
		return heard{}
	}
	return heard{cmd.ProcessState.ExitCode(), out.Bytes(), errOut.Bytes()}
}

func (p plant) file(name string) string { return filepath.Join(p.Dir, name) }

// once reports whether nothing was planted for the agent before.
func (p plant) once() bool {
	f, err := os.OpenFile(p.file("planted-"+os.Getenv("HEARTBEAT_AGENT")), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = f.Close()
	}
	return err == nil
}

// transcribe adds to the record of the conversation, as the client does.
func transcribe(payload map[string]any, role string, content any) {
	path, _ := payload["transcript_path"].(string)
	line, _ := json.Marshal(map[string]any{"type": role, "message": map[string]any{"role": role, "content": content}})
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(append(line, '\n'))
}

// plantNames are the names, for people.
func plantNames() string {
	return strings.Join(slices.Sorted(maps.Keys(plants)), ", ")
}
