package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"heartbeat/hook/flock"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/status"
	"heartbeat/ptyrun/lobby"
	"heartbeat/ptyrun/peer"
)

// retryEvery is how often a run checks whether its socket is there.
const retryEvery = time.Second

// readPatience is how long a client may take to send its request: connections of
// those that do not use descriptors that sessions need.
const readPatience = 10 * time.Second

// room is how many processes may be connected at once. Who sends nothing makes room.
var room = lobby.Room{Served: 128, Waiting: 64}

// firesAtOnce is how many fires sessions of agents may have asked for at a time: a gate or a
// poll may take a minute, and a person finds a place meanwhile.
const firesAtOnce = 16

// ErrGone means that the socket no longer exists, or another one is in its place.
var ErrGone = errors.New("the control socket is gone")

// Serve answers for a running scheduler on the socket in dir until ctx ends, and
// then removes the socket. After ErrGone it has to be called again.
func Serve(ctx context.Context, dir string, run status.Run, s Scheduler, log *slog.Logger) error {
	unlock, err := flock.TryLock(lockPath(dir))
	if err != nil {
		return fmt.Errorf("cannot serve the control socket: %w", err)
	}
	defer func() { _ = unlock() }()
	l, err := listen(socketPath(dir))
	if err != nil {
		return err
	}
	here, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	go lookAfter(here, l, gone)
	strangers := func(err error) { log.Warn("refused a connection to the control socket", "err", err) }
	if err := answer(here, peer.Listener{Listener: l, Refused: strangers}, run, s, log); err != nil {
		return err
	}
	if errors.Is(context.Cause(here), ErrGone) {
		return ErrGone
	}
	return nil
}

// lookAfter signals when the socket is no longer the one that was made: logging out
// removes the folder of the user's runtime files, and other programs clean up.
func lookAfter(ctx context.Context, l *net.UnixListener, gone context.CancelCauseFunc) {
	made, err := os.Lstat(l.Addr().String())
	ticker := time.NewTicker(retryEvery)
	defer ticker.Stop()
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var now os.FileInfo
		if now, err = os.Lstat(l.Addr().String()); err == nil && !os.SameFile(made, now) {
			err = fs.ErrNotExist
		}
	}
	l.SetUnlinkOnClose(false) // what is there now belongs to another
	gone(ErrGone)
}

// answer answers requests on the socket until ctx ends.
func answer(ctx context.Context, l net.Listener, run status.Run, s Scheduler, log *slog.Logger) error {
	server := &http.Server{
		Handler: handler(run, s, log), ReadHeaderTimeout: readPatience, IdleTimeout: readPatience, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	lobby.Attend(server)
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(last) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(lobby.Open(l, room))
	if !stop() {
		<-ended // Serve returns before the last answers are written, and our process may end then
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve the control socket: %w", err)
	}
	return nil
}

// listen makes the socket, and replaces what a run that was killed left. The caller
// holds its lock.
func listen(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot remove a stale control socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("cannot make the control socket: %w", err)
	}
	// The directory is 0700, so nobody else connected in between.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make the control socket private: %w", err), l.Close())
	}
	return l, nil
}

// route is something that can be asked for.
type route struct {
	path string
	// person is what it does, where only a person may have it done; "": a session of an
	// agent may, too.
	person string
	// slow: it may take long, and sessions have firesAtOnce done at a time.
	slow bool
	do   func(ctx context.Context, s Scheduler, q request) (any, error)
}

