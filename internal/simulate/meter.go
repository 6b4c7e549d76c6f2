package simulate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"heartbeat/internal/simulate/hooks"
)

// tokens is what one call of the model costs, as the transcript has it.
type tokens struct {
	Input      int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	Output     int `json:"output_tokens"`
}

// modelUsage is tokens as the client's own count has them.
type modelUsage struct {
	Input      int `json:"inputTokens"`
	CacheWrite int `json:"cacheCreationInputTokens"`
	CacheRead  int `json:"cacheReadInputTokens"`
	Output     int `json:"outputTokens"`
}

func (u tokens) plus(v tokens) tokens {
	return tokens{u.Input + v.Input, u.CacheWrite + v.CacheWrite, u.CacheRead + v.CacheRead, u.Output + v.Output}
}

// context is what a conversation holds after a call.
func (u tokens) context() int { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// cost is its list price in dollars: 5 for a million tokens in, 25 out.
func (u tokens) cost() float64 {
	return (float64(u.Input)*5 + float64(u.CacheWrite)*6.25 + float64(u.CacheRead)*0.5 + float64(u.Output)*25) / 1e6
}

// meter knows what a session's calls of the model have cost. What was asked before
// is read from the cache, what is new is written to it; a token is four bytes.
type meter struct {
	mu      sync.Mutex
	call    string // the message's id
	usage   tokens // of the call
	context int    // what the conversation holds, in tokens
	cost    float64
	exact   bool   // somebody else counts
	whole   tokens // of all calls of the conversation
}

const aToken = 4

// begin begins a call with new texts.
func (m *meter) begin(texts ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.exact {
		return
	}
	m.context += m.usage.Output
	m.call, m.usage = newMessageID(), tokens{Input: 3, CacheRead: m.context}
	for _, t := range texts {
		m.usage.CacheWrite += len(t)/aToken + 1
	}
	m.context += m.usage.CacheWrite
}

// said adds what the model says in its call.
func (m *meter) said(text []byte) (id string, u tokens) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.exact {
		return m.call, m.usage
	}
	before := m.usage.cost()
	if m.usage.Output == 0 { // a call that fails is not billed
		before = 0
	}
	if m.usage.Output == 0 {
		m.whole = m.whole.plus(m.usage)
	}
	more := len(text)/aToken + 1
	m.usage.Output += more
	m.whole.Output += more
	m.cost += m.usage.cost() - before
	return m.call, m.usage
}

// told is what a call has cost that somebody else has counted.
func (m *meter) told(id string, u tokens) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.call, m.usage = id, u
	m.cost += u.cost()
	m.whole = m.whole.plus(u)
}

// adds is told of a call that is not the conversation's own.
func (m *meter) adds(u tokens) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cost += u.cost()
	m.whole = m.whole.plus(u)
}

// aside is a call of a subagent, whose context is its own.
func (m *meter) aside(asked, said string) (id string, u tokens) {
	u = tokens{Input: 3, CacheWrite: len(asked)/aToken + 1, Output: len(said)/aToken + 1}
	m.adds(u)
	return newMessageID(), u
}

func newMessageID() string { return "msg_" + strings.ReplaceAll(newUUID(), "-", "") }

// resume goes on with what a conversation had cost, as its transcript says.
func (m *meter) resume(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		var r struct {
			Type    string
			Total   float64               `json:"totalCostUSD"`
			Models  map[string]modelUsage `json:"modelUsage"`
			Message struct{ Usage tokens }
		}
		if bytes.HasSuffix(line, []byte("\n")) && json.Unmarshal(line, &r) == nil {
			switch r.Type {
			case "cost-state":
				m.cost, m.whole = r.Total, tokens{}
				for _, u := range r.Models {
					m.whole = m.whole.plus(tokens(u))
				}
			case "assistant":
				m.usage = r.Message.Usage
				m.context = m.usage.CacheRead + m.usage.CacheWrite
			}
		}
		if err != nil {
			return
		}
	}
}

// costState records what the conversation has cost, which the client does when it
// ends.
func (s *session) costState() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meter.mu.Lock()
	defer s.meter.mu.Unlock()
	s.transcript.add([]field{
		{"type", "cost-state"},
		{"sessionId", s.id},
		{"totalCostUSD", s.meter.cost},
		{"modelUsage", map[string]modelUsage{s.args.model: modelUsage(s.meter.whole)}},
		{"hasUnknownModelCost", false},
	})
}

