// Package fakeapi is an Anthropic Messages API on loopback that answers by
// rules and remembers every request: what a client really sends to the model,
// seen from the only place that cannot be fooled by the client's own records.
//
// It speaks POST /v1/messages (streaming and not) and count_tokens as
// documented at docs.anthropic.com/en/api/messages and messages-streaming, and
// answers every other path with 200 and {}. It checks no key, and tells as tokens
// what its rules say. It is meant for tests and for probes of a client
// (orchestrator/probe); nothing in it bounds a hostile one but the number of connections.
package fakeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/ptyrun/lobby"
)

// maxBody bounds a request's body: the client sends 1 MB entries twice.
const maxBody = 256 << 20

// Server is a running API. Its methods may be called from any goroutine.
type Server struct {
	http     *http.Server
	listener net.Listener
	ctx      context.Context // ends with Close, and with it answers that hang
	cancel   context.CancelFunc

	mu       sync.Mutex
	rules    []*rule
	requests []*Request
	others   []Other
	last     map[string]*Request // conversation → its newest request
	pending  map[string][]Answer // id of a tool_use → answers that follow its result
	answers  int                 // that were sent to their end
	spent    Usage               // their sum
	limits   map[string]Limit    // :: credential → what it may use
}

// room is how many connections there may be: a client has some, and there may be a hundred.
var room = lobby.Room{Served: 2000, Waiting: 100}

type rule struct {
	Rule
	used int
}

// Other is a request that was no model call.
type Other struct {
	At     time.Time
	Method string
	Path   string
}

// Start listens on a free port of 127.0.0.1 and answers by rules, the first
// that matches. Without a match the answer is the text "reply N", N counting
// model calls from 1.
//
// A task that is said to be in a file is read first, and then the rules answer that; where
// the tool says an error, the answer is CannotRead.
func Start(rules ...Rule) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen on loopback: %w", err)
	}
	s := &Server{
		listener: l,
		last:     map[string]*Request{},
		pending:  map[string][]Answer{},
		limits:   map[string]Limit{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.Add(rules...)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", s.countTokens)
	mux.HandleFunc("/", s.other)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	lobby.Attend(s.http)
	go s.http.Serve(lobby.Open(l, room)) //nolint:errcheck // it ends with Close, and says nothing else
	return s, nil
}

// URL is what ANTHROPIC_BASE_URL wants: http://127.0.0.1:PORT.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Close ends every answer, also the hanging ones, and stops listening.
func (s *Server) Close() error {
	s.cancel()
	return s.http.Close()
}

// Add appends rules behind the ones that are there.
func (s *Server) Add(rules ...Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rules {
		s.rules = append(s.rules, &rule{Rule: r})
	}
}

// Requests returns the model calls so far, oldest first.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Others returns the requests that were no model calls, oldest first.
func (s *Server) Others() []Other {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.others)
}

func (s *Server) other(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.others = append(s.others, Other{At: time.Now(), Method: r.Method, Path: r.URL.Path})
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, "{}")
}

func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, io.LimitReader(r.Body, maxBody))
	s.mu.Lock()
	s.others = append(s.others, Other{At: time.Now(), Method: r.Method, Path: r.URL.Path})
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"input_tokens":%d}`, n/4)
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the client went away
	}
	req, err := parse(body, r.Header)
	if err != nil {
		writeError(w, Answer{Status: http.StatusBadRequest, ErrorType: "invalid_request_error", Message: err.Error()})
		return
	}
	a := s.record(req)
	if !s.wait(r, a.Delay) || !s.await(r, a.Await) {
		return
	}
	switch {
	case a.Hang == HangBeforeHeaders:
		s.wait(r, forever)
	case a.Status >= 400:
		writeError(w, a)
	case req.Stream:
		s.stream(w, r, req, a)
	default:
		writeWhole(w, req, a)
		s.sent(req)
	}
}

// record keeps the request and chooses its answer.
func (s *Server) record(req *Request) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Number = len(s.requests) + 1
	req.before = s.last[req.conversation()]
	s.last[req.conversation()] = req
	s.requests = append(s.requests, req)
	header, refused := s.limits[req.Credential()].headers(req.At)
	if req.Refused = refused; refused {
		return Answer{Status: http.StatusTooManyRequests, ErrorType: "rate_limit_error", Message: "This request would exceed your account's rate limit.", Header: header}
	}
	answer, then := s.choose(req)
	if answer.Header == nil {
		answer.Header = header
	}
	if req.Usage = answer.Usage; req.Usage == (Usage{}) {
		req.Usage = someUsage
	}
	if len(answer.Tools) > 0 {
		s.pending[toolID(req, 0)] = then
	}
	return answer
}

// choose finds the answer and what follows its tools' results. It needs mu.
func (s *Server) choose(req *Request) (Answer, []Answer) {
	_, result := req.newestUser().toolResult()
	for _, b := range req.newestUser().Content {
		if !result {
			break
		}
		if next := s.pending[b.ToolUse]; b.Type == "tool_result" && len(next) > 0 {
			if b.Failed && next[0].unread != nil {
				return *next[0].unread, nil
			}
			return next[0], next[1:]
		}
	}
	asked := req.newestUser().Text()
	file, task, is := TaskFile(asked)
	if is && !result {
		asked = task
	}
	a, then := s.byRule(req, asked)
	if !is || result {
		return a, then
	}
	a.unread = &Answer{Text: CannotRead}
	return Answer{Tools: []ToolUse{Read(file)}}, append([]Answer{a}, then...)
}

// byRule finds the answer of the first rule that matches. It needs mu.
func (s *Server) byRule(req *Request, asked string) (Answer, []Answer) {
	for _, r := range s.rules {
		if (r.Times > 0 && r.used >= r.Times) || !r.matches(req, asked) {
			continue
		}
		r.used++
		return r.Answer, r.Then
	}
	return Answer{Text: fmt.Sprintf("reply %d", req.Number)}, nil
}

// wait waits d and says whether the request is still wanted then.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-s.ctx.Done():
	}
	return false
}

// await waits until a file is there, and reports whether there is still somebody to answer.
func (s *Server) await(r *http.Request, path string) bool {
	for path != "" {
		if _, err := os.Lstat(path); err == nil {
			break
		}
		if !s.wait(r, 20*time.Millisecond) {
			return false
		}
	}
	return true
}

func writeError(w http.ResponseWriter, a Answer) {
	w.Header().Set("Content-Type", "application/json")
	maps.Copy(w.Header(), a.Header)
	w.WriteHeader(a.Status)
	json.NewEncoder(w).Encode(map[string]any{ //nolint:errcheck // the client may be gone
		"type":  "error",
		"error": map[string]string{"type": a.ErrorType, "message": a.Message},
	})
}

// compact is the JSON of v on one line, without HTML escapes.
func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // only maps and strings of ours come here
	}
	return strings.TrimSuffix(b.String(), "\n")
}