// routes are all that change something.
var routes = []route{
	{path: "pause", do: func(ctx context.Context, s Scheduler, q request) (any, error) {
		return s.PauseBy(asker(ctx, s), q.For, q.Agents...)
	}},
	{path: "resume", person: "resume an agent", do: func(_ context.Context, s Scheduler, q request) (any, error) {
		return s.Resume(q.Agents...)
	}},
	{path: "pause-trigger", do: func(ctx context.Context, s Scheduler, q request) (any, error) {
		return ofTrigger(q, func(agent string) ([]status.AgentState, error) {
			return s.PauseTrigger(asker(ctx, s), q.For, agent, q.Trigger)
		})
	}},
	{path: "resume-trigger", person: "resume a trigger", do: func(_ context.Context, s Scheduler, q request) (any, error) {
		return ofTrigger(q, func(agent string) ([]status.AgentState, error) { return s.ResumeTrigger(agent, q.Trigger) })
	}},
	{path: "stop", person: "stop the scheduler", do: func(_ context.Context, s Scheduler, q request) (any, error) {
		s.Stop(q.Now)
		return nil, nil
	}},
	{path: "restart", person: "restart a session", do: func(_ context.Context, s Scheduler, q request) (any, error) {
		return s.Restart(q.Now, q.Agents...)
	}},
	{path: "cancel", person: "cancel a turn", do: func(ctx context.Context, s Scheduler, q request) (any, error) {
		if len(q.Agents) == 0 {
			return nil, errors.New("cannot cancel a turn: name the agent")
		}
		return s.Cancel(ctx, q.Entry, q.Again, q.Agents...)
	}},
	{path: "reload", person: "load the configuration", do: func(_ context.Context, s Scheduler, _ request) (any, error) {
		return s.Reload()
	}},
	{path: "answer-approval", person: "answer a request for an approval", do: answers},
	{path: "withdraw-approvals", person: "withdraw requests for an approval", do: func(ctx context.Context, s Scheduler, q request) (any, error) {
		if q.Withdraw == nil {
			return nil, errors.New("cannot withdraw requests for an approval: the request does not say which")
		}
		return nil, s.WithdrawApprovals(ctx, *q.Withdraw)
	}},
	{path: "tokens", person: "change who may see the page", do: func(ctx context.Context, s Scheduler, q request) (any, error) {
		if q.Tokens == nil {
			return nil, errors.New("cannot change who may see the page: the request does not say how")
		}
		return s.Tokens(ctx, *q.Tokens, q.Token)
	}},
	{path: "await", do: func(ctx context.Context, s Scheduler, q request) (any, error) {
		if q.Await == nil {
			return nil, errors.New("cannot note who waits for the reply: the request does not say who")
		}
		o := *q.Await
		o.By = waiter(ctx, s)
		return s.Await(ctx, o)
	}},
	{path: "answered", person: "answer for a queue", do: func(_ context.Context, s Scheduler, q request) (any, error) {
		for _, agent := range q.Agents {
			s.NoteAnswered(agent, foreign.Text(q.Text))
		}
		return nil, nil
	}},
	{path: "later", do: func(_ context.Context, s Scheduler, _ request) (any, error) {
		s.LookLater()
		return nil, nil
	}},
	{path: "trigger", slow: true, do: func(ctx context.Context, s Scheduler, q request) (any, error) {
		if len(q.Agents) != 1 {
			return nil, errors.New("cannot fire: name one agent")
		}
		var triggers []string
		if q.Trigger != "" {
			triggers = []string{q.Trigger}
		}
		return s.Trigger(ctx, q.Agents[0], triggers...)
	}},
}

// ofTrigger does what is about one trigger of one agent.
func ofTrigger(q request, do func(agent string) ([]status.AgentState, error)) (any, error) {
	if len(q.Agents) != 1 || q.Trigger == "" {
		return nil, errors.New("cannot tell which trigger is meant: name it and its agent")
	}
	return do(q.Agents[0])
}

func answers(ctx context.Context, s Scheduler, q request) (any, error) {
	if q.Approval == nil || q.Approval.State != approval.Approved && q.Approval.State != approval.Rejected {
		return nil, errors.New("cannot answer a request for an approval: say yes or no")
	}
	by, err := s.MayAnswer(q.Approval.ID, q.Token)
	if err != nil {
		return nil, fmt.Errorf("cannot answer %q: %w", q.Approval.ID, err)
	}
	return s.AnswerApproval(ctx, q.Approval.ID, approval.ByPerson(q.Approval.State, q.Approval.Note.Raw()).Named(by))
}

