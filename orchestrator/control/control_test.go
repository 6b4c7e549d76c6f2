package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// fleet stands in for a scheduler and notes what it is asked.
type fleet struct {
	asked []string
	// nobody is what is said of who asks, if that is no person.
	nobody error
	// session is the agent whose session asks, "": none.
	session string
}

func (f *fleet) Stopping() *status.Stopping { return nil }
func (f *fleet) LookLater()                 {}

func (f *fleet) NoteAnswered(agent string, text foreign.Text) {
	f.asked = append(f.asked, "note "+agent+": "+text.String())
}
func (f *fleet) Doors() []status.Door { return nil }

func (f *fleet) StoreTroubles() []store.Trouble { return nil }

func (*fleet) Unloaded() *status.Unloaded { return nil }

func (f *fleet) Snapshot() []status.AgentState {
	return []status.AgentState{{Agent: "a", State: status.Running}}
}

func (f *fleet) SessionOf(int) string { return f.session }

func (f *fleet) CheckPerson(int) error { return f.nobody }

func (f *fleet) MayAnswer(_, token string) (string, error) { return token, nil }

func (f *fleet) Await(_ context.Context, o awaited.Order) (bool, error) {
	f.asked = append(f.asked, "await by "+o.By)
	return true, nil
}

func (f *fleet) Tokens(_ context.Context, o access.Order, token string) (access.Done, error) {
	return access.Done{Secret: o.Do + token}, nil
}

func (f *fleet) AnswerApproval(_ context.Context, id string, a approval.Answer) (approval.Request, error) {
	f.asked = append(f.asked, fmt.Sprintf("answer %s %s %s %s", id, a.State, a.By, a.Note))
	return approval.Request{ID: id, State: a.State}, nil
}

func (f *fleet) WithdrawApprovals(_ context.Context, w consent.Withdrawal) error {
	f.asked = append(f.asked, "withdraw "+strings.Join(w.Agents, ",")+" "+w.Why)
	return nil
}

func (f *fleet) PauseBy(_ string, _ time.Duration, agents ...string) ([]status.AgentState, error) {
	f.asked = append(f.asked, "pause "+strings.Join(agents, ","))
	if slices.Contains(agents, "nobody") {
		return nil, &orchestrator.UnknownAgentError{Agent: "nobody"}
	}
	return f.Snapshot(), nil
}

func (f *fleet) Resume(agents ...string) ([]status.AgentState, error) {
	f.asked = append(f.asked, "resume "+strings.Join(agents, ","))
	return f.Snapshot(), nil
}

func (f *fleet) PauseTrigger(_ string, _ time.Duration, agent, trigger string) ([]status.AgentState, error) {
	f.asked = append(f.asked, "pause "+agent+" "+trigger)
	return f.Snapshot(), nil
}

func (f *fleet) ResumeTrigger(agent, trigger string) ([]status.AgentState, error) {
	f.asked = append(f.asked, "resume "+agent+" "+trigger)
	return f.Snapshot(), nil
}

func (f *fleet) Restart(now bool, agents ...string) ([]status.AgentState, error) {
	f.asked = append(f.asked, fmt.Sprintf("restart %t %s", now, strings.Join(agents, ",")))
	return f.Snapshot(), nil
}

func (f *fleet) Cancel(_ context.Context, only string, again bool, agents ...string) ([]orchestrator.Cancelled, error) {
	f.asked = append(f.asked, fmt.Sprintf("cancel %s %t %s", only, again, strings.Join(agents, ",")))
	return []orchestrator.Cancelled{{Agent: "a", Outcome: orchestrator.CancelDead}}, nil
}

func (f *fleet) Trigger(_ context.Context, agent string, triggers ...string) ([]firing.Fired, error) {
	f.asked = append(f.asked, "trigger "+agent+" "+strings.Join(triggers, ","))
	return []firing.Fired{{Trigger: "cron-1", Prompts: 1, Queued: 1}}, nil
}

