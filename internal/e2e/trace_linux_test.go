package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A trace is what a session did, as lines that are equal for every run of one
// scenario: hook calls with their payloads, model calls with what was new in
// them, the exit status. Ids, folders, processes and durations are replaced
// by names, equal ones by equal names.
type trace struct {
	lab     *Lab
	names   map[string]string
	count   map[string]int
	env     map[string]string // event → environment of its last hook
	first   []string          // the first hook's environment
	session string            // of the hook before
}

type traceLine struct {
	at   time.Time
	text string
}

// Trace describes what has happened in the lab: hook calls and, if wanted,
// model calls.
func (l *Lab) Trace(models bool) []string {
	t := &trace{lab: l, names: map[string]string{}, count: map[string]int{}, env: map[string]string{}}
	var lines []traceLine
	calls := l.Calls()
	slices.SortStableFunc(calls, func(a, b *Call) int { return a.At.Compare(b.At) })
	sortTags(calls)
	for _, c := range calls {
		lines = append(lines, traceLine{c.At, t.hook(c)})
	}
	for _, m := range l.modelCalls() {
		if !models {
			break
		}
		lines = append(lines, traceLine{m.at, t.model(m)})
	}
	slices.SortStableFunc(lines, func(a, b traceLine) int { return a.at.Compare(b.at) })
	var out []string
	for _, line := range lines {
		out = append(out, strings.Split(line.text, "\n")...)
	}
	return out
}

// sortTags orders hooks of one event that were called together (the client
// starts them in parallel) by their tags.
func sortTags(calls []*Call) {
	for len(calls) > 0 {
		n := 1
		for n < len(calls) && calls[n].Event == calls[0].Event && !tagged(calls[:n], calls[n].Tag) {
			n++
		}
		at := calls[0].At
		slices.SortStableFunc(calls[:n], func(a, b *Call) int { return strings.Compare(a.Tag, b.Tag) })
		for _, c := range calls[:n] {
			c.At = at
		}
		calls = calls[n:]
	}
}

func tagged(calls []*Call, tag string) bool {
	return slices.ContainsFunc(calls, func(c *Call) bool { return c.Tag == tag })
}

func (t *trace) hook(c *Call) string {
	var b strings.Builder
	b.WriteString("hook " + c.Event)
	if c.Tag != "-" {
		b.WriteString("/" + c.Tag)
	}
	if env := t.environment(c); t.env[c.Event] != env {
		fmt.Fprintf(&b, "\n  env %s", t.changed(env))
		t.env[c.Event] = env
	}
	var fields map[string]any
	if err := json.Unmarshal(c.Payload, &fields); err != nil {
		return b.String() + " payload is no object: " + string(c.Payload)
	}
	t.common(c, fields)
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&b, "\n  %s: %s", k, t.value(k, fields[k]))
	}
	for _, n := range c.Notes() {
		if n != "answered" {
			b.WriteString("\n  -> " + n)
		}
	}
	return b.String()
}

// common takes the fields out that every payload has, where they say what
// they must; a field that is absent is put in as such.
func (t *trace) common(c *Call, fields map[string]any) {
	session := c.Text("session_id")
	for k, want := range map[string]string{
		"hook_event_name": c.Event,
		"cwd":             c.Cwd,
		"transcript_path": t.lab.TranscriptPath(session),
		"session_id":      t.session,
	} {
		switch got, ok := fields[k]; {
		case !ok:
			fields[k] = "absent"
		case got == want:
			delete(fields, k)
		}
	}
	t.session = session
}

// changed is env, or after the first time only what differs from the first.
func (t *trace) changed(env string) string {
	if t.first == nil {
		t.first = strings.Fields(env)
		return env
	}
	var out []string
	now := strings.Fields(env)
	for _, kv := range t.first {
		if !slices.Contains(now, kv) {
			out = append(out, "-"+kv)
		}
	}
	for _, kv := range now {
		if !slices.Contains(t.first, kv) {
			out = append(out, "+"+kv)
		}
	}
	if out == nil {
		return "as at first"
	}
	return strings.Join(out, " ")
}

// TranscriptPath is where the client keeps the transcript of a session that
// was started in the workspace.
func (l *Lab) TranscriptPath(session string) string {
	return filepath.Join(l.Home, ".claude", "projects", notWord.ReplaceAllString(l.Work, "-"), session+".jsonl")
}

