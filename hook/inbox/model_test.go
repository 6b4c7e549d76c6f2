package inbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	form "heartbeat/queue/line"

	"heartbeat/hook/durable"

	"pgregory.net/rapid"
)

var errKilled = errors.New("killed")

// model is what the world outside the queue knows: what was put in, what
// sessions got, how often they were interrupted.
type model struct {
	dir    string
	q      Orphaned
	policy OrphanPolicy
	steps  int // until the process is killed; -1: not at all

	serial    int
	accepted  []string // prompts that were promised, in order
	possible  map[string]bool
	given     map[string]int  // :: prompt → hand-overs that arrived
	started   map[string]int  // :: prompt → hand-overs when a tool had run
	exempt    map[string]bool // lost by a truncation, dropped by policy
	slow      string          // the rest of a line that its writer has not written yet
	hasGot    string          // what the live session works on
	breaks    int             // interruptions and kills
	truncated bool            // since the last interruption
	urgent    map[string]bool // prompts that went into the urgent lane
	seen      map[string]bool // prompts that a killed hook may have handed over
	slowly    string          // the prompt whose writer has not written its newline yet
	disorder  bool            // somebody has truncated a lane, after which entries may stand elsewhere
	last      map[bool]int    // :: lane → serial of the entry that was given last for the first time
}

func newModel(t *rapid.T) *model {
	m := &model{
		dir: scratch(t), steps: -1, possible: map[string]bool{}, given: map[string]int{},
		started: map[string]int{}, exempt: map[string]bool{}, urgent: map[string]bool{}, seen: map[string]bool{}, last: map[bool]int{},
		policy: rapid.SampledFrom([]OrphanPolicy{Retry, DeadLetter, Drop}).Draw(t, "policy"),
	}
	m.open(t)
	t.Cleanup(func() { m.q.Close() })
	return m
}

// open is the next process.
func (m *model) open(t *rapid.T) {
	if m.q.Held != nil {
		m.q.Close()
	}
	q, err := Open(Place{Inbox: filepath.Join(m.dir, "inbox.jsonl"), MaxEntry: 4096})
	if err != nil {
		t.Fatal(err)
	}
	q.tailQuiet = 0
	q.dir.Guard = func(s durable.Step, run func() error) error {
		if m.steps == 0 {
			return errKilled
		}
		if m.steps > 0 {
			m.steps--
		}
		if s.Verb == durable.Sync || s.Verb == durable.SyncFolder {
			return nil
		}
		return run()
	}
	m.q = unlocked(q)
}