func (f *fleet) Stop(now bool) { f.asked = append(f.asked, fmt.Sprintf("stop %t", now)) }

func (f *fleet) Reload() (*orchestrator.Plan, error) {
	f.asked = append(f.asked, "reload")
	return &orchestrator.Plan{Added: []string{"b"}}, nil
}

// folder is short: a socket's path may have 104 bytes.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hbctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// serve runs a server until stop is called, and waits until it answers.
func serve(t *testing.T, dir string, f Scheduler, pid int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, dir, status.Run{PID: pid, Fleet: "fleet"}, f, slog.New(slog.DiscardHandler))
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func await(t *testing.T, dir string, pid int) *Client {
	t.Helper()
	c := NewClient(dir)
	deadline := time.Now().Add(testbed.Patience)
	for {
		s, err := c.Status(t.Context())
		if err == nil && s.PID == pid {
			return c
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer of %d: %+v, %v", pid, s, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	dir, f := folder(t), &fleet{}
	stop := serve(t, dir, f, 1)
	c := await(t, dir, 1)
	if info, err := os.Stat(socketPath(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode: %v, %v", info.Mode(), err)
	}
	s, err := c.Status(t.Context())
	if err != nil || s.Fleet != "fleet" || len(s.Agents) != 1 || s.Agents[0].State != status.Running {
		t.Errorf("Status = %+v, %v", s, err)
	}
	_, errPause := c.Pause(t.Context(), 0, "a", "b")
	_, errResume := c.Resume(t.Context())
	fired, errTrigger := c.Trigger(t.Context(), "a", "cron-1")
	if err := errors.Join(errPause, errResume, errTrigger); err != nil || len(fired) != 1 || fired[0].Queued != 1 {
		t.Errorf("fired %+v, %v", fired, err)
	}
	_, errPause = c.PauseTrigger(t.Context(), time.Hour, "a", "cron-1")
	_, errResume = c.ResumeTrigger(t.Context(), "a", "cron-1")
	if err := errors.Join(errPause, errResume); err != nil {
		t.Error(err)
	}
	if plan, err := c.Reload(t.Context()); err != nil || !slices.Equal(plan.Added, []string{"b"}) {
		t.Errorf("Reload = %+v, %v", plan, err)
	}
	states, errRestart := c.Restart(t.Context(), true, "a")
	cancelled, errCancel := c.Cancel(t.Context(), "x", true, "a")
	if err := errors.Join(errRestart, errCancel); err != nil || len(states) != 1 || len(cancelled) != 1 || cancelled[0].Outcome != orchestrator.CancelDead {
		t.Errorf("restarted %+v, cancelled %+v, %v", states, cancelled, err)
	}
	if _, err := c.Cancel(t.Context(), "", false); err == nil {
		t.Error("all agents' turns were cancelled")
	}
	_, err = c.Pause(t.Context(), 0, "nobody")
	var refused *Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Message, `cannot find agent "nobody"`) || refused.Hint() == "" {
		t.Errorf("Pause of nobody: %v", err)
	}
	stop()
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the end: %v, want ErrNotRunning", err)
	}
	want := []string{"pause a,b", "resume ", "trigger a cron-1", "pause a cron-1", "resume a cron-1", "reload", "restart true a", "cancel x true a", "pause nobody"}
	if !slices.Equal(f.asked, want) {
		t.Errorf("asked %q, want %q", f.asked, want)
	}
}

// A run that was killed leaves its socket; it must neither be in the way nor
// be taken for a running one.
func TestAStaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketPath(dir), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient(dir).Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("a stale socket: %v, want ErrNotRunning", err)
	}
	serve(t, dir, &fleet{}, 1)
	await(t, dir, 1)
}

func TestNobodyIsThere(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{folder(t), filepath.Join(folder(t), "none")} {
		if _, err := NewClient(dir).Trigger(t.Context(), "a", ""); !errors.Is(err, ErrNotRunning) {
			t.Errorf("Trigger: %v, want ErrNotRunning", err)
		}
	}
}

