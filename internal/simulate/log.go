package simulate

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// Request is one line of SIMULATE_LOG: a request to the model, written before
// it is answered.
type Request struct {
	At        time.Time `json:"at"`
	SessionID string    `json:"session_id"`
	PromptID  string    `json:"prompt_id"`
	// Prompts are the user texts that are new in this request; none when it
	// only carries tool results. Like the client, all but the last have a
	// line break added.
	Prompts []string `json:"prompts"`
	// System is the new text that comes with the system's authority: hooks'
	// additional context, and the second copy of a decision:block.
	System []string `json:"system,omitempty"`
	PID    int      `json:"pid"`
	Dir    string   `json:"dir"` // the launch directory
}

// request tells the log of one request.
func (s *session) request(prompts, system []string) {
	s.meter.begin(append(prompts[:len(prompts):len(prompts)], system...)...)
	if s.service != nil {
		s.service.hears(prompts, system)
	}
	path := os.Getenv("SIMULATE_LOG")
	if path == "" {
		return
	}
	said := []string{}
	for i, p := range prompts {
		if i < len(prompts)-1 {
			p += "\n"
		}
		said = append(said, p)
	}
	if len(system) > 0 {
		system = []string{strings.Join(system, "\n\n")}
	}
	s.mu.Lock()
	r := Request{time.Now(), s.id, s.promptID, said, system, os.Getpid(), s.project}
	s.mu.Unlock()
	line, err := json.Marshal(r)
	if err == nil {
		err = appendLine(path, line)
	}
	if err != nil {
		// The log is a test's evidence: go no further without it.
		fmt.Fprintf(s.stderr, "Error: cannot write SIMULATE_LOG: %v\n", err)
		s.exit(1)
	}
}

// appendLine writes one line with one write(2), so that several clients can
// share a file, and syncs it: it is written before anything comes of it.
func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// exit asks the loop to end the client with a status, once.
func (s *session) exit(code int) {
	select {
	case s.exitNow <- code:
	default:
	}
}
