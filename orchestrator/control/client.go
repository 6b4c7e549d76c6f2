package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"heartbeat/hook/flock"
	"heartbeat/hook/foreign"
	"heartbeat/hook/process"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/status"
	"heartbeat/ptyrun/peer"
)

// ErrNotRunning means that no scheduler answers for the fleet.
var ErrNotRunning = errors.New("heartbeat does not run this fleet")

// Error is an error that a running scheduler returned.
type Error struct {
	Message, Advice string
	Exit            int // the exit status for it; 0: not given
}

// Error is the scheduler's own message.
func (e *Error) Error() string { return e.Message }

// Hint says what to do, or is "".
func (e *Error) Hint() string { return e.Advice }

// ExitCode is the exit status of a command that fails with it.
func (e *Error) ExitCode() int { return cmp.Or(e.Exit, 1) }

// NoAnswerError means that a scheduler runs, but has not answered in time. It does
// not carry out the request later: it checks whether the client is still there.
type NoAnswerError struct {
	PID  int // 0: not known
	Wait time.Duration
	// State is that of its process, as ps(1) prints it; "": not known.
	State string
}

// noAnswer is that a process has not answered since a time.
func noAnswer(pid int, begin time.Time) *NoAnswerError {
	e := &NoAnswerError{PID: pid, Wait: time.Since(begin)}
	if state := process.StateOf(pid); pid > 0 && state != 0 {
		e.State = string(rune(state))
	}
	return e
}

// MuteOf is the run that has not answered, if an error is that; or nil. seen is when the
// run lived last, or zero.
func MuteOf(err error, seen time.Time) *status.Mute {
	e, is := errors.AsType[*NoAnswerError](err)
	if !is {
		return nil
	}
	return &status.Mute{PID: e.PID, Seen: seen, State: e.State}
}

// Error says who did not answer, and for how long.
func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("cannot reach the running scheduler%s: it has not answered within %s", process.Numbered(e.PID), e.Wait.Round(100*time.Millisecond))
}

// Hint says what to do.
func (e *NoAnswerError) Hint() string {
	return "nothing was changed; " + MuteOf(e, time.Time{}).Do("heartbeat") + "; then repeat the command"
}

// Client talks to the run whose socket is in a fleet's runtime directory.
type Client struct {
	http http.Client
	dir  string       // of its socket
	pid  atomic.Int64 // of the run that has the socket, once connected; 0: not known
	// wait is how long a scheduler may take to answer, and slow is when it is worth
	// mentioning that it does not. Requests that take long (see long) may take longer, as
	// long as the scheduler says that it lives. After halted who only looks at a run looks
	// whether its process is stopped.
	wait, slow, halted time.Duration
	// Slow, if not nil, is called if the scheduler has not answered within slow, neither
	// the request nor, if that takes long, whether it lives.
	Slow func()
}

// haltedAfter, slowAfter and answerWithin are a client's halted, slow and wait.
const (
	haltedAfter  = 2 * time.Second
	slowAfter    = 3 * time.Second
	answerWithin = 10 * time.Second
)

// NewClient returns a client for the socket in dir. It connects with each request.
func NewClient(dir string) *Client {
	c := &Client{dir: dir, wait: answerWithin, slow: slowAfter, halted: haltedAfter}
	c.http.Transport = &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "unix", socketPath(dir))
			if err != nil {
				return nil, err
			}
			other, err := peer.Check(conn)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", socketPath(dir), err), conn.Close())
			}
			c.pid.Store(int64(other.PID))
			return conn, nil
		},
	}
	return c
}

// Answers reports whether a run has the socket in dir, or is just taking it.
func Answers(dir string) bool { return flock.Held(lockPath(dir)) }

// Process returns the process that had the socket at the last request, as this process sees
// it; 0: it does not, as of one in another container.
func (c *Client) Process() int { return int(max(c.pid.Load(), 0)) }

