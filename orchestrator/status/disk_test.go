package status

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// TestWhatWaitsAsideKeepsNobodyWithoutAScheduler: status said that it holds up the queue.
func TestWhatWaitsAsideKeepsNobodyWithoutAScheduler(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request approval.Request
		aside   bool // its entry is set aside
		keeps   bool
	}{
		"aside":                                {approval.Request{Name: "release", Aside: true}, true, false},
		"asked before its entry was set aside": {approval.Request{Name: "release"}, true, false},
		"of another entry":                     {approval.Request{Name: "release", Entry: "0123456789ab"}, true, true},
		"not aside":                            {approval.Request{Name: "release"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			home := filepath.Join(dir, "a", ".heartbeat")
			a := &config.Agent{Name: "a", Dir: filepath.Join(dir, "a"), Home: home, Inbox: filepath.Join(home, "inbox.jsonl")}
			if err := errors.Join(os.MkdirAll(home, 0o700), os.MkdirAll(filepath.Join(dir, "state"), 0o700)); err != nil {
				t.Fatal(err)
			}
			flight := inFlight(t, a)
			if c.aside {
				hold(t, a, func(q *inbox.Held) error {
					_, err := q.SetAside(flight.DeliveryID, flight.Check, time.Now())
					return err
				})
			}
			c.request.Agent, c.request.Key, c.request.Question = "a", "a-1", "release?"
			if c.request.Entry == "" {
				c.request.Entry = flight.DeliveryID
			}
			state := filepath.Join(dir, "state")
			storetest.Write(t, state, func(s *store.Change) error {
				_, _, err := approval.Ask(s, c.request, config.Approvals{}, time.Now())
				return err
			})
			all := Read(&config.Fleet{Name: "f", Agents: []*config.Agent{a}}, state, nil, time.Now())
			if got := all.Agents[0].Approval != nil; got != c.keeps {
				t.Errorf("keeps it: %t, want %t", got, c.keeps)
			}
			signs := all.Agents[0].approvals(time.Now())
			var kept, aside int
			for _, s := range signs {
				if strings.Contains(s.text, "aside since") {
					aside++
				} else {
					kept++
				}
			}
			if kept == 1 != c.keeps || aside == 1 != c.aside || kept > 1 || aside > 1 {
				t.Errorf("says %+v", signs)
			}
		})
	}
}

func hold(t *testing.T, a *config.Agent, do func(q *inbox.Held) error) {
	t.Helper()
	q, err := inbox.Open(inbox.Place{Inbox: a.Inbox, Home: a.Home, Dir: a.Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if err := q.Hold(t.Context(), do); err != nil {
		t.Fatal(err)
	}
}

// inFlight is an entry that is being checked.
func inFlight(t *testing.T, a *config.Agent) (f *inbox.InFlight) {
	t.Helper()
	q, err := inbox.Open(inbox.Place{Inbox: a.Inbox, Home: a.Home, Dir: a.Dir})
	if err == nil {
		defer q.Close()
		_, err = q.Append(t.Context(), inbox.Letter{ID: "one", Source: "send", Prompt: "write one"})
	}
	if err != nil {
		t.Fatal(err)
	}
	hold(t, a, func(q *inbox.Held) error {
		e, err := q.Next()
		if err == nil {
			_, err = q.Offer(e, inbox.Offering{Session: "S", Checked: true})
		}
		if err == nil {
			_, err = q.Advance(inbox.Started, "")
		}
		if err == nil {
			f, err = q.Check(inbox.Acknowledgement{Session: "S", Now: time.Now()})
		}
		return err
	})
	return f
}

// TestWhoHasADirectoryIsSaid: an agent whose directory another fleet runs was idle, and no
// command said that its prompts go to that fleet's sessions.
func TestWhoHasADirectoryIsSaid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := &config.Agent{Name: "a", Dir: filepath.Join(dir, "a"), Home: filepath.Join(dir, "a", ".heartbeat"), Inbox: filepath.Join(dir, "a", ".heartbeat", "inbox.jsonl")}
	if err := os.MkdirAll(a.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	ours, theirs := filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")
	says := func(live *Live) string {
		return Read(&config.Fleet{Name: "f", Path: "/f/heartbeat.yaml", Agents: []*config.Agent{a}}, ours, live, time.Now()).Agents[0].Problem
	}
	if err := owner.Mark([]*config.Agent{a}, owner.Origin{File: "/b/heartbeat.yaml", StateDir: theirs}, nil); err != nil {
		t.Fatal(err)
	}
	if got := says(nil); got != "" {
		t.Errorf("of a fleet that does not run: %q", got)
	}
	unlock, err := flock.TryLock(a.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unlock() }()
	if got := says(&Live{}); !strings.Contains(got, `runs `+a.Dir) || !strings.Contains(got, `"/b/heartbeat.yaml"`) {
		t.Errorf("of another fleet that runs: %q", got)
	}
	if got := says(&Live{Agents: []AgentState{{Agent: "a", State: Idle}}}); got != "" {
		t.Errorf("of an agent that our run has: %q", got)
	}
	for _, state := range []string{ours, theirs} {
		if err := owner.Mark([]*config.Agent{a}, owner.Origin{File: "/f/heartbeat.yaml", StateDir: state}, nil); err != nil {
			t.Fatal(err)
		}
		if got := says(nil); got != "" {
			t.Errorf("of our own run that does not answer, its state in %s: %q", state, got)
		}
	}
}
