package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"
	"time"

	"heartbeat/orchestrator"
)

// ErrNotRunning means that no scheduler answers for the fleet.
var ErrNotRunning = errors.New("heartbeat does not run this fleet")

// Error is what a running scheduler refused.
type Error struct{ Message, Advice string }

// Error is the scheduler's own message.
func (e *Error) Error() string { return e.Message }

// Hint says what to do, or is "".
func (e *Error) Hint() string { return e.Advice }

// Client talks to the run whose socket is in a fleet's runtime directory.
type Client struct {
	http http.Client
	// Slow, when not nil, is called when the answer to what takes a moment
	// only does not come for slowAfter.
	Slow func()
}

// slowAfter is when a scheduler that does not answer is worth a word.
const slowAfter = 5 * time.Second

// NewClient returns a client for the socket in dir. It connects when asked.
func NewClient(dir string) *Client {
	return &Client{http: http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socketPath(dir))
		},
	}}}
}

// Status returns what the run does now. Without one the error is
// ErrNotRunning, as for all methods.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	var s Status
	return &s, c.do(ctx, http.MethodGet, "status", nil, &s)
}

// Pause holds agents; none named means all.
func (c *Client) Pause(ctx context.Context, agents ...string) ([]orchestrator.AgentState, error) {
	var states []orchestrator.AgentState
	err := c.do(ctx, http.MethodPost, "pause", &request{Agents: agents}, &states)
	return states, err
}

// Resume ends what holds agents; none named means all.
func (c *Client) Resume(ctx context.Context, agents ...string) ([]orchestrator.AgentState, error) {
	var states []orchestrator.AgentState
	err := c.do(ctx, http.MethodPost, "resume", &request{Agents: agents}, &states)
	return states, err
}

// Trigger fires a trigger of an agent, or all of them for "", and returns
// when that is done, which takes as long as a poll's command does.
func (c *Client) Trigger(ctx context.Context, agent, trigger string) ([]orchestrator.Fired, error) {
	var fired []orchestrator.Fired
	err := c.do(ctx, http.MethodPost, "trigger", &request{Agents: []string{agent}, Trigger: trigger}, &fired)
	return fired, err
}

// Reload has the run load its fleet's file again, and returns what that
// changes.
func (c *Client) Reload(ctx context.Context) (*orchestrator.Plan, error) {
	var p orchestrator.Plan
	return &p, c.do(ctx, http.MethodPost, "reload", &request{}, &p)
}

func (c *Client) do(ctx context.Context, method, what string, q *request, answer any) error {
	var body bytes.Buffer
	if q != nil {
		if err := json.NewEncoder(&body).Encode(q); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://heartbeat/v1/"+what, &body)
	if err != nil {
		return err
	}
	if c.Slow != nil && what != "trigger" { // which runs commands
		defer time.AfterFunc(slowAfter, c.Slow).Stop()
	}
	res, err := c.http.Do(req)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return ErrNotRunning
		}
		return fmt.Errorf("cannot reach the running scheduler: %w", err)
	}
	defer res.Body.Close()
	in := json.NewDecoder(io.LimitReader(res.Body, maxBody))
	if res.StatusCode != http.StatusOK {
		var p problem
		if err := in.Decode(&p); err != nil || p.Error == "" {
			return fmt.Errorf("cannot %s: the running scheduler answers %s; it may be of another version", what, res.Status)
		}
		return &Error{p.Error, p.Hint}
	}
	if err := in.Decode(answer); err != nil {
		return fmt.Errorf("cannot read the answer of the running scheduler: %w", err)
	}
	return nil
}
