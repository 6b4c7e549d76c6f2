package oldqueue

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/later"
	"heartbeat/orchestrator/owner"
)

func TestMain(m *testing.M) { os.Exit(testbed.Run(m)) }

// site is where a fleet and its directories are.
type site struct {
	*testing.T
	root, stateDir string
}

func newSite(t *testing.T) site {
	t.Parallel()
	s := site{t, t.TempDir(), ""}
	s.stateDir = s.fleet("fleet")
	return s
}

// fleet makes a fleet's state directory.
func (s site) fleet(name string) string {
	dir := filepath.Join(s.root, "state", name)
	s.must(os.MkdirAll(dir, 0o700))
	return dir
}

func (s site) must(errs ...error) {
	s.Helper()
	for _, err := range errs {
		if err != nil {
			s.Fatal(err)
		}
	}
}

// agent makes an agent's directory.
func (s site) agent(name, dir, box string) *config.Agent {
	dir = filepath.Join(s.root, dir)
	home := filepath.Join(dir, ".heartbeat")
	s.must(os.MkdirAll(home, 0o700))
	return &config.Agent{Name: name, Dir: dir, Home: home, Inbox: filepath.Join(home, box), MaxEntry: config.DefaultMaxEntry}
}

func (s site) send(a *config.Agent, prompts ...string) {
	s.Helper()
	q, err := inbox.Open(inbox.Place{Inbox: a.Inbox})
	s.must(err)
	defer q.Close()
	for _, p := range prompts {
		_, err := q.Append(s.Context(), inbox.Letter{Source: "send", Prompt: p})
		s.must(err)
	}
}

// tells notes the agents, and returns how many prompts are told to be left, by who had them.
func (s site) tells(agents ...*config.Agent) string {
	s.Helper()
	before := fmt.Sprint(Waiting(s.stateDir, agents))
	s.must(Note(s.stateDir, agents, time.Unix(1, 0).UTC()))
	var all []string
	for _, q := range Waiting(s.stateDir, agents) {
		if q.Problem != "" || q.Text() == "" || q.Do() == "" {
			s.Errorf("%+v", q)
		}
		all = append(all, fmt.Sprintf("%s:%d", q.Agent, q.Prompts))
		if !strings.Contains(before, q.Inbox) {
			s.Errorf("%s is told only once it is noted", q.Inbox)
		}
	}
	return strings.Join(all, " ")
}

// TestWhatAnAgentLeavesIsTold: an agent that was removed, or got another dir or inbox,
// left its queue behind, and status said that nothing was queued.
func TestWhatAnAgentLeavesIsTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		becomes func(s site) []*config.Agent
		want    string
	}{
		"nothing changes": {func(s site) []*config.Agent { return []*config.Agent{s.agent("a", "a", "inbox.jsonl")} }, ""},
		"another name":    {func(s site) []*config.Agent { return []*config.Agent{s.agent("b", "a", "inbox.jsonl")} }, ""},
		"removed":         {func(site) []*config.Agent { return nil }, "a:3"},
		"another dir":     {func(s site) []*config.Agent { return []*config.Agent{s.agent("a", "b", "inbox.jsonl")} }, "a:3"},
		// What waits for its time is the directory's.
		"another inbox":                  {func(s site) []*config.Agent { return []*config.Agent{s.agent("a", "a", "q.jsonl")} }, "a:2"},
		"somebody else in its directory": {func(s site) []*config.Agent { return []*config.Agent{s.agent("b", "a", "q.jsonl")} }, "a:2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			a := s.agent("a", "a", "inbox.jsonl")
			if got := s.tells(a); got != "" {
				t.Fatalf("told: %q", got)
			}
			s.send(a, "one", "two")
			_, err := later.Put(t.Context(), a, later.Prompt{ID: "x", At: time.Now().Add(time.Hour), Text: "three"})
			s.must(err)
			agents := tt.becomes(s)
			for range 2 { // it does not stop
				if got := s.tells(agents...); got != tt.want {
					t.Errorf("told: %q, want %q", got, tt.want)
				}
			}
			if got := s.tells(a); got != "" {
				t.Errorf("told although the agent has it again: %q", got)
			}
		})
	}
}

// TestWhatIsLeftIsForgottenOnceItIsGone, and not because the directory is away for a while.
func TestWhatIsLeftIsForgottenOnceItIsGone(t *testing.T) {
	s := newSite(t)
	a := s.agent("a", "a", "inbox.jsonl")
	s.send(a, "one")
	s.tells(a)
	s.must(os.Rename(a.Dir, a.Dir+".away"))
	if got := s.tells(); got != "" {
		t.Errorf("told of what is away: %q", got)
	}
	s.must(os.Rename(a.Dir+".away", a.Dir))
	if got := s.tells(); got != "a:1" {
		t.Errorf("told: %q", got)
	}
	s.must(os.RemoveAll(a.Home))
	if got := s.tells(); got != "" {
		t.Errorf("told: %q", got)
	}
	s.must(os.Mkdir(a.Home, 0o700))
	s.send(a, "two")
	if got := s.tells(); got != "" {
		t.Errorf("told of a queue that the fleet never had: %q", got)
	}
}

// TestADirectoryIsNotBelievedWhoseItIs: only a fleet that has noted the queue as its own
// takes it over.
func TestADirectoryIsNotBelievedWhoseItIs(t *testing.T) {
	s := newSite(t)
	a := s.agent("a", "a", "inbox.jsonl")
	s.send(a, "one")
	s.tells(a)
	other := s.fleet("other")
	data, err := json.Marshal(owner.Origin{File: "/x.yaml", StateDir: other})
	s.must(err, os.WriteFile(filepath.Join(a.Home, owner.OriginFile), data, 0o600))
	if got := s.tells(); got != "a:1" {
		t.Errorf("told: %q", got)
	}
	s.must(os.WriteFile(filepath.Join(other, "heartbeat.lock"), nil, 0o600), Note(other, []*config.Agent{a}, time.Now()))
	if got := s.tells(); got != "" {
		t.Errorf("told of what another fleet has: %q", got)
	}
}

// TestWhatCannotBeReadIsTold: neither a queue nor the record of them is empty for that.
func TestWhatCannotBeReadIsTold(t *testing.T) {
	s := newSite(t)
	a := s.agent("a", "a", "inbox.jsonl")
	s.tells(a)
	s.must(os.Mkdir(a.Inbox, 0o700))
	if all := Waiting(s.stateDir, nil); len(all) != 1 || all[0].Problem == "" || !strings.Contains(all[0].Text(), a.Inbox) {
		t.Errorf("told: %+v", all)
	}
	s.must(os.WriteFile(path(s.stateDir), []byte("[{"), 0o600))
	if all := Waiting(s.stateDir, nil); len(all) != 1 || all[0].Problem == "" || all[0].Do() == "" {
		t.Errorf("told: %+v", all)
	}
	s.must(Note(s.stateDir, nil, time.Now()))
	if all := Waiting(s.stateDir, nil); len(all) != 0 {
		t.Errorf("told: %+v", all)
	}
}
