package simulate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"heartbeat/internal/simulate/hooks"
	"heartbeat/internal/simulate/script"
)

// toolCall is one use of a tool.
type toolCall struct {
	id    string
	name  string
	input any
	bash  *bashInput // of Bash
	step  script.Step
}

type bashInput struct {
	Command     string `json:"command"`
	Description string `json:"description"`
	Background  bool   `json:"run_in_background,omitempty"`
}

// bashResponse is Bash's tool_response.
type bashResponse struct {
	Stdout           string `json:"stdout"`
	Stderr           string `json:"stderr"`
	Interrupted      bool   `json:"interrupted"`
	IsImage          bool   `json:"isImage"`
	NoOutputExpected bool   `json:"noOutputExpected"`
	BackgroundTaskID string `json:"backgroundTaskId,omitempty"`
}

// toolResult is what a tool gave; failed has what PostToolUseFailure says.
type toolResult struct {
	response any
	text     string // for the model
	failed   string
}

func newCall(step script.Step) toolCall {
	c := toolCall{id: "toolu_" + strings.ReplaceAll(newUUID(), "-", "")[:24], step: step, name: step.Tool}
	switch {
	case step.Background != "":
		c.name = "Bash"
		c.bash = &bashInput{step.Background, cmp.Or(step.Description, "run in the background"), true}
	case step.Subagent != nil:
		c.name = "Agent"
		c.input = map[string]string{"description": cmp.Or(step.Description, "a subagent"), "prompt": *step.Subagent, "subagent_type": "general-purpose"}
	case step.Tool == "Bash":
		c.bash = &bashInput{Command: step.Command, Description: cmp.Or(step.Description, "run")}
	default:
		c.input = step.Input
		if step.Input == nil {
			c.input = map[string]any{}
		}
	}
	if c.bash != nil {
		c.input = c.bash
	}
	return c
}

// useTool does one tool call: PreToolUse, permission, the tool itself,
// PostToolUse. A refusal is a result like another; the error is an aborted
// turn.
func (s *session) useTool(ctx context.Context, c toolCall) error {
	s.assistantContent("tool_use", toolUseBlock{"tool_use", c.id, c.name, c.input})
	s.show(fmt.Sprintf("● %s %s", c.name, encode(c.input)))
	refused, err := s.permit(ctx, c)
	if err != nil {
		return err
	}
	if refused != "" {
		s.toolResult(c, refused, true)
		return nil
	}
	started := time.Now()
	result := s.runTool(ctx, c)
	if ctx.Err() != nil {
		s.toolResult(c, "[Request interrupted by user for tool use]", true)
		return ctx.Err()
	}
	took := field{"duration_ms", time.Since(started).Milliseconds()}
	fields := []field{{"tool_name", c.name}, {"tool_input", c.input}}
	e := event{name: "PostToolUse", matcher: c.name}
	if result.failed != "" {
		e.name = "PostToolUseFailure"
		e.fields = append(fields, field{"tool_use_id", c.id}, field{"error", result.failed}, field{"is_interrupt", false}, took)
	} else {
		e.fields = append(fields, field{"tool_response", result.response}, field{"tool_use_id", c.id}, took)
	}
	s.fire(ctx, e)
	s.toolResult(c, cmp.Or(result.failed, result.text), result.failed != "")
	return ctx.Err()
}

func (s *session) toolResult(c toolCall, text string, isError bool) {
	s.job.result = toolResultBlock{c.id, "tool_result", text, isError}
	s.record("user", field{"message", message{"user", []any{s.job.result}}})
	s.show("  ⎿  " + text)
}

func (s *session) runTool(ctx context.Context, c toolCall) toolResult {
	switch {
	case c.step.Background != "":
		return s.startTask(c)
	case c.step.Subagent != nil:
		return s.startSubagent(c)
	case c.bash != nil:
		return s.bash(ctx, c.bash.Command)
	}
	text := cmp.Or(c.step.Result, "ok")
	return toolResult{response: map[string]string{"result": text}, text: text}
}

const (
	// bashTimeout is the client's for a command in the foreground.
	bashTimeout = 2 * time.Minute
	// maxToolOutput bounds what is kept of a command's output.
	maxToolOutput = 1 << 20
)

// shell runs a command as Bash does and says on fd 3 where it ended, so that
// a cd lasts.
func (s *session) shell(command string) *exec.Cmd {
	settings, _ := s.store.Look()
	cmd := exec.Command("/bin/sh", "-c", `eval "$1"; s=$?; pwd -P 2>/dev/null >&3; exit $s`, "sh", command)
	cmd.Dir, cmd.Env = s.directory(), slices.DeleteFunc(s.environ(settings, true), func(nv string) bool {
		return strings.HasPrefix(nv, "CLAUDE_PROJECT_DIR=") // hooks alone are told
	})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// bash runs a command in the foreground. Whoever still holds its output after
// its end is not waited for.
func (s *session) bash(ctx context.Context, command string) toolResult {
	cmd := s.shell(command)
	var out, errOut limited
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errOut, 200*time.Millisecond
	where, whereEnd, err := os.Pipe()
	if err != nil {
		return toolResult{failed: err.Error()}
	}
	defer where.Close()
	cmd.ExtraFiles = []*os.File{whereEnd}
	err = cmd.Start()
	// The child has its own; keeping ours open would hide the end.
	_ = whereEnd.Close()
	if err != nil {
		return toolResult{failed: err.Error()}
	}
	err = s.waitOrEnd(ctx, cmd)
	s.follow(where)
	exit, failed := errors.AsType[*exec.ExitError](err)
	if failed {
		text := fmt.Sprintf("Exit code %d", exit.ExitCode())
		if out := strings.TrimSpace(out.String() + "\n" + errOut.String()); out != "" {
			text += "\n" + out
		}
		return toolResult{failed: text}
	}
	r := bashResponse{Stdout: strings.TrimRight(out.String(), "\n"), Stderr: strings.TrimRight(errOut.String(), "\n"), NoOutputExpected: silent(command)}
	return toolResult{response: r, text: strings.TrimSpace(r.Stdout + "\n" + r.Stderr)}
}

// silentCommands are those that the client expects to say nothing.
var silentCommands = []string{"touch", "mkdir", "rmdir", "rm", "mv", "cp", "chmod", "chown", "ln", "cd", "export"}

func silent(command string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	return slices.Contains(silentCommands, word) && !compound.MatchString(command)
}

// waitOrEnd reaps a command; when ctx ends, or its time is up, its group is
// ended.
func (s *session) waitOrEnd(ctx context.Context, cmd *exec.Cmd) error {
	exited := make(chan struct{})
	var err error
	go func() { defer close(exited); err = cmd.Wait() }()
	limit := time.NewTimer(bashTimeout)
	defer limit.Stop()
	select {
	case <-exited:
		return err
	case <-ctx.Done():
	case <-limit.C:
	}
	gone := hooks.Terminate(cmd.Process.Pid, exited, time.Second)
	s.rest.Go(func() { <-gone })
	return err
}

// follow makes the directory where the command ended the session's.
func (s *session) follow(where *os.File) {
	// What the shell said is there by now; a child that kept the pipe says no
	// more.
	if err := where.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		return
	}
	said, _ := io.ReadAll(io.LimitReader(where, 8<<10))
	dir := strings.TrimSuffix(string(said), "\n")
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cwd = dir
	}
}

// limited keeps the first maxToolOutput bytes.
type limited struct{ bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	if room := maxToolOutput - l.Len(); room > 0 {
		l.Buffer.Write(b[:min(len(b), room)])
	}
	return len(b), nil
}
