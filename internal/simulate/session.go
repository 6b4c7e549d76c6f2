package simulate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/internal/simulate/hooks"
	"heartbeat/internal/simulate/script"
)

// session is one run of the client. The loop (loop.go) owns what happens
// next; one job at a time runs beside it and does the talking to hooks, model
// and tools.
type session struct {
	args        *arguments
	script      *script.Script
	model       *script.Model
	store       *hooks.Store
	runner      hooks.Runner
	home        string
	project     string // the launch directory
	interactive bool
	stderr      io.Writer
	term        *terminal // nil without one
	signals     <-chan os.Signal

	arrivals chan item     // what may start a turn by itself
	typed    chan string   // prompts typed while something runs
	typedIn  chan struct{} // one of them has come to waiting
	exitNow  chan int      // the script says exit

	life    context.Context // ends when the client does
	rest    sync.WaitGroup  // what is left of process groups that were ended
	beside  sync.WaitGroup  // async hooks and subagents; they end with life
	job     job
	meter   meter
	figures chan struct{} // the status line has something new to show
	hush    atomic.Bool   // no status line now
	service *service      // answers in the model's place; nil: the script does

	mu         sync.Mutex
	id         string
	promptID   string
	cwd        string
	mode       string
	transcript *transcript
	tasks      []*task
	dialog     *dialog
	waiting    []item // prompts typed while something runs, after their hooks
}

// job is what belongs to the job that runs, and to no other goroutine.
type job struct {
	context   []string        // SessionStart's, for the first request
	carried   []string        // user texts that the next request brings along
	lastReply string          // of the last turn
	asked     bool            // the model was asked again in this turn
	result    toolResultBlock // of the last tool
}

// field is one member of a payload; their order is the client's.
type field struct {
	name  string
	value any
}

// event is a hook event about to be fired.
type event struct {
	name    string
	matcher string  // what a group's matcher is held against
	agent   []field // agent_id and agent_type, for a subagent's events
	fields  []field
	timeout time.Duration         // of hooks without one of their own
	heard   func(answered)        // when not nil, told of each hook when it has ended
	only    func(hooks.Hook) bool // when not nil, of which hooks
}

// hooksFor are the hooks of an event.
func (s *session) hooksFor(settings hooks.Settings, e event) []hooks.Hook {
	all := settings.For(e.name, e.matcher)
	switch {
	case !s.calls(e.name):
		return nil
	case e.only == nil:
		return all
	}
	return slices.DeleteFunc(all, func(h hooks.Hook) bool { return !e.only(h) })
}

// carries says which events have permission_mode and effort.
var carries = map[string]struct{ mode, effort bool }{
	"UserPromptSubmit":   {mode: true},
	"Stop":               {true, true},
	"StopFailure":        {effort: true},
	"SubagentStop":       {true, true},
	"PreToolUse":         {true, true},
	"PostToolUse":        {true, true},
	"PostToolUseFailure": {true, true},
	"PermissionRequest":  {true, true},
}

// payload is what the event's hooks read from stdin.
func (s *session) payload(e event) []byte {
	s.mu.Lock()
	f := []field{{"session_id", s.id}, {"transcript_path", s.transcript.path}, {"cwd", s.cwd}}
	if s.promptID != "" {
		f = append(f, field{"prompt_id", s.promptID})
	}
	if carries[e.name].mode {
		f = append(f, field{"permission_mode", s.mode})
	}
	s.mu.Unlock()
	f = append(f, e.agent...)
	if carries[e.name].effort {
		f = append(f, field{"effort", map[string]string{"level": "medium"}})
	}
	f = append(f, field{"hook_event_name", e.name})
	return object(s.told(append(f, e.fields...)))
}

// object is a JSON object with its members in order, escaped as JavaScript
// does.
func object(fields []field) []byte {
	var b bytes.Buffer
	for i, f := range fields {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(encode(f.name))
		b.WriteByte(':')
		b.Write(encode(f.value))
	}
	b.WriteByte('}')
	return b.Bytes()
}