// Status returns what the run does now. If there is none, the error is
// ErrNotRunning, as for all methods. A run that is stopped is not waited for: who only
// looks is told so after two seconds, and a run that is busy has ten to answer.
func (c *Client) Status(ctx context.Context) (*status.Live, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	look := time.AfterFunc(c.halted, func() {
		if MuteOf(noAnswer(c.Process(), time.Now()), time.Time{}).Stopped() {
			cancel(context.DeadlineExceeded)
		}
	})
	defer look.Stop()
	var s status.Live
	if err := c.do(ctx, http.MethodGet, "status", nil, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// Pause holds agents, all if none is named, for a length; 0: until Resume.
func (c *Client) Pause(ctx context.Context, length time.Duration, agents ...string) ([]status.AgentState, error) {
	var states []status.AgentState
	err := c.do(ctx, http.MethodPost, "pause", &request{Agents: agents, For: length}, &states)
	return states, err
}

// Resume ends what holds agents; all if none is named.
func (c *Client) Resume(ctx context.Context, agents ...string) ([]status.AgentState, error) {
	var states []status.AgentState
	err := c.do(ctx, http.MethodPost, "resume", &request{Agents: agents}, &states)
	return states, err
}

// PauseTrigger keeps a trigger of an agent from firing by itself for a length; 0: until
// ResumeTrigger.
func (c *Client) PauseTrigger(ctx context.Context, length time.Duration, agent, trigger string) ([]status.AgentState, error) {
	var states []status.AgentState
	err := c.do(ctx, http.MethodPost, "pause-trigger", &request{Agents: []string{agent}, For: length, Trigger: trigger}, &states)
	return states, err
}

// ResumeTrigger ends the pause of a trigger.
func (c *Client) ResumeTrigger(ctx context.Context, agent, trigger string) ([]status.AgentState, error) {
	var states []status.AgentState
	err := c.do(ctx, http.MethodPost, "resume-trigger", &request{Agents: []string{agent}, Trigger: trigger}, &states)
	return states, err
}

// Restart ends the sessions of agents; all if none is named. It returns at once:
// turns may finish or, with now, they are ended.
func (c *Client) Restart(ctx context.Context, now bool, agents ...string) ([]status.AgentState, error) {
	var states []status.AgentState
	err := c.do(ctx, http.MethodPost, "restart", &request{Agents: agents, Now: now}, &states)
	return states, err
}

// Cancel ends the turns of agents, and returns when it is known what became of
// their entries, which takes as long as sessions take to end. If entry is not "",
// only that entry is meant.
func (c *Client) Cancel(ctx context.Context, entry string, again bool, agents ...string) ([]orchestrator.Cancelled, error) {
	var all []orchestrator.Cancelled
	err := c.do(ctx, http.MethodPost, "cancel", &request{Agents: agents, Entry: entry, Again: again}, &all)
	return all, err
}

// Trigger fires a trigger of an agent, or all of them for "", and returns when that
// is done, which takes as long as a poll's command.
func (c *Client) Trigger(ctx context.Context, agent, trigger string) ([]firing.Fired, error) {
	var fired []firing.Fired
	err := c.do(ctx, http.MethodPost, "trigger", &request{Agents: []string{agent}, Trigger: trigger}, &fired)
	return fired, err
}

// Stop asks the run to end and returns which run it is, at once: Answers says when
// it has ended. Turns may finish within shutdown-grace; with now they are ended.
func (c *Client) Stop(ctx context.Context, now bool) (*status.Run, error) {
	var run status.Run
	if err := c.do(ctx, http.MethodPost, "stop", &request{Now: now}, &run); err != nil {
		return nil, err
	}
	return &run, nil
}

// Answer says yes or no to a request, with a note or "", and a token or "".
func (c *Client) Answer(ctx context.Context, id string, yes bool, note, token string) (approval.Request, error) {
	r := approval.Request{ID: id, State: approval.Rejected, Note: foreign.Text(note)}
	if yes {
		r.State = approval.Approved
	}
	var answered approval.Request
	err := c.do(ctx, http.MethodPost, "answer-approval", &request{Approval: &r, Token: token}, &answered)
	return answered, err
}

// Tokens has the run do something to who may see the page, with a token or "".
func (c *Client) Tokens(ctx context.Context, o access.Order, token string) (d access.Done, err error) {
	err = c.do(ctx, http.MethodPost, "tokens", &request{Tokens: &o, Token: token}, &d)
	return d, err
}

// Await has the run change who waits for the reply to a prompt, and reports whether somebody
// did. With an error nobody is to rely on it.
func (c *Client) Await(ctx context.Context, o awaited.Order) (known bool, err error) {
	err = c.do(ctx, http.MethodPost, "await", &request{Await: &o}, &known)
	return known, err
}

// Withdraw has the run end what agents ask for that nobody needs any more.
func (c *Client) Withdraw(ctx context.Context, w consent.Withdrawal) error {
	return c.do(ctx, http.MethodPost, "withdraw-approvals", &request{Withdraw: &w}, &status.Run{})
}

// Answered has the run write down what the queue of an agent was told.
func (c *Client) Answered(ctx context.Context, agent, text string) error {
	return c.do(ctx, http.MethodPost, "answered", &request{Agents: []string{agent}, Text: text}, &status.Run{})
}

// Later makes the run look for prompts that are to be sent at a time.
func (c *Client) Later(ctx context.Context) error {
	var run status.Run
	return c.do(ctx, http.MethodPost, "later", &request{}, &run)
}

// Reload makes the run load its fleet's file again, and returns what that changes.
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
	begin := time.Now()
	ctx, stop := c.bound(ctx, what)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, method, "http://heartbeat/v1/"+what, &body)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	switch {
	case err == nil:
		defer res.Body.Close()
		err = c.understand(res, what, answer)
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED):
		return ErrNotRunning
	case !cutOff(err):
		err = fmt.Errorf("cannot reach the running scheduler: %w", err)
	}
	if err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return noAnswer(int(c.pid.Load()), begin)
	}
	if cutOff(err) {
		return &EndedError{int(c.pid.Load()), Answers(c.dir), what, looks[what]}
	}
	return err
}

