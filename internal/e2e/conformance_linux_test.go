package e2e

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hookclient "heartbeat/hook/client"
	"heartbeat/internal/testbed"
)

var update = flag.Bool("update", false, "record testdata from the real client")

// scenario is a short session whose trace is recorded.
type scenario struct {
	name  string
	model []turn
	hooks replies
	env   []string
	// settings changes the project's settings; they hold the lab's hook for
	// every event already. Emptied, they are not written.
	settings func(l *Lab, settings map[string]any)
	// args is the command line behind the permission mode; nil: -- begin.
	args []string
	// concurrent says that model calls come in no certain order: they are not
	// recorded.
	concurrent bool
	events     []string // that have hooks; nil: all
	// drive plays the rest of the story up to a state in which nothing
	// happens by itself. Unless it ended the client, SIGTERM does.
	drive func(l *Lab, term *Terminal)
	// recordsStops adds what the transcript says of Stops.
	recordsStops bool
	// check looks at what a trace does not show.
	check func(l *Lab)
}

// TestRealClientConforms holds the recorded behaviour against the real client. What
// differs is tried once more: where the client gets no processor for a second, its own
// order of things is another one.
func TestRealClientConforms(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	all := scenarios()
	if !*update {
		all = factsOf(t, c, all, 18)
	}
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			got := s.run(t, c)
			if *update && !t.Failed() {
				write(t, s.recorded(), got)
			}
			if d := s.differs(t, got); d != "" && !t.Failed() {
				t.Logf("it differs, and is tried once more:\n%s", d)
				got = s.run(t, c)
			}
			s.compare(t, got)
		})
	}
}

// factsOf is what a test tries of facts about the client alone, in which nothing of ours
// plays: of the release that they were measured in every n-th, by the sample, as it
// does not change; of another release all.
func factsOf[T any](t *testing.T, c client, all []T, n int) []T {
	t.Helper()
	if c.real && recordedFrom(c) {
		return testbed.SampleOf(t, all, n)
	}
	return all
}

// recordedFrom reports whether a client is of the release whose behaviour is
// recorded, by the package that it lies in.
func recordedFrom(c client) bool {
	data, err := os.ReadFile(filepath.Join(filepath.Dir(c.path), "package.json"))
	var in struct{ Version string }
	return err == nil && json.Unmarshal(data, &in) == nil && in.Version == hookclient.Claude.Versions.Measured
}

// TestStandInConforms holds the stand-in against what was recorded from the
// real client.
func TestStandInConforms(t *testing.T) {
	t.Parallel()
	c := standIn(t)
	for _, s := range scenarios() {
		if slices.Contains(slices.Concat(lanes[:]...), s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.compare(t, s.run(t, c))
		})
	}
}

// run plays the scenario and returns its trace.
func (s scenario) run(t *testing.T, c client) string {
	t.Helper()
	l := newLab(t, c, s.hooks.script())
	l.Model(s.model...)
	l.Setenv(s.env...)
	settings := l.Hooks(s.events...)
	if s.settings != nil {
		s.settings(l, settings)
	}
	if len(settings) > 0 {
		l.ProjectSettings(settings)
	}
	args := s.args
	if args == nil {
		args = []string{"--permission-mode", "dontAsk", "--", "begin"}
	}
	s.drive(l, l.Start(args...))
	if s.check != nil {
		s.check(l)
	}
	var ends []string
	for _, term := range l.started {
		ends = append(ends, term.End())
	}
	trace := append(l.Trace(!s.concurrent), ends...)
	if s.recordsStops {
		trace = append(trace, l.stopRecords()...)
	}
	return strings.Join(trace, "\n") + "\n"
}

func (s scenario) recorded() string { return filepath.Join("testdata", s.name+".txt") }

func (s scenario) compare(t *testing.T, got string) {
	t.Helper()
	if d := s.differs(t, got); d != "" {
		t.Errorf("the session differs from %s (-recorded +this client):\n%s", s.recorded(), d)
	}
}

// differs returns the difference from what is recorded.
func (s scenario) differs(t *testing.T, got string) string {
	t.Helper()
	want, err := os.ReadFile(s.recorded())
	if err != nil {
		t.Fatalf("nothing was recorded: %v\n%s", err, got)
	}
	return cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n"))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