func (t *trace) model(m modelCall) string {
	var b strings.Builder
	b.WriteString("model")
	for _, text := range m.user {
		fmt.Fprintf(&b, "\n  user: %s", t.value("", text))
	}
	for _, text := range m.system {
		fmt.Fprintf(&b, "\n  system: %s", t.value("", text))
	}
	return b.String()
}

var (
	uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// The client's ids of background tasks and tool uses.
	taskID = regexp.MustCompile(`\bb[0-9a-z]{8}\b`)
	// One in fourteen is of letters alone, like a word: such a one is
	// known by where it stands when it is first told.
	taskToldAs = regexp.MustCompile(`(?:"backgroundTaskId":"|"id":"|<task-id>)(b[0-9a-z]{8})\b`)
	agentID    = regexp.MustCompile(`\ba[0-9a-f]{16}\b`)
	toolID     = regexp.MustCompile(`toolu_\w+`)
	tokens     = regexp.MustCompile(`~[0-9]+ tokens`)
	// Of a subagent's notification the rest is words, tokens and times.
	subagentNotice = regexp.MustCompile(`<output-file>[^"\\]*<agent-[0-9]+>[^<]*</output-file>.*?(<status>[a-z]*</status>).*?</task-notification>`)
	notWord        = regexp.MustCompile(`[^A-Za-z0-9]`)
)

// measured are the fields of payloads whose values differ from run to run.
var measured = map[string]bool{
	"duration_ms":                 true,
	"context_tokens":              true,
	"estimated_cache_write_usd":   true,
	"seconds_since_last_response": true,
}

// value is v as JSON on one line with names for what changes.
func (t *trace) value(key string, v any) string {
	switch {
	case measured[key]:
		return fmt.Sprintf("%T", v)
	case key == "background_tasks" || key == "tool_response" || key == "":
		// Only here ids of tasks occur; words of eight letters occur elsewhere.
		return t.tidy(t.nameTasks(encode(v)))
	case key == "prompt":
		s := encode(v)
		if strings.Contains(s, "<task-id>") {
			return t.value("", v)
		}
		return t.tidy(s)
	}
	return t.tidy(encode(v))
}

// nameTasks puts names for ids of background tasks.
func (t *trace) nameTasks(s string) string {
	for _, told := range taskToldAs.FindAllStringSubmatch(s, -1) {
		t.name("task", told[1])
	}
	return taskID.ReplaceAllStringFunc(s, func(id string) string {
		if t.names[id] == "" && !strings.ContainsAny(id, "0123456789") {
			return id
		}
		return t.name("task", id)
	})
}

func (t *trace) tidy(s string) string {
	s = uuid.ReplaceAllStringFunc(s, func(id string) string { return t.name("id", id) })
	s = agentID.ReplaceAllStringFunc(s, func(id string) string { return t.name("agent", id) })
	s = toolID.ReplaceAllStringFunc(s, func(id string) string { return t.name("tool", id) })
	s = strings.NewReplacer(
		filepath.Join(t.lab.Dir, hookName)+" "+t.lab.hooks.listener.Addr().String(), "HOOK",
		strings.TrimPrefix(t.lab.API.URL(), "http://"), "API",
		t.lab.Work, "W", t.lab.Home, "H", t.lab.Dir, "D",
		notWord.ReplaceAllString(t.lab.Work, "-"), "-W",
		fmt.Sprintf("claude-%d/", os.Getuid()), "claude-UID/",
	).Replace(s)
	s = subagentNotice.ReplaceAllString(s, "…$1…")
	return tokens.ReplaceAllString(s, "~N tokens")
}

// name returns "kind N", N counting different ids from 1.
func (t *trace) name(kind, id string) string {
	if t.names[id] == "" {
		t.count[kind]++
		t.names[id] = fmt.Sprintf("<%s-%d>", kind, t.count[kind])
	}
	return t.names[id]
}

func encode(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(v) //nolint:errcheck // it was JSON before
	return strings.TrimSuffix(b.String(), "\n")
}

