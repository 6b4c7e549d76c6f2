package simulate

import (
	"os"
	"path/filepath"
	"sync"
	"time"
)

// transcript is a session's JSONL file. It is written behind, as the client
// does it: a record is on disk a while after what it records, and what was
// not written yet is lost by SIGKILL.
type transcript struct {
	path    string
	delay   time.Duration
	records chan pending
	hurry   chan struct{}
	done    chan struct{}
	closing sync.Once

	mu   sync.Mutex
	last string // uuid of the record before
}

type pending struct {
	line []byte
	due  time.Time
}

func openTranscript(path string, delay time.Duration) *transcript {
	t := &transcript{
		path: path, delay: delay, records: make(chan pending, 1024),
		hurry: make(chan struct{}), done: make(chan struct{}),
	}
	go t.write()
	return t
}

// write appends records when they are due. A transcript that cannot be
// written does not stop the client.
func (t *transcript) write() {
	defer close(t.done)
	for r := range t.records {
		select {
		case <-time.After(time.Until(r.due)):
		case <-t.hurry:
		}
		if os.MkdirAll(filepath.Dir(t.path), 0o700) == nil {
			_ = appendLine(t.path, r.line)
		}
	}
}

func (t *transcript) add(fields []field) {
	t.records <- pending{object(fields), time.Now().Add(t.delay)}
}

// close writes what is left. Nothing may be added afterwards.
func (t *transcript) close() {
	t.closing.Do(func() { close(t.hurry); close(t.records) })
	<-t.done
}

// stamp is the present time as transcripts have it.
func stamp() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// record appends one message or attachment, chained to the one before.
func (s *session) record(kind string, fields ...field) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.transcript
	t.mu.Lock()
	defer t.mu.Unlock()
	var parent any
	if t.last != "" {
		parent = t.last
	}
	t.last = newUUID()
	all := []field{{"parentUuid", parent}, {"isSidechain", false}}
	if kind == "user" {
		all = append(all, field{"promptId", s.promptID})
	}
	all = append(all, field{"type", kind})
	all = append(all, fields...)
	all = append(
		all,
		field{"uuid", t.last},
		field{"timestamp", stamp()},
		field{"userType", "external"},
		field{"entrypoint", "cli"},
		field{"cwd", s.cwd},
		field{"sessionId", s.id},
		field{"version", Version},
		field{"gitBranch", "HEAD"},
	)
	t.add(all)
}

// queueOperation records that something typed while the client is busy is put
// into its queue, or taken out of it.
func (s *session) queueOperation(operation, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []field{
		{"type", "queue-operation"},
		{"operation", operation},
		{"timestamp", stamp()},
		{"sessionId", s.id},
	}
	if content != "" {
		all = append(all, field{"content", content})
	}
	s.transcript.mu.Lock()
	defer s.transcript.mu.Unlock()
	s.transcript.add(all)
}

// userText records what the user, or a hook in the user's place, said.
func (s *session) userText(text string, more ...field) {
	if !s.broken("no-transcript") {
		s.record("user", append([]field{{"message", message{"user", text}}}, more...)...)
	}
}

// assistantContent records what the model said.
func (s *session) assistantContent(stop string, content ...any) {
	id, u := s.meter.said(encode(content))
	s.bill(id, u)
	s.record("assistant", field{"message", s.message(id, u, stop, content...)})
	s.spent()
}

// synthetic is the model of what the client itself says in the model's place.
const synthetic = "<synthetic>"

// apiError records what the client says in the model's place of a request that the
// API refused for good.
func (s *session) apiError(f *apiFailure) {
	m := s.message(newUUID(), tokens{}, "stop_sequence", textBlock{"text", f.message})
	m.Model = synthetic
	s.record("assistant", field{"message", m}, field{"isApiErrorMessage", true}, field{"apiErrorStatus", f.status}, field{"error", f.kind})
}

func (s *session) message(id string, u tokens, stop string, content ...any) answerMessage {
	if s.broken("no-usage") {
		u = tokens{}
	}
	return answerMessage{id, "message", "assistant", s.args.model, content, stop, nil, u}
}

type answerMessage struct {
	ID         string  `json:"id"`
	Type       string  `json:"type"`
	Role       string  `json:"role"`
	Model      string  `json:"model"`
	Content    []any   `json:"content"`
	StopReason string  `json:"stop_reason"`
	Sequence   *string `json:"stop_sequence"`
	Usage      tokens  `json:"usage"`
}

type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type toolUseBlock struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input any    `json:"input"`
}

type toolResultBlock struct {
	ToolUseID string `json:"tool_use_id"`
	Type      string `json:"type"`
	Content   string `json:"content"`
	IsError   bool   `json:"is_error"`
}