// process runs do in a process that may be killed before any of its steps,
// and reports whether it lived.
func (m *model) process(t *rapid.T, do func() error) bool {
	m.steps = rapid.OneOf(rapid.Just(-1), rapid.IntRange(0, 12)).Draw(t, "killed after")
	err := do()
	killed := errors.Is(err, errKilled) || m.steps == 0
	m.steps = -1
	if killed {
		m.breaks++
		m.open(t)
		return false
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return true
}

func (m *model) prompt(t *rapid.T, urgent bool) string {
	m.serial++
	p := fmt.Sprintf("prompt %d %s", m.serial, rapid.StringMatching(`[a-z "{\\é]{0,40}`).Draw(t, "text")+".")
	m.urgent[p] = urgent
	return p
}

// lane is the file of a lane.
func (m *model) lane(urgent bool) string {
	if urgent {
		return filepath.Join(m.dir, UrgentFile)
	}
	return filepath.Join(m.dir, "inbox.jsonl")
}

func anyLane(t *rapid.T) bool { return rapid.Bool().Draw(t, "urgent") }

// Send is heartbeat send, or a trigger.
func (m *model) Send(t *rapid.T) {
	urgent := anyLane(t)
	p := m.prompt(t, urgent)
	m.finishSlow(t)
	m.possible[p] = true
	id := fmt.Sprint("id-", m.serial)
	lived := m.process(t, func() error {
		_, err := m.q.Append(t.Context(), Letter{ID: id, Prompt: p, Idempotent: true, Urgent: urgent})
		return err
	})
	if !lived && rapid.Bool().Draw(t, "sent again") {
		_, err := m.q.Append(t.Context(), Letter{ID: id, Prompt: p, Idempotent: true, Urgent: urgent})
		if err != nil && !errors.Is(err, ErrDuplicate) {
			t.Fatal(err)
		}
		lived = true
	}
	if lived {
		m.accepted = append(m.accepted, p)
	}
}

func (m *model) write(t *rapid.T, urgent bool, s string) {
	f, err := os.OpenFile(m.lane(urgent), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(s); err != nil {
		t.Fatal(err)
	}
}

// Echo is a shell that appends a plain line.
func (m *model) Echo(t *rapid.T) {
	m.finishSlow(t)
	urgent := anyLane(t)
	p := m.prompt(t, urgent)
	m.possible[p] = true
	m.accepted = append(m.accepted, p)
	m.write(t, urgent, p+"\n")
}

// Slow is a writer that has written half of its line.
func (m *model) Slow(t *rapid.T) {
	m.finishSlow(t)
	urgent := anyLane(t)
	p := m.prompt(t, urgent)
	m.possible[p] = true
	m.accepted = append(m.accepted, p)
	at := rapid.IntRange(1, len(p)).Draw(t, "written")
	m.write(t, urgent, p[:at])
	m.slow, m.slowly = p[at:]+"\n", p
}

func (m *model) finishSlow(t *rapid.T) {
	if m.slow != "" {
		m.write(t, m.urgent[m.slowly], m.slow)
		m.slow, m.slowly = "", ""
	}
}

// Blank puts lines into the queue that hold nothing to hand over.
func (m *model) Blank(t *rapid.T) {
	m.finishSlow(t)
	m.serial++ // a rotated inbox of equal lines cannot be told from a copy
	torn := fmt.Sprintf("\"torn %d\n", m.serial)
	cut := fmt.Sprintf("{\"heartbeat\":1,\"id\":\"%d\n", m.serial)
	m.write(t, anyLane(t), rapid.SampledFrom([]string{"\n", " \r\n", "\"\"\n", torn, cut}).Draw(t, "line"))
}

// Tick is a Stop hook: acknowledge, or offer again, or hand the next over.
func (m *model) Tick(t *rapid.T) {
	var handed string
	lived := m.process(t, func() error {
		f, err := m.q.InFlight()
		if err != nil {
			return err
		}
		if f != nil && m.hasGot == "" {
			e, _, err := m.q.Reoffer(Offering{Via: ViaStop})
			if err == nil {
				handed = e.Prompt
			} else if f.State != Offered {
				err = nil // a proof was recorded; the session is gone
			}
			return err
		}
		if f != nil {
			if _, err := m.q.Advance(Taken, ""); err != nil {
				return err
			}
			if _, err := m.q.Acknowledge(Acknowledgement{}); err != nil {
				return err
			}
			m.hasGot = ""
		}
		e, err := m.q.Next()
		if errors.Is(err, ErrEmpty) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := m.q.Offer(e, Offering{Via: ViaStop}); err != nil {
			return err
		}
		handed = e.Prompt
		return nil
	})
	if !lived {
		// The client ignores a hook that was killed. What it worked on is
		// done only if the queue says so; the session is over.
		m.hasGot = ""
		if f, err := m.q.Peek(); err == nil && f != nil {
			m.seen[f.Prompt()] = true
		}
		return
	}
	if handed != "" {
		m.give(t, handed)
	}
}

func (m *model) give(t *rapid.T, p string) {
	if !m.possible[p] {
		t.Fatalf("garbled: %q was handed over", p)
	}
	if n, ok := m.started[p]; ok && m.policy == DeadLetter && m.given[p] >= n {
		t.Fatalf("%q was handed over again after a tool had run", p)
	}
	m.inOrder(t, p)
	m.given[p]++
	m.hasGot = p
}

// inOrder checks an entry that is handed over: what was urgent by then is before it, and
// so is what was accepted earlier in its lane.
func (m *model) inOrder(t *rapid.T, p string) {
	if m.given[p] > 0 || m.seen[p] || m.disorder {
		return
	}
	for _, other := range m.accepted {
		if !m.urgent[p] && m.urgent[other] && m.given[other] == 0 && other != m.slowly && !m.seen[other] && !m.exempt[other] {
			t.Fatalf("%q was handed over before the urgent %q", p, other)
		}
	}
	var serial int
	_, _ = fmt.Sscanf(p, "prompt %d", &serial)
	if slices.Contains(m.accepted, p) {
		if serial < m.last[m.urgent[p]] {
			t.Fatalf("%q was handed over out of order", p)
		}
		m.last[m.urgent[p]] = serial
	}
}

// Tool is a PreToolUse hook.
func (m *model) Tool(t *rapid.T) {
	if m.hasGot == "" {
		return
	}
	p := m.hasGot
	if m.process(t, func() error { _, err := m.q.Advance(Started, ""); return err }) {
		m.started[p] = m.given[p]
	}
}

// Limit ends the session by a failure that passes; another one goes on with what
// it worked on, which is not handed over again.
func (m *model) Limit(t *rapid.T) {
	p := m.hasGot
	if p == "" {
		return
	}
	m.hasGot = ""
	var f *InFlight
	steps := []func() error{
		func() error { _, err := m.q.Advance(Taken, ""); return err },
		func() (err error) { f, err = m.q.Fail("limit"); return err },
		func() error {
			outcome, _, err := m.q.Recover(Interruption{Policy: m.policy, Counts: true, Passes: func(kind string) bool { return kind == "limit" }})
			if err == nil && outcome != Kept {
				t.Fatalf("%q was interrupted by a limit: %s", p, outcome)
			}
			return err
		},
		func() error { _, err := m.q.Rebind(f.DeliveryID, Offering{Session: "next"}); return err },
		func() error { _, err := m.q.GoesOn("P"); return err },
	}
	for _, step := range steps {
		if !m.process(t, step) {
			return // the next one may be told that nothing passes
		}
	}
	m.hasGot = p
}

// Interrupt ends the session and recovers.
func (m *model) Interrupt(t *rapid.T) {
	if m.truncated {
		// The entry may be appended again, and two appenders that are at it
		// at once are kept apart only when each writes its line in one piece.
		m.finishSlow(t)
	}
	m.hasGot = ""
	m.breaks++
	for range 3 {
		lived := m.process(t, func() error {
			_, _, err := m.q.Recover(Interruption{Policy: m.policy, MaxAttempts: 1000, Counts: true})
			return err
		})
		if m.policy == Drop { // a kill may hide which one it was
			for p := range m.started {
				m.exempt[p] = true
			}
		}
		if lived {
			m.truncated = false
			return
		}
	}
}

// Truncate empties the inbox, as a launcher of heartbeat-rs does; rotate
// puts a new one in its place. What is queued goes with it, what is in flight
// does not.
func (m *model) Truncate(t *rapid.T) {
	m.finishSlow(t)
	m.truncated, m.disorder = true, true
	urgent := anyLane(t)
	flying := m.hasGot
	if f, err := m.q.InFlight(); err == nil && f != nil {
		flying = form.Decode([]byte(f.RawLine), false).Prompt
	}
	for _, p := range m.accepted {
		if p != flying && m.urgent[p] == urgent {
			m.exempt[p] = true
		}
	}
	path := m.lane(urgent)
	var content strings.Builder
	if rapid.Bool().Draw(t, "filled again at once") {
		for range rapid.IntRange(1, 4).Draw(t, "lines") {
			p := m.prompt(t, urgent)
			m.possible[p] = true
			m.accepted = append(m.accepted, p)
			content.WriteString(p + "\n")
		}
	}
	if rapid.Bool().Draw(t, "rotated") {
		if err := os.Rename(path, fmt.Sprintf("%s.%d", path, m.serial)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, []byte(content.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Check holds between any two actions.
func (m *model) Check(t *rapid.T) {
	for p, n := range m.given {
		if n > 1+m.breaks {
			t.Fatalf("%q was handed over %d times in %d interruptions", p, n, m.breaks)
		}
	}
	normal, err := m.q.inbox().peek()
	urgent, urgentErr := m.q.hurried().peek()
	if err == nil && urgentErr == nil && normal != nil && urgent != nil {
		t.Fatalf("two in flight: %q and %q", normal.RawLine, urgent.RawLine)
	}
}

// settle drains the queue undisturbed and looks for what was lost.
func (m *model) settle(t *rapid.T) {
	m.finishSlow(t)
	m.hasGot = ""
	m.breaks++
	if _, _, err := m.q.Recover(Interruption{Policy: m.policy, MaxAttempts: 1000}); err != nil {
		t.Fatal(err)
	}
	if m.policy == Drop {
		for p := range m.started {
			m.exempt[p] = true
		}
	}
	for range 1000 {
		e, err := m.q.Next()
		if errors.Is(err, ErrEmpty) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.q.Offer(e, Offering{}); err != nil {
			t.Fatal(err)
		}
		m.give(t, e.Prompt)
		if _, err := m.q.Acknowledge(Acknowledgement{}); err != nil {
			t.Fatal(err)
		}
	}
	m.Check(t)
	var dead []string
	seen := map[string]bool{}
	for d, err := range m.q.DeadLetters() {
		if err != nil {
			t.Fatal(err)
		}
		if seen[d.DeliveryID] {
			t.Fatalf("two dead letters of delivery %s", d.DeliveryID)
		}
		seen[d.DeliveryID] = true
		dead = append(dead, form.Decode(d.Raw(), false).Prompt)
		if d.Reason == Torn && !strings.HasPrefix(d.RawLine, `"torn`) && !strings.HasPrefix(d.RawLine, `{"heartbeat":1,"id`) {
			t.Fatalf("torn: %q", d.RawLine)
		}
	}
	for _, p := range m.accepted {
		if m.given[p] == 0 && !m.exempt[p] && !slices.Contains(dead, p) {
			t.Fatalf("lost: %q", p)
		}
	}
}

func TestTheQueueKeepsItsPromise(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(rapid.StateMachineActions(m))
		m.settle(t)
	})
}