// environment is what the client adds to its own environment for a hook, and
// how the hook's process stands.
func (t *trace) environment(c *Call) string {
	own := map[string]bool{}
	for _, nv := range t.lab.Env() {
		own[nv] = true
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		value := c.Env[name]
		if own[name+"="+value] || !strings.Contains(name, "CLAUDE") || unstable[name] {
			continue
		}
		for i, term := range t.lab.started {
			if value == strconv.Itoa(term.Pid()) {
				value = fmt.Sprintf("<client-%d>", i+1)
			}
		}
		out = append(out, name+"="+t.tidy(value))
	}
	cwd := t.tidy(c.Cwd)
	return fmt.Sprintf("%s cwd=%s leader=%v", strings.Join(out, " "), cwd, c.Leader)
}

// unstable are variables of the client's own business: paths and secrets of
// its messaging, notes for child sessions.
var unstable = map[string]bool{
	"CLAUDE_CODE_MESSAGING_SOCKET": true,
	"CLAUDE_CODE_MESSAGING_TOKEN":  true,
	"CLAUDE_CODE_CHILD_NOTES_DIR":  true,
	"CLAUDE_ENV_FILE":              true,
}

// TestTraceTaskOfLettersAlone: one id in fourteen has no digit and stayed in
// the trace as it was.
func TestTraceTaskOfLettersAlone(t *testing.T) {
	t.Parallel()
	tr := &trace{names: map[string]string{}, count: map[string]int{}}
	for _, c := range []struct{ in, want string }{
		{`bluebirds in tasks/b1234567z.output`, `bluebirds in tasks/<task-1>.output`},
		{`{"backgroundTaskId":"bazitawmn"}`, `{"backgroundTaskId":"<task-2>"}`},
		{`with ID: bazitawmn, bluebirds`, `with ID: <task-2>, bluebirds`},
		{`<task-id>bqqqqqqqq</task-id>`, `<task-id><task-3></task-id>`},
	} {
		if got := tr.nameTasks(c.in); got != c.want {
			t.Errorf("%s: %s, want %s", c.in, got, c.want)
		}
	}
}

// stopRecords describes what the transcripts say of Stops.
func (l *Lab) stopRecords() []string {
	l.t.Helper()
	files, _ := filepath.Glob(filepath.Join(l.Home, ".claude", "projects", "*", "*.jsonl"))
	var out []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			l.t.Fatal(err)
		}
		for line := range strings.Lines(strings.ReplaceAll(string(data), l.Dir, "DIR")) {
			if text := stopRecord(line); text != "" {
				out = append(out, strings.ReplaceAll(text, filepath.Base(l.Dir), "ADDRESS"))
			}
		}
	}
	return out
}

// stopRecord is a line of a transcript that tells of a Stop, or "".
func stopRecord(line string) string {
	var r struct {
		Type, Subtype string
		Message       struct{ Content json.RawMessage }
		Attachment    struct {
			Type, HookEvent string
			Content         json.RawMessage
		}
		HookCount int
		HookInfos []struct {
			Command    string
			DurationMs *int
		}
		HookErrors, HookAdditionalContext []string
		FailedHookErrorIndexes            []int
		PreventedContinuation             bool
		StopReason                        string
		Timestamp                         time.Time
	}
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return "no record: " + line
	}
	content := string(r.Message.Content)
	switch {
	case r.Subtype == "stop_hook_summary":
		var text strings.Builder
		fmt.Fprintf(&text, "record of a Stop: %d hooks", r.HookCount)
		for _, h := range r.HookInfos {
			fmt.Fprintf(&text, "\n  %s, took time: %v", h.Command, h.DurationMs != nil)
		}
		return text.String() + fmt.Sprintf("\n  said %q, failed %v, added %q, prevented %v %q, has a time: %v", r.HookErrors,
			r.FailedHookErrorIndexes, r.HookAdditionalContext, r.PreventedContinuation, r.StopReason, !r.Timestamp.IsZero())
	case r.Subtype == "turn_duration":
		return "record of a turn's end"
	case r.Type == "user" && strings.Contains(content, "hook"):
		return "record of a user's words: " + content
	case r.Type == "attachment" && r.Attachment.Type == "hook_additional_context":
		return fmt.Sprintf("record of %s's words: %s", r.Attachment.HookEvent, r.Attachment.Content)
	case r.Type == "assistant":
		return "record of an answer"
	}
	return ""
}
