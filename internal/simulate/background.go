package simulate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/simulate/hooks"
)

// task is something that runs beside the turns: its end starts one.
type task struct {
	ID          string `json:"id"`
	Type        string `json:"type"` // shell, subagent
	Status      string `json:"status"`
	Description string `json:"description"`
	Command     string `json:"command,omitempty"`
	AgentType   string `json:"agent_type,omitempty"`

	cmd    *exec.Cmd     // of a shell
	exited chan struct{} // of a shell
}

// runningTasks is Stop's background_tasks.
func (s *session) runningTasks() []task {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []task{}
	for _, t := range s.tasks {
		out = append(out, *t)
	}
	return out
}

func (s *session) addTask(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, t)
}

// dropTask takes a task off the list, and reports whether it stood there.
func (s *session) dropTask(t *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.tasks)
	s.tasks = slices.DeleteFunc(s.tasks, func(o *task) bool { return o == t })
	return len(s.tasks) < n
}

// startTask runs a command in the background, its output in a file.
func (s *session) startTask(c toolCall) toolResult {
	id := "b" + newUUID()[:8]
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("claude-%d", os.Getuid()), projectName(s.project), s.sessionID(), "tasks")
	path := filepath.Join(dir, id+".output")
	err := os.MkdirAll(dir, 0o700)
	var out *os.File
	if err == nil {
		out, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return toolResult{failed: err.Error()}
	}
	// The child has its own.
	defer out.Close()
	t := &task{
		ID: id, Type: "shell", Status: "running", Description: c.bash.Description,
		Command: c.bash.Command, cmd: s.shell(c.bash.Command), exited: make(chan struct{}),
	}
	t.cmd.Stdout, t.cmd.Stderr = out, out
	if err := t.cmd.Start(); err != nil {
		return toolResult{failed: err.Error()}
	}
	s.addTask(t)
	s.beside.Go(func() { s.awaitTask(t, c.id, path) })
	return toolResult{
		response: bashResponse{BackgroundTaskID: id},
		text: fmt.Sprintf("Command running in background with ID: %s. Output is being written to: %s. "+
			"You will be notified when it completes.", id, path),
	}
}

// awaitTask tells the session of a task's end, unless it was the session that
// ended it.
func (s *session) awaitTask(t *task, toolUse, output string) {
	err := t.cmd.Wait()
	close(t.exited)
	if !s.dropTask(t) {
		return
	}
	status, code := "completed", t.cmd.ProcessState.ExitCode()
	if err != nil {
		status = "failed"
	}
	s.noticeEnd(t.ID, toolUse, output, status,
		fmt.Sprintf("Background command %q %s (exit code %d)", t.Description, status, code))
}

func (s *session) noticeEnd(id, toolUse, output, status, summary string) {
	var b strings.Builder
	b.WriteString("<task-notification>\n")
	for _, f := range [][2]string{
		{"task-id", id}, {"tool-use-id", toolUse}, {"output-file", output}, {"status", status}, {"summary", summary},
	} {
		fmt.Fprintf(&b, "<%s>%s</%s>\n", f[0], f[1], f[0])
	}
	b.WriteString("</task-notification>")
	if !s.broken("no-wake") {
		s.arrive(item{kind: itemNotice, text: b.String()})
	}
}

// endTasks ends every background task, as the client does when it ends.
func (s *session) endTasks() {
	s.mu.Lock()
	tasks := s.tasks
	s.tasks = nil
	s.mu.Unlock()
	for _, t := range tasks {
		if t.cmd != nil {
			gone := hooks.Terminate(t.cmd.Process.Pid, t.exited, time.Second)
			s.rest.Go(func() { <-gone })
		}
	}
}

// startSubagent starts an agent in the background; it answers after a while.
func (s *session) startSubagent(c toolCall) toolResult {
	id := "a" + strings.ReplaceAll(newUUID(), "-", "")[:16]
	t := &task{
		ID: id, Type: "subagent", Status: "running",
		Description: cmp.Or(c.step.Description, "a subagent"), AgentType: "general-purpose",
	}
	s.addTask(t)
	s.beside.Go(func() { s.runSubagent(t, c) })
	return toolResult{
		response: map[string]any{"isAsync": true, "status": "async_launched", "agentId": id, "description": t.Description},
		text:     "Async agent launched successfully. agentId: " + id,
	}
}

// runSubagent lives as the client's subagents do: SubagentStart, its answer,
// SubagentStop, and the task's notification.
func (s *session) runSubagent(t *task, c toolCall) {
	agent := []field{{"agent_id", t.ID}, {"agent_type", t.AgentType}}
	s.fire(s.life, event{name: "SubagentStart", matcher: t.AgentType, agent: agent})
	sleep(s.life, time.Duration(c.step.For))
	if s.life.Err() != nil {
		return
	}
	dir := filepath.Join(projectDir(s.home, s.project), s.sessionID(), "subagents")
	path, said := filepath.Join(dir, "agent-"+t.ID+".jsonl"), *c.step.Subagent
	s.askSubagent(path, t.ID, cmp.Or(said, t.Description))
	if s.service == nil {
		s.recordSubagent(path, t.ID, t.Description, said)
	} else if message, u, text, ok := s.subagentSays(said); ok {
		s.keepSubagent(path, t.ID, message, u, text)
		said = text
	}
	s.fire(s.life, event{name: "SubagentStop", matcher: t.AgentType, agent: agent, fields: []field{
		{"stop_hook_active", false},
		{"agent_transcript_path", path},
		{"last_assistant_message", said},
		{"background_tasks", s.runningTasks()},
		{"session_crons", []any{}},
	}})
	if context.Cause(s.life) == nil && s.dropTask(t) {
		s.noticeEnd(t.ID, c.id, filepath.Join(dir, "agent-"+t.ID+".output"), "completed",
			fmt.Sprintf("Agent %q completed", t.Description))
	}
}