func handler(run status.Run, s Scheduler, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/alive", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, run) })
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		now := run
		now.Stopping, now.Unloaded = s.Stopping(), s.Unloaded()
		reply(w, http.StatusOK, status.Live{Run: now, Doors: s.Doors(), Store: s.StoreTroubles(), Agents: s.Snapshot()})
	})
	fires := make(lobby.Turns, firesAtOnce)
	for _, r := range routes {
		mux.HandleFunc("POST /v1/"+r.path, act(log, func(ctx context.Context, q request) (any, error) {
			if err := r.allows(ctx, s); err != nil {
				return nil, err
			}
			if r.slow && asker(ctx, s) != "" {
				end, err := fires.Take(ctx)
				if err != nil {
					return nil, err
				}
				defer end()
			}
			done, err := r.do(ctx, s, q)
			if done == nil {
				done = run
			}
			return done, err
		}))
	}
	return mux
}

// allows refuses a session of an agent what only a person may have done.
func (r route) allows(ctx context.Context, s Scheduler) error {
	if r.person == "" {
		return nil
	}
	if err := peer.Person(ctx, s.CheckPerson); err != nil {
		return fmt.Errorf("cannot %s: %w", r.person, err)
	}
	return nil
}

// asker returns the agent whose session makes the request, or "" for a person.
func asker(ctx context.Context, s Scheduler) string {
	if pid := peer.PID(ctx); pid > 0 {
		return s.SessionOf(pid)
	}
	return ""
}

// waiter is who asks for a wait, as awaited.Order.By says it.
func waiter(ctx context.Context, s Scheduler) string {
	agent := asker(ctx, s)
	if agent == "" && peer.Person(ctx, s.CheckPerson) != nil {
		return awaited.Nobody
	}
	return agent
}

// act answers a request that changes something. A request whose client is gone is
// not carried out: this process may have been stopped since, and the client was
// told that nothing was done.
func act(log *slog.Logger, do func(context.Context, request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := read(w, r)
		if err != nil {
			reply(w, http.StatusBadRequest, problem{Error: "cannot read the request: " + err.Error()})
			return
		}
		if conn := peer.From(r.Context()); conn != nil && hungUp(conn) {
			log.Warn("not carried out: who asked for it has gone", "request", r.URL.Path, "agents", q.Agents)
			return
		}
		done, err := do(r.Context(), q)
		if err != nil {
			reply(w, statusOf(err), problem{Error: err.Error(), Hint: orchestrator.HintOf(err), Exit: exitOf(err)})
			return
		}
		reply(w, http.StatusOK, done)
	}
}

// read reads a request. An unknown field is an error: without it the request would
// mean all agents.
func read(w http.ResponseWriter, r *http.Request) (q request, err error) {
	conn := http.NewResponseController(w)
	if err := conn.SetReadDeadline(time.Now().Add(readPatience)); err != nil {
		return q, err
	}
	in := json.NewDecoder(io.LimitReader(r.Body, maxRequest))
	in.DisallowUnknownFields()
	if err := in.Decode(&q); err != nil {
		return q, err
	}
	return q, conn.SetReadDeadline(time.Time{}) // the request itself may take longer
}

// hungUp reports whether the other end of a connection is closed. The server itself
// may be reading from it, so this only peeks.
func hungUp(conn net.Conn) bool {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return true
	}
	closed := false
	err = control.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		closed = n == 0 && err == nil || errors.Is(err, syscall.ECONNRESET)
	})
	return closed || err != nil
}

func statusOf(err error) int {
	if _, ok := errors.AsType[*orchestrator.UnknownAgentError](err); ok {
		return http.StatusNotFound
	}
	if _, ok := errors.AsType[*firing.UnknownTriggerError](err); ok {
		return http.StatusNotFound
	}
	return http.StatusConflict
}

func exitOf(err error) int {
	var coder interface {
		error
		ExitCode() int
	}
	if errors.As(err, &coder) {
		return coder.ExitCode()
	}
	return 0
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}
