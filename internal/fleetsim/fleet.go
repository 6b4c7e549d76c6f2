package main

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/internal/promise"
	"heartbeat/sources"
)

// scenario is one way in which a fleet's triggers are spread over time.
type scenario struct {
	name string
	what string // for people
	// cron is the schedule of agent i, jitter what is added to its fires.
	// first is the first minute that is watched.
	cron   func(i int, first time.Time) string
	jitter time.Duration
	// minutes bounds what is watched; 0: as long as the settings say. With a
	// window that is what is watched, from the next second on.
	minutes int
	window  time.Duration
	late    time.Duration // the most that the 99th of 100 fires may be late
	// past is true if the store is as a year has left it, and commands are asked of it.
	past bool
}

// nextSeason is months away.
func nextSeason(_ int, first time.Time) string {
	return fmt.Sprintf("0 0 1 %d *", first.AddDate(0, 3, 0).Month())
}

var scenarios = map[string]scenario{
	"idle": {name: "idle", what: "no fire is due for months", minutes: 1, cron: nextSeason},
	"year": {name: "year", what: "as idle, and its store has what a year of work leaves", minutes: 1, cron: nextSeason, past: true},
	"spread": {
		name: "spread", what: "1 in 10 every 5 minutes, 3 every 15, 6 hourly, at the full minute", late: lateP99,
		cron: func(i int, _ time.Time) string {
			switch every := 60; {
			case i%10 == 0:
				every = 5
				fallthrough
			case i%10 < 4:
				every = min(every, 15)
				return fmt.Sprintf("%d-59/%d * * * *", i/10%every, every)
			}
			return fmt.Sprintf("%d * * * *", i/10%60)
		},
	},
	"jitter": {
		name: "jitter", what: "all in the same minute, with a jitter of 10 minutes", jitter: 10 * time.Minute, late: lateP99,
		cron: func(_ int, first time.Time) string { return fmt.Sprintf("%d * * * *", first.Minute()) },
	},
	"burst": {
		name: "burst", what: "all in the same minute, without jitter", minutes: 1, late: burstP99,
		cron: func(_ int, first time.Time) string { return fmt.Sprintf("%d * * * *", first.Minute()) },
	},
}

// names returns the scenarios in the order in which they run: the first one
// finds empty directories.
func names() []string {
	order := []string{"idle", "spread", "jitter", "burst", "year"}
	for _, n := range slices.Sorted(maps.Keys(scenarios)) {
		if !slices.Contains(order, n) {
			order = append(order, n)
		}
	}
	return order
}

// declare writes the fleet's file and makes the directories. The inboxes have
// a line that is none, as those of agents that have worked before: a new file
// costs a fire one sync more.
func (s settings) declare(sc scenario, first time.Time) (path string, err error) {
	path = s.file(sc)
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	w := bufio.NewWriter(f)
	fmt.Fprintf(w, "version: 1\nname: %s\nmax-sessions: %d\nshutdown-grace: 0s\n", sc.name, s.slots)
	fmt.Fprintf(w, "groups: {small: {max-sessions: %d}}\ndefaults: {timezone: UTC, dir: ., command: [claude]}\nagents:\n", max(1, s.slots/10))
	for i := range s.agents {
		home := filepath.Join(s.dir, "agents", agentName(i), ".heartbeat")
		if err := os.MkdirAll(home, 0o700); err != nil {
			return "", err
		}
		if err := touched(filepath.Join(home, "inbox.jsonl")); err != nil {
			return "", err
		}
		s.declareAgent(w, sc, i, first)
	}
	if err := w.Flush(); err != nil {
		return "", err
	}
	return path, f.Close()
}

func (s settings) file(sc scenario) string { return filepath.Join(s.dir, sc.name+".yaml") }

func touched(inbox string) error {
	if _, err := os.Lstat(inbox); err == nil {
		return nil
	}
	return os.WriteFile(inbox, []byte("\n"), 0o600)
}

// declareAgent declares one agent in four as persist, and one in ten in a
// group whose slots are few.
func (s settings) declareAgent(w *bufio.Writer, sc scenario, i int, first time.Time) {
	fmt.Fprintf(w, "  %s:\n    dir: agents/%s\n", agentName(i), agentName(i))
	if i%4 == 3 {
		fmt.Fprint(w, "    mode: persist\n")
	}
	if i%10 == 9 {
		fmt.Fprint(w, "    group: small\n")
	}
	fmt.Fprintf(w, "    trigger: {cron: %q, seconds: %t, prompt: %q", sc.cron(i, first), sc.window > 0, promptText+"{{.Label}}")
	if sc.jitter > 0 {
		fmt.Fprintf(w, ", jitter: %s", sc.jitter)
	}
	fmt.Fprint(w, "}\n")
}

func agentName(i int) string { return fmt.Sprintf("a%05d", i) }

// promptText is each prompt's text, before its label.
const promptText = "do what is due at "

// owed returns the fires that are due within [from, to), in order for each
// trigger: from then on the fleet may lose none. They are named as their entries'
// sources are.
func owed(f *config.Fleet, from, to time.Time) (due promise.Record) {
	for _, a := range f.Agents {
		for i := range a.Triggers {
			t := &a.Triggers[i]
			delay := sources.Offset(t.Cron.Jitter, a.Name+"/"+t.Name)
			at := t.Cron.Schedule.Next(from.Add(-delay - 1))
			for ; !at.IsZero() && at.Add(delay).Before(to); at = t.Cron.Schedule.Next(at) {
				label, trigger := t.Cron.Schedule.Label(at), a.Name+"/"+t.Name
				due = append(due, promise.Fact{
					At: at.Add(delay), Kind: promise.Accepted, Agent: a.Name, Prompt: trigger + "@" + label, Sender: trigger, Text: promise.Text(promptText + label),
				})
			}
		}
	}
	return due
}

var namesOfFires = regexp.MustCompile(`\ba[0-9]+/[-a-z0-9]+@[-+:.TZ0-9]+`)

// ask runs the built heartbeat over a scenario's fleet.
func (s settings) ask(sc scenario) promise.Ask {
	return func(args ...string) ([]byte, error) {
		out, _, err := s.heartbeat(sc, args...)
		return out, err
	}
}

// heartbeat runs the built heartbeat over a scenario's fleet, and returns what processor time it took.
func (s settings) heartbeat(sc scenario, args ...string) (out []byte, cpu time.Duration, err error) {
	cmd := exec.Command(filepath.Join(s.programs, "heartbeat"), append([]string{"-f", s.file(sc)}, args...)...)
	cmd.Env = append(os.Environ(), "HEARTBEAT_STATE_DIR="+filepath.Dir(s.stateDir(sc)))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if out, err = cmd.Output(); err != nil {
		return nil, 0, fmt.Errorf("heartbeat %q: %w: %s", args, err, &stderr)
	}
	return out, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// inQueues asks what stands in the agents' queues.
func (s settings) inQueues(sc scenario) (all promise.Record, err error) {
	told, err := s.ask(sc).Queues()
	for _, agent := range slices.Sorted(maps.Keys(told)) {
		all = append(all, promise.Teller{Agent: agent, Named: namesOfFires.FindString}.Facts(told[agent])...)
	}
	return all, err
}

// lasts draws how long an entry takes: most are short, some are long.
func (s settings) lasts() time.Duration {
	return time.Duration(min(10, rand.ExpFloat64()) * float64(s.session))
}
