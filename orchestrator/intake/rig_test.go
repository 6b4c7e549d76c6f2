package intake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/entries/entriestest"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// programs are what the test's own program can be: by the name of a variable, whose value it is
// given.
var programs = map[string]func(string){}

func TestMain(m *testing.M) {
	for name, do := range programs {
		if value := os.Getenv(name); value != "" {
			do(value)
		}
	}
	os.Exit(testbed.Run(m))
}

// rig is an agent's directory with its inbox, a store, and a clock.
type rig struct {
	testing.TB
	*store.Store
	p     Place
	ahead time.Duration // by how much its clock is
}

func newRig(t testing.TB) *rig {
	t.Helper()
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	home := filepath.Join(dir, "a", ".heartbeat")
	if err := errors.Join(os.Mkdir(state, 0o700), os.MkdirAll(home, 0o700)); err != nil {
		t.Fatal(err)
	}
	s := entriestest.New(t, state)
	makeTable(t, s)
	return &rig{t, s, Place{Agent: "a", Dir: filepath.Dir(home), Inbox: filepath.Join(home, "inbox.jsonl")}, 0}
}

func makeTable(t testing.TB, s *store.Store) {
	t.Helper()
	err := s.Write(t.Context(), func(c *store.Change) error {
		there, err := c.One(`SELECT name FROM sqlite_master WHERE name = 'intakes'`, nil, new(string))
		if there || err != nil {
			return err
		}
		for statement := range strings.SplitSeq(strings.TrimSpace(Schema), ";\n") {
			if _, err := c.Do(strings.TrimSuffix(statement, ";")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// takeAll takes in all that is there, and returns the sum.
func takeAll(ctx context.Context, s *store.Store, p Place, now time.Time) (sum Taken, err error) {
	for range 100_000 {
		one, err := Take(ctx, s, p, now)
		one.Queued += sum.Queued
		one.Dead += sum.Dead
		one.Duplicates += sum.Duplicates
		one.Notes = append(sum.Notes, one.Notes...)
		one.Again.Lines += sum.Again.Lines
		if one.Again.Since.IsZero() {
			one.Again.Since = sum.Again.Since
		}
		sum = one
		if err != nil || !one.More {
			return sum, err
		}
	}
	return sum, errors.New("there is always more")
}

func (r *rig) take() Taken {
	r.Helper()
	sum, err := takeAll(r.Context(), r.Store, r.p, r.now())
	if err != nil {
		r.Fatal(err)
	}
	return sum
}

// later sets the clock forward.
func (r *rig) later(d time.Duration) { r.ahead += d }

func (r *rig) now() time.Time { return time.Now().Add(r.ahead) }

// file is a path beside the inbox.
func (r *rig) file(name string) string { return filepath.Join(filepath.Dir(r.p.Inbox), name) }

// put is echo > of a text, with O_TRUNC.
func (r *rig) put(text string) { r.write(os.O_TRUNC, text) }

// echo is echo >> of a text.
func (r *rig) echo(text string) { r.write(os.O_APPEND, text) }

func (r *rig) write(flag int, text string) {
	r.Helper()
	f := r.open(flag)
	_, err := f.WriteString(text)
	if err == nil && r.ahead != 0 {
		err = os.Chtimes(r.p.Inbox, time.Time{}, r.now())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) open(flag int) *os.File {
	r.Helper()
	f, err := os.OpenFile(r.p.Inbox, os.O_WRONLY|os.O_CREATE|flag, 0o644)
	if err != nil {
		r.Fatal(err)
	}
	return f
}

// stored is what an entry in the store is.
type stored struct {
	queue.Entry
	queue.Text
}

// entriesOf are those of the agent, in their order.
func entriesOf(t testing.TB, r *store.Reader) (all []stored) {
	t.Helper()
	err := r.Read(t.Context(), func(v *store.View) error {
		return v.Each(`SELECT e.seq, e.entry_id, e.id, e.source, e.state, e.reason, e.cause, e.checked, e.lane, e.ended, t.prompt, t.line
			FROM entries e, texts t WHERE t.agent = e.agent AND t.seq = e.seq ORDER BY e.seq`, nil, func(row store.Scan) error {
			var s stored
			var ended int64
			err := row(&s.Seq, &s.EntryID, &s.ID, &s.Source, &s.State, &s.Reason, &s.Cause, &s.Checked, &s.Lane, &ended, &s.Prompt, &s.Line)
			all = append(all, s)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// prompts are what is queued, and dead letters as "REASON: TEXT".
func (r *rig) prompts() []string {
	r.Helper()
	all := []string{}
	for _, e := range entriesOf(r, r.Reader) {
		s := e.Prompt
		if e.State == queue.Dead {
			s = string(e.Reason) + ": " + s
		}
		all = append(all, s)
	}
	return all
}

// has compares what is in the store.
func (r *rig) has(want ...string) {
	r.Helper()
	if got := r.prompts(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		r.Errorf("%.2000q\nwant %.2000q", got, want)
	}
}

// moved are the names in the folder taken.
func (r *rig) moved() (names []string) {
	r.Helper()
	all, err := os.ReadDir(r.file(takenName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// nothingLeft waits until the files that were moved are removed. A process that another test
// starts has all files of this one open for a moment.
func (r *rig) nothingLeft() {
	r.Helper()
	if !testbed.Await(10*time.Second, func() bool { r.later(time.Minute); r.take(); return len(r.moved()) == 0 }) {
		r.Errorf("%q is left", r.moved())
	}
}

// times repeats a text.
func times(n int, text string) (all []string) {
	for range n {
		all = append(all, text)
	}
	return all
}