// long reports whether a request takes long: it runs commands, loads files, or waits for
// the end of sessions.
func long(what string) bool { return what == "trigger" || what == "reload" || what == "cancel" }

// bound gives up a request when the scheduler does not answer: quickly if it takes
// only a moment, otherwise when the scheduler does not even say that it lives.
func (c *Client) bound(ctx context.Context, what string) (context.Context, context.CancelFunc) {
	mention := func() {}
	if c.Slow != nil {
		mention = sync.OnceFunc(c.Slow)
	}
	if !long(what) {
		ctx, cancel := context.WithTimeout(ctx, c.wait)
		late := time.AfterFunc(c.slow, mention)
		return ctx, func() { late.Stop(); cancel() }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for c.lives(ctx, mention) {
			select {
			case <-ctx.Done():
			case <-time.After(c.wait):
			}
		}
		cancel(context.DeadlineExceeded)
	}()
	return ctx, func() { cancel(nil) }
}

// lives reports whether somebody answers at all; an earlier version does not know
// the question, but answers too. It calls mention if that takes long.
func (c *Client) lives(ctx context.Context, mention func()) bool {
	defer time.AfterFunc(c.slow, mention).Stop()
	ctx, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://heartbeat/v1/alive", http.NoBody)
	if err != nil {
		return false
	}
	res, err := c.http.Do(req)
	if err != nil {
		// If nobody is there, the request itself says so.
		return !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	}
	return res.Body.Close() == nil
}

// understand reads the answer to a request.
func (c *Client) understand(res *http.Response, what string, answer any) error {
	in := json.NewDecoder(io.LimitReader(res.Body, maxBody))
	other := &OtherError{PID: int(c.pid.Load()), What: what}
	if res.StatusCode != http.StatusOK {
		var p problem
		if err := in.Decode(&p); err != nil || p.Error == "" {
			other.cause = errors.New(res.Status)
			return other
		}
		return &Error{p.Error, p.Hint, p.Exit}
	}
	if err := in.Decode(answer); err != nil {
		other.cause = err
		return other
	}
	return nil
}
