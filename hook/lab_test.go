package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/hook/client"
	"heartbeat/hook/flock"
	"heartbeat/hook/handover"
	"heartbeat/hook/process"
	"heartbeat/internal/testbed"
	"heartbeat/queue"
	"heartbeat/queue/line"
	"heartbeat/queue/queuetest"
	"heartbeat/queue/wire"
)

// self names this process.
func self() Process { return process.Of(os.Getpid()) }

// built builds heartbeat-stop once, with the crash points.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "heartbeat-stop-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "heartbeat-stop")
	return path, testbed.Build(path, "heartbeat/cmd/heartbeat-stop", "-tags=heartbeat_crash")
})

func TestMain(m *testing.M) {
	os.Exit(testbed.Run(m)) // with its temporary folder goes what was built
}

func program(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// lab is an agent's folder with a live session of ours: this process is its
// shim and its client.
type lab struct {
	t          testing.TB
	live       *Live
	caller     atomic.Pointer[Process] // the client whose hooks they are; an answer may be late
	over       sync.Map                // :: pid of a hook whose call is over for the shim → true
	called     sync.Map                // :: pid of a hook that asks or has asked → true
	home       string
	inbox      string
	transcript string
	env        []string
	release    func() error // of the session lock
	queue      queuetest.Queue
	stopped    sync.Mutex             // held: the scheduler stands still
	broken     atomic.Pointer[string] // why the queue can do nothing; nil: it can
}

func newLab(t testing.TB, change ...func(*Record)) *lab {
	t.Helper()
	home := filepath.Join(t.TempDir(), ".heartbeat")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, home: home, inbox: filepath.Join(home, "inbox.jsonl"), transcript: filepath.Join(home, "..", "transcript.jsonl")}
	release, err := flock.TryLock(sessionLock(l.inbox))
	if err != nil {
		t.Fatal(err)
	}
	l.release = sync.OnceValue(release)
	t.Cleanup(func() { l.release() })
	l.isCalledBy(self())
	l.env = []string{
		"PATH=" + os.Getenv("PATH"), ask.EnvSession + "=t0ken", ask.EnvSocket + "=" + socket(t), ask.EnvHome + "=" + home,
		"CLAUDE_PID=" + strconv.Itoa(os.Getpid()),
	}
	r := &Record{
		Version: 1,
		Terms: Terms{
			Agent: "a", Session: "S", Inbox: l.inbox, Policy: Policy{
				Mode: Drain, Deliver: DeliverStderr, Background: BackgroundWait, MaxContinuations: 20,
				OnIdle: IdleRelease, IdleInterval: time.Minute,
			},
		},
		TokenHash: TokenHash("t0ken"),
		Shim:      self(),
		StartedAt: time.Now(),
		Phase:     Starting,
		Since:     time.Now(),
	}
	for _, c := range change {
		c(r)
	}
	l.live = NewLive(r, home, "t0ken", l.scheduler())
	if err := l.live.save(r); err != nil {
		t.Fatal(err)
	}
	l.serve(l.getenv(ask.EnvSocket))
	return l
}

// scheduler answers what the session asks, in the order of the requests.
func (l *lab) scheduler() func(wire.Request) {
	requests := make(chan wire.Request, 100)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case r := <-requests:
				l.stopped.Lock() // where a test has it stand still
				a := wire.Answer{N: r.N}
				if why := l.broken.Load(); why != nil {
					a.Refuse(errors.New(*why))
				} else {
					a = l.queue.Carry(l.live.Record().Session, r)
				}
				l.stopped.Unlock()
				l.live.Answered(a)
			case <-over:
				return
			}
		}
	}()
	l.t.Cleanup(func() {
		close(over)
		<-ended
	})
	return func(r wire.Request) {
		select {
		case requests <- r:
		case <-over:
		}
	}
}

// socket is a name for a session's socket: one in t.TempDir is too long.
func socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "hooks.sock")
}

// serve answers the session's hooks, as its shim does.
func (l *lab) serve(path string) {
	l.t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	l.t.Cleanup(func() {
		listener.Close()
		cancel()
		all.Wait()
	})
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				by := processAt(conn)
				l.live.Answer(ctx, conn, func() (Caller, error) {
					l.called.Store(by.PID, true)
					return Caller{Client: *l.caller.Load(), Hook: by}, nil
				})
				l.over.Store(by.PID, true)
			})
		}
	})
}

// isCalledBy says whose hooks they are from now on.
func (l *lab) isCalledBy(p Process) { l.caller.Store(&p) }