// bill tells SIMULATE_BILL what a call has cost so far: the last line of a message
// counts.
func (s *session) bill(id string, u tokens) {
	path := os.Getenv("SIMULATE_BILL")
	if path == "" {
		return
	}
	line := object([]field{{"session_id", s.sessionID()}, {"message", id}, {"usage", u}})
	if err := appendLine(path, line); err != nil {
		fmt.Fprintf(s.stderr, "Error: cannot write SIMULATE_BILL: %v\n", err)
		s.exit(1)
	}
}

// askSubagent writes down what a subagent is asked, as the client does before it asks.
func (s *session) askSubagent(path, id, asked string) {
	s.ofSubagent(path, id, "user", map[string]any{"role": "user", "content": asked})
}

// recordSubagent writes a subagent's transcript: its answer and what that cost.
func (s *session) recordSubagent(path, id, asked, said string) {
	message, u := s.meter.aside(asked, said)
	s.keepSubagent(path, id, message, u, said)
}

// keepSubagent writes it.
func (s *session) keepSubagent(path, id, message string, u tokens, said string) {
	s.bill(message, u)
	s.ofSubagent(path, id, "assistant", s.message(message, u, "end_turn", textBlock{"text", said}))
	s.spent()
}

// ofSubagent appends a message to a subagent's transcript. That it cannot does not stop the
// client.
func (s *session) ofSubagent(path, id, kind string, message any) {
	if os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	_ = appendLine(path, object([]field{
		{"isSidechain", true},
		{"agentId", id},
		{"type", kind},
		{"message", message},
		{"timestamp", stamp()},
	}))
}

// statusAfter is how long the client waits after a change before it runs its status
// line.
const statusAfter = 300 * time.Millisecond

// spent has the status line run again.
func (s *session) spent() {
	select {
	case s.figures <- struct{}{}:
	default:
	}
}

// showStatus runs the status line when figures have changed, one after the other.
func (s *session) showStatus() {
	for {
		select {
		case <-s.life.Done():
			return
		case <-s.figures:
		}
		sleep(s.life, statusAfter)
		settings, _ := s.store.Look()
		if s.life.Err() != nil || settings.DisableAll || settings.StatusLine == "" || s.broken("no-status-line") || s.hush.Load() {
			continue
		}
		select {
		case <-s.figures: // they are in this one
		default:
		}
		ctx, cancel := context.WithTimeout(s.life, 5*time.Second)
		r := s.runner.Run(ctx, hooks.Hook{Command: settings.StatusLine}, hooks.Call{
			Payload: s.status(), Env: s.environ(settings, false), Dir: s.directory(),
		})
		cancel()
		if text := strings.TrimSpace(r.Stdout); text != "" && s.term != nil {
			s.term.print(text)
		}
	}
}

// limitFalls has the status line told of a five-hour limit that is used up.
func (s *session) limitFalls(resets time.Time) {
	s.meter.mu.Lock()
	s.script.Limits = map[string]any{"five_hour": map[string]any{"used_percentage": 100, "resets_at": resets.Unix()}}
	s.meter.mu.Unlock()
	s.spent()
}

// status is what the status line is told.
func (s *session) status() []byte {
	s.mu.Lock()
	f := []field{{"session_id", s.id}, {"transcript_path", s.transcript.path}, {"cwd", s.cwd}}
	if s.promptID != "" {
		f = append(f, field{"prompt_id", s.promptID})
	}
	s.mu.Unlock()
	m := &s.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	window := s.script.Window()
	filled := m.usage.Input + m.usage.CacheRead + m.usage.CacheWrite
	f = append(f,
		field{"model", map[string]string{"id": s.args.model, "display_name": s.args.model}},
		field{"version", Version},
		field{"cost", map[string]any{"total_cost_usd": m.cost}},
		field{"context_window", map[string]any{
			"total_input_tokens": filled, "total_output_tokens": m.usage.Output, "context_window_size": window,
			"used_percentage": filled * 100 / window, "remaining_percentage": 100 - filled*100/window,
		}},
	)
	if limits := s.script.Limits; limits != nil {
		f = append(f, field{"rate_limits", limits})
	}
	return object(s.told(f))
}
