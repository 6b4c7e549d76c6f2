package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// hookName is the name by which the test binary is a hook: it reports its
// call to the test over a socket and does what the test answers.
const hookName = "hook"

// Call is one call of a hook by the client.
type Call struct {
	At      time.Time `json:"-"`
	Event   string    // as installed
	Tag     string    // tells several hooks of one event apart
	Payload json.RawMessage
	Env     map[string]string
	Cwd     string
	Pid     int
	Parent  int
	Leader  bool // of a session and process group of its own

	gone chan struct{} // closed when the hook's process has ended

	mu    sync.Mutex
	notes []string
	ended time.Time
	gated bool // its reply waits at a gate
}

// Took is how long the hook ran, or 0 while it runs.
func (c *Call) Took() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.IsZero() {
		return 0
	}
	return c.ended.Sub(c.At)
}

// Field returns a field of the payload, or nil.
func (c *Call) Field(name string) any {
	var fields map[string]any
	if json.Unmarshal(c.Payload, &fields) != nil {
		return nil
	}
	return fields[name]
}

// Text returns a field of the payload that is a string, or "".
func (c *Call) Text(name string) string {
	s, _ := c.Field(name).(string)
	return s
}

// Notes returns what the hook told since it was called: "SIGTERM", "answered".
func (c *Call) Notes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.notes)
}

// Reply is what a hook does. The zero value prints nothing and exits 0.
type Reply struct {
	Delay  time.Duration
	Stdout string
	Stderr string
	Exit   int
	Signal syscall.Signal // after the output: ends the hook by this signal
	// Hold keeps stdout and stderr open in a child for so long after the end.
	Hold time.Duration
	// Linger waits so long between the output and the end.
	Linger time.Duration
	// Stubborn ignores SIGTERM.
	Stubborn bool
	// Gate, when not "", holds the reply back until the test opens that gate.
	Gate string
}

// HandOver is the reply that hands a prompt over as heartbeat does.
func HandOver(prompt string) Reply { return Reply{Stderr: prompt, Exit: 2} }

// hookServer takes the calls of a lab's hooks.
type hookServer struct {
	listener net.Listener

	mu     sync.Mutex
	calls  []*Call
	answer func(*Call) Reply
	gates  map[string]chan struct{}
}

// Busy says whether the hook runs and does not wait for the test.
func (c *Call) Busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended.IsZero() && !c.gated
}

func (c *Call) setGated(gated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gated = gated
}

// gate returns the gate of a name; it is open when it is closed.
func (s *hookServer) gate(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[name] == nil {
		s.gates[name] = make(chan struct{})
	}
	return s.gates[name]
}

// newHookServer listens at an abstract address.
func newHookServer(t *testing.T, address string, answer func(*Call) Reply) *hookServer {
	t.Helper()
	l, err := net.Listen("unix", address)
	if err != nil {
		t.Fatalf("cannot listen for hooks: %v", err)
	}
	s := &hookServer{listener: l, answer: answer, gates: map[string]chan struct{}{}}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *hookServer) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return
	}
	c := &Call{gone: make(chan struct{})}
	if json.Unmarshal(line, c) != nil {
		return
	}
	s.mu.Lock()
	c.At = time.Now()
	s.calls = append(s.calls, c)
	answer := s.answer
	s.mu.Unlock()
	go func() {
		defer close(c.gone)
		defer func() {
			c.mu.Lock()
			c.ended = time.Now()
			c.mu.Unlock()
		}()
		for sc := bufio.NewScanner(in); sc.Scan(); {
			c.mu.Lock()
			c.notes = append(c.notes, sc.Text())
			c.mu.Unlock()
		}
	}()
	reply := answer(c)
	if reply.Gate != "" {
		c.setGated(true)
		select {
		case <-s.gate(reply.Gate):
		case <-c.gone:
		}
		c.setGated(false)
	}
	json.NewEncoder(conn).Encode(reply) //nolint:errcheck // the hook may have been killed
	<-c.gone
}

func (s *hookServer) Calls() []*Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// hookMain is the hook's program: hook ADDRESS EVENT TAG.
func hookMain(args []string) int {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	conn, err := net.Dial("unix", args[0])
	if err != nil {
		os.Stderr.WriteString(err.Error())
		return 1
	}
	payload, _ := io.ReadAll(os.Stdin)
	if !json.Valid(payload) {
		payload, _ = json.Marshal(string(payload))
	}
	cwd, _ := os.Getwd()
	session, _ := syscall.Getpgid(0)
	call := &Call{
		Event: args[1], Tag: args[2], Payload: payload, Env: environment(), Cwd: cwd,
		Pid: os.Getpid(), Parent: os.Getppid(), Leader: session == os.Getpid() || session == os.Getppid(),
	}
	if json.NewEncoder(conn).Encode(call) != nil {
		return 1
	}
	reply := make(chan Reply, 1)
	go func() {
		var r Reply
		json.NewDecoder(conn).Decode(&r) //nolint:errcheck // a test that ended: do nothing
		reply <- r
	}()
	select {
	case r := <-reply:
		return r.act(conn, term)
	case <-term:
		return terminated(conn)
	}
}

// act does what the test wants.
func (r Reply) act(conn net.Conn, term <-chan os.Signal) int {
	if r.Stubborn {
		signal.Ignore(syscall.SIGTERM)
	}
	if !pause(r.Delay, term) {
		return terminated(conn)
	}
	if r.Hold > 0 {
		holder := exec.Command("sleep", strconv.FormatFloat(r.Hold.Seconds(), 'f', -1, 64))
		holder.Stdout, holder.Stderr = os.Stdout, os.Stderr
		holder.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if holder.Start() != nil {
			return 1
		}
	}
	os.Stdout.WriteString(r.Stdout)
	os.Stderr.WriteString(r.Stderr)
	io.WriteString(conn, "answered\n")
	if !pause(r.Linger, term) {
		return terminated(conn)
	}
	if r.Signal != 0 {
		syscall.Kill(os.Getpid(), r.Signal)
		select {}
	}
	return r.Exit
}

func pause(d time.Duration, term <-chan os.Signal) bool {
	select {
	case <-time.After(d):
		return true
	case <-term:
		return false
	}
}

// terminated ends as a program does that does not catch SIGTERM, after having
// told the test.
func terminated(conn net.Conn) int {
	io.WriteString(conn, "SIGTERM\n")
	signal.Reset(syscall.SIGTERM)
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	select {}
}

func environment() map[string]string {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	return env
}