// getenv reads a lab's environment: the last of a name counts.
func (l *lab) getenv(name string) (value string) {
	for _, kv := range l.env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// sessionLock is the lock that a live session's shim holds.
func sessionLock(inboxPath string) string {
	return filepath.Join(filepath.Dir(inboxPath), ".session-lock")
}

func persistent(r *Record) { r.Policy.Mode = Persist }

// result is what a hook call showed.
type result struct {
	status         int // -1: killed by a signal
	stdout, stderr string
	took           time.Duration
}

// command is a call of the built binary.
func (l *lab) command(args []string, stdin string) *exec.Cmd {
	cmd := exec.Command(program(l.t), args...)
	cmd.Env, cmd.Dir = l.env, filepath.Dir(l.home)
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

func (l *lab) run(cmd *exec.Cmd) result {
	l.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Fatal(err)
	}
	return result{heard(cmd), stdout.String(), stderr.String(), time.Since(begin)}
}

// heard is the exit status that a client hears of: the shell of a generated entry says 2 for
// ask.StatusPrompt.
func heard(cmd *exec.Cmd) int {
	if status := cmd.ProcessState.ExitCode(); status != ask.StatusPrompt {
		return status
	}
	return client.StatusPrompt
}

// fields are a payload's fields beside the common ones.
type fields map[string]any

func (l *lab) payload(event string, more fields) string {
	p := fields{
		"session_id": "C", "transcript_path": l.transcript, "cwd": "/", "prompt_id": "P1",
		"permission_mode": "dontAsk", "hook_event_name": event,
	}
	maps.Copy(p, more)
	data, err := json.Marshal(p)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(data)
}

// event calls the hook as the client does.
func (l *lab) event(event string, more fields) result {
	l.t.Helper()
	return l.run(l.command([]string{"hook"}, l.payload(event, more)))
}

// quietly is an event that must say nothing.
func (l *lab) quietly(event string, more fields) {
	l.t.Helper()
	if r := l.event(event, more); r.status != 0 || r.stdout != "" || r.stderr != "" {
		l.t.Fatalf("%s: %+v, want silence", event, r)
	}
}

// handsOver is a Stop that must hand text over.
func (l *lab) handsOver(text string, more fields) {
	l.t.Helper()
	if r := l.event(client.Stop, more); r.status != 2 || r.stdout != "" || r.stderr != text {
		l.t.Fatalf("Stop: %+v, want %q\n%s", r, text, l.log())
	}
}

func (l *lab) append(lines ...string) {
	l.t.Helper()
	for _, text := range lines {
		d := line.Decode([]byte(text), false)
		if d.Kind != line.Text {
			l.t.Fatalf("%q is no prompt", text)
		}
		l.queue.Add(time.Now(), queue.Letter{ID: d.ID, Source: d.Source, Prompt: d.Prompt, Checked: d.Checked})
	}
	l.live.Queued()
}

func (l *lab) record() *Record { return l.live.Record().clone() }

// change changes the record as the shim does.
func (l *lab) change(f func(*Record)) {
	l.t.Helper()
	l.inSession(func(s *Session) { f(s.Record) })
}

func (l *lab) inSession(f func(*Session)) {
	l.t.Helper()
	session, err := l.live.Enter(l.t.Context(), false)
	if err != nil {
		l.t.Fatal(err)
	}
	defer session.Leave()
	f(session)
	if err := session.Save(); err != nil {
		l.t.Fatal(err)
	}
}

// moved has the session see what was changed in the queue, as the scheduler does.
func (l *lab) moved() {
	l.t.Helper()
	l.live.Moved()
	if err := l.live.asks.settle(l.t.Context(), testbed.Patience); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) flight() *queuetest.Item { return l.queue.InFlight() }

// offerFirst hands over the next entry as the shim does with the kick-off.
func (l *lab) offerFirst() *queuetest.Item {
	l.t.Helper()
	to := queue.Handover{Via: queue.ViaKickoff, Session: "S", At: time.Now()}
	a := l.queue.Carry("S", wire.Request{Steps: []wire.Step{{Do: wire.Offer, To: to, Checked: l.live.Record().Policy.Checked}}})
	if a.Err() != nil || a.Entry == nil {
		l.t.Fatalf("%+v", a)
	}
	l.moved()
	flight := l.flight()
	l.inSession(func(s *Session) { s.Works(&flight.Given) })
	return flight
}

// recovers deals with what is in flight as if its session were gone, and returns what it is then.
func (l *lab) recovers(i queue.Interruption) (outcome queue.Outcome, after queuetest.Item) {
	l.t.Helper()
	now := l.flight()
	if now == nil {
		return queue.NothingToRecover, after
	}
	i.Arrived, i.Now = handover.Arrived(&now.Given), time.Now()
	_ = l.queue.Change(now.Delivery, func(e queue.Entry) (queue.Entry, error) {
		e, outcome = e.Recover(i, 100)
		return e, nil
	})
	for _, item := range l.queue.Items() {
		if item.Delivery == now.Delivery {
			after = item
		}
	}
	l.moved()
	return outcome, after
}

// state is the state of the entry in flight, or "".
func (l *lab) state() queue.State {
	if f := l.flight(); f != nil {
		return f.State
	}
	return ""
}

// replies are those of what is done, in the order in which it was.
func (l *lab) replies() (replies []string) {
	done := slices.DeleteFunc(l.queue.Items(), func(i queuetest.Item) bool { return i.State != queue.Done })
	slices.SortStableFunc(done, func(a, b queuetest.Item) int { return a.Ended.Compare(b.Ended) })
	for _, i := range done {
		replies = append(replies, i.Reply.Text)
	}
	return replies
}

func (l *lab) read(name string) string {
	data, err := os.ReadFile(filepath.Join(l.home, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		l.t.Fatal(err)
	}
	return string(data)
}

func (l *lab) log() string { return l.read("hook.log") }

// files is a picture of the agent's folder, to see that nothing was touched.
func (l *lab) files() string {
	l.t.Helper()
	var b strings.Builder
	err := filepath.Walk(filepath.Dir(l.home), func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %d %s\n", path, info.Mode(), info.Size(), info.ModTime())
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return b.String()
}

// until polls, because processes are real.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !testbed.Await(testbed.Patience, ok) {
		t.Fatalf("not within %v: %s", testbed.Patience, what)
	}
}