// TestARequestThatIsNotUnderstoodDoesNothing: what names agents by a field
// that the server does not know paused all of them.
func TestARequestThatIsNotUnderstoodDoesNothing(t *testing.T) {
	t.Parallel()
	dir, f := folder(t), &fleet{}
	stop := serve(t, dir, f, 1)
	c := await(t, dir, 1)
	for _, body := range []string{
		"", "{", `{"agent":["a"]}`, `{"agents":"a"}`, `["a"]`, `{"agents":["` + strings.Repeat("x", maxRequest) + `"]}`,
	} {
		res, err := c.http.Post("http://heartbeat/v1/pause", "application/json", strings.NewReader(body))
		if err != nil {
			t.Errorf("%.20q: %v", body, err)
			continue
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusBadRequest {
			t.Errorf("%.20q: %s, %v", body, res.Status, err)
		}
	}
	stop()
	if len(f.asked) > 0 {
		t.Errorf("asked %q", f.asked)
	}
}

// TestARequestIsNotCarriedOutWhenItsClientHasGone: a scheduler that was
// stopped (SIGSTOP) carried out a pause later whose client had been killed.
func TestARequestIsNotCarriedOutWhenItsClientHasGone(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	// Who asks connects and goes before the server accepts, as with a stopped
	// one: the kernel keeps the whole request for it.
	l, err := listen(socketPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(body string) net.Conn {
		conn, err := net.Dial("unix", socketPath(dir))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "POST /v1/pause HTTP/1.1\r\nHost: heartbeat\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	if err := ask(`{"agents":["gone"]}`).Close(); err != nil {
		t.Fatal(err)
	}
	patient := ask(`{"agents":["patient"]}`)
	defer patient.Close()
	f := &fleet{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- answer(ctx, l, status.Run{}, f, slog.New(slog.DiscardHandler)) }()
	if _, err := http.ReadResponse(bufio.NewReader(patient), nil); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if want := []string{"pause patient"}; !slices.Equal(f.asked, want) {
		t.Errorf("asked %q, want %q", f.asked, want)
	}
}

// TestASchedulerThatDoesNotAnswerIsGivenUp: a pause of a stopped scheduler
// hung for good.
func TestASchedulerThatDoesNotAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	l, err := listen(socketPath(dir)) // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := NewClient(dir)
	c.wait, c.slow = 100*time.Millisecond, 10*time.Millisecond
	var mentioned atomic.Int32
	c.Slow = func() { mentioned.Add(1) }
	for what, ask := range map[string]func() error{
		"pause":   func() error { _, err := c.Pause(t.Context(), 0); return err },
		"trigger": func() error { _, err := c.Trigger(t.Context(), "a", ""); return err },
		"reload":  func() error { _, err := c.Reload(t.Context()); return err },
		"cancel":  func() error { _, err := c.Cancel(t.Context(), "", false, "a"); return err },
	} {
		mentioned.Store(0)
		err := ask()
		if mentioned.Load() != 1 {
			t.Errorf("%s: mentioned %d times, want once", what, mentioned.Load())
		}
		var none *NoAnswerError
		if !errors.As(err, &none) || !strings.Contains(none.Hint(), "nothing was changed") {
			t.Errorf("%s: %v, want NoAnswerError", what, err)
			continue
		}
		// A process that waits for its disk just then is not one to kill.
		if !strings.Contains(none.Hint(), fmt.Sprintf("kill %d", os.Getpid())) && none.State != "D" {
			t.Errorf("%s: hint %q, want how to end it", what, none.Hint())
		}
		if runtime.GOOS == "linux" && none.PID != os.Getpid() {
			t.Errorf("%s: process %d does not answer, want %d", what, none.PID, os.Getpid())
		}
	}
}

// A trigger whose command takes its time is waited for while the scheduler
// says that it lives.
func TestASlowTriggerIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	f := &slowFleet{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, dir, status.Run{PID: 1}, f, slog.New(slog.DiscardHandler)) }()
	c := await(t, dir, 1)
	for wait := 100 * time.Millisecond; ; wait *= 4 {
		c.wait, c.slow, f.takes = wait, wait, wait*5/2
		var slow atomic.Bool
		c.Slow = func() { slow.Store(true) }
		fired, err := c.Trigger(t.Context(), "a", "")
		if err == nil && len(fired) == 1 && !slow.Load() {
			break
		}
		if wait > 5*time.Second { // less may be too short on a busy machine
			t.Errorf("Trigger = %+v, %v; a scheduler that says that it lives is said not to answer: %t", fired, err, slow.Load())
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// slowFleet takes longer to fire than a client waits for an answer.
type slowFleet struct {
	fleet
	takes time.Duration
}

func (f *slowFleet) Trigger(ctx context.Context, agent string, triggers ...string) ([]firing.Fired, error) {
	time.Sleep(f.takes) // a poll's command
	return f.fleet.Trigger(ctx, agent, triggers...)
}

// TestABusySchedulerIsNotMute: one that needed more than two seconds on a machine with much
// else to do was said not to answer, with a kill to type.
func TestABusySchedulerIsNotMute(t *testing.T) {
	t.Parallel()
	dir, f := folder(t), &busyFleet{takes: 100 * time.Millisecond}
	serve(t, dir, f, 1)
	c := await(t, dir, 1)
	c.halted = time.Millisecond
	if s, err := c.Status(t.Context()); err != nil || s.PID != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// busyFleet takes longer to say what its agents do than it is until its process is looked at.
type busyFleet struct {
	fleet
	takes time.Duration
}

func (f *busyFleet) Snapshot() []status.AgentState {
	time.Sleep(f.takes)
	return f.fleet.Snapshot()
}

// TestWhatSessionsMayAskFor walks all routes: what is not listed here only a person may
// have done.
func TestWhatSessionsMayAskFor(t *testing.T) {
	t.Parallel()
	forSessions := []string{"pause", "pause-trigger", "later", "trigger", "await"}
	for _, path := range forSessions {
		if !slices.ContainsFunc(routes, func(r route) bool { return r.path == path }) {
			t.Errorf("there is no route %s", path)
		}
	}
	dir, f := folder(t), &fleet{nobody: errors.New(`a session of agent "a" asks, and only a person may`)}
	serve(t, dir, f, 1)
	c := await(t, dir, 1)
	for _, r := range routes {
		f.asked = nil
		q := request{Agents: []string{"a"}, Trigger: "cron-1", Approval: &approval.Request{State: approval.Approved}, Await: &awaited.Order{}}
		var answer any
		err := c.do(t.Context(), http.MethodPost, r.path, &q, &answer)
		if may := slices.Contains(forSessions, r.path); may != (err == nil) || !may && (len(f.asked) > 0 || !strings.Contains(err.Error(), "cannot "+r.person+": a session of agent")) {
			t.Errorf("%s: %v, done %q", r.path, err, f.asked)
		}
	}
}

// TestWhoAsksForAWaitIsFoundOut: a session could end a person's.
func TestWhoAsksForAWaitIsFoundOut(t *testing.T) {
	t.Parallel()
	nobody := errors.New("no person")
	for want, f := range map[string]*fleet{"": {}, "a": {session: "a", nobody: nobody}, awaited.Nobody: {nobody: nobody}} {
		dir := folder(t)
		serve(t, dir, f, 1)
		if _, err := await(t, dir, 1).Await(t.Context(), awaited.Order{Ends: true, By: "b"}); err != nil || !slices.Equal(f.asked, []string{"await by " + want}) {
			t.Errorf("%q, want %q: %v", f.asked, want, err)
		}
	}
}