func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only maps, strings, numbers and structs of them come here.
		panic(fmt.Sprintf("cannot encode %T: %v", v, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// answered is one hook's end and what it means.
type answered struct {
	hooks.Result
	hooks.Verdict
}

// fire runs an event's hooks and waits for them, except for asynchronous
// ones. The answers come in the order in which the hooks ended.
func (s *session) fire(ctx context.Context, e event) []answered {
	// A file that broke meanwhile just adds nothing.
	settings, _ := s.store.Look()
	var wait []hooks.Hook
	call := hooks.Call{Payload: s.payload(e), Env: s.environ(settings, carries[e.name].effort), Dir: s.directory(), Timeout: e.timeout}
	for _, h := range s.hooksFor(settings, e) {
		if h.Async {
			s.beside.Go(func() { s.runAsync(h, call, e.name) })
			continue
		}
		wait = append(wait, h)
	}
	if len(wait) == 0 {
		return nil
	}
	if s.term != nil {
		defer s.term.spin("running " + e.name + " hook")()
	}
	var out []answered
	s.runner.RunAll(ctx, wait, call, func(r hooks.Result) {
		a := answered{r, hooks.Judge(r)}
		if a.Problem != "" {
			s.show(fmt.Sprintf("● %s hook failed\n  ⎿  %s", e.name, a.Problem))
		}
		if e.heard != nil {
			e.heard(a)
		}
		out = append(out, a)
	})
	return out
}

// runAsync runs a hook that nobody waits for; one that may wake the session
// does so by exit 2.
func (s *session) runAsync(h hooks.Hook, call hooks.Call, event string) {
	r := s.runner.Run(s.life, h, call)
	if v := hooks.Judge(r); h.Rewake && v.ByExit {
		s.arrive(item{
			kind: itemNotice, rewoken: true, text: fmt.Sprintf(
				"<task-notification>\n<summary>%s hook feedback</summary>\n</task-notification>", event),
			system: []string{fmt.Sprintf("%s hook blocking error from command %q: %s", event, h.Shown(), v.Reason)},
		})
	}
}

// environ is what hooks and tools get: the client's own environment, over it
// the settings', over that what the client says of itself; the effort only
// where the payload has it too.
func (s *session) environ(settings hooks.Settings, effort bool) []string {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	env["HOME"] = s.home
	maps.Copy(env, settings.Env)
	s.mu.Lock()
	maps.Copy(env, map[string]string{
		"CLAUDECODE":                   "1",
		"CLAUDE_PID":                   strconv.Itoa(os.Getpid()),
		"CLAUDE_CODE_SESSION_ID":       s.id,
		"CLAUDE_PROJECT_DIR":           s.project,
		"CLAUDE_CODE_ENTRYPOINT":       "cli",
		"CLAUDE_CODE_CHILD_SESSION":    "1",
		"CLAUDE_CODE_SESSION_ATTENDED": "1",
		"PWD":                          s.cwd,
	})
	s.mu.Unlock()
	if effort {
		env["CLAUDE_EFFORT"] = "medium"
	}
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if s.broken("no-variable=" + name) {
			continue
		}
		out = append(out, name+"="+env[name])
	}
	return out
}

// setting is a variable as the client itself sees it.
func (s *session) setting(name string) string {
	settings, _ := s.store.Look()
	return cmp.Or(settings.Env[name], os.Getenv(name))
}

func (s *session) directory() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cwd
}

func (s *session) sessionID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// newPrompt gives the session its next prompt_id.
func (s *session) newPrompt() {
	id := newUUID()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.promptID = id
}

// begin makes id the session's, with a transcript of its own.
func (s *session) begin(id string) {
	t := openTranscript(transcriptPath(s.home, s.project, id), s.script.TranscriptDelay.Or(100*time.Millisecond))
	s.mu.Lock()
	if s.service != nil {
		s.service.said = nil
	}
	old := s.transcript
	s.id, s.transcript, s.promptID = id, t, ""
	s.mu.Unlock()
	if old != nil {
		old.close()
	}
}

// arrive queues something that may start a turn; it is dropped when the
// client ends.
func (s *session) arrive(it item) {
	select {
	case s.arrivals <- it:
	case <-s.life.Done():
	}
}

// show puts lines on the screen.
func (s *session) show(text string) {
	if s.term != nil {
		s.term.print(text)
	}
}

// newUUID is a random UUID, version 4 (RFC 9562).
func newUUID() string {
	var b [16]byte
	// rand.Read never fails (crypto/rand).
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// transcriptPath is where the client keeps a session's transcript.
func transcriptPath(home, project, id string) string {
	return filepath.Join(projectDir(home, project), id+".jsonl")
}

func projectDir(home, project string) string {
	return filepath.Join(home, ".claude", "projects", projectName(project))
}

// projectName is the directory's path with everything but letters and digits
// as dashes.
func projectName(project string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, project)
}
