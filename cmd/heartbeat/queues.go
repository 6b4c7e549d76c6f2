package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/queue"
)

// target is what a command about queues should do, and for which agents: AGENT
// ACTION ID…, in which ACTION may come first, or ACTION ID… for the whole fleet.
type target struct {
	agents []*config.Agent
	fleet  bool // no agent was named
	action string
	ids    []string
}

// target parses the words of a command line. Without an action it is list.
func (a *app) target(command string, words, actions []string) (target, error) {
	f, err := a.knownFleet()
	if err != nil {
		return target{}, err
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	t := target{agents: f.Agents, fleet: true, action: "list"}
	is := func(i int, in []string) bool { return i < len(words) && slices.Contains(in, words[i]) }
	name := ""
	switch {
	case len(words) == 0:
	case is(1, actions) || !is(0, actions):
		name, words = words[0], words[1:]
	case len(words) > 1 && (f.Agent(words[1]) != nil || words[0] == "list"):
		name, words = words[1], slices.Concat(words[:1], words[2:])
	}
	if name != "" {
		agent, err := findAgent(f, name)
		ours := meantActions[command+" "+name]
		if near := config.Nearest(name, actions); ours == "" && len(near) > 0 && !nearAgent(f, name) {
			ours = command + " " + near[0]
		}
		if err != nil && ours != "" {
			return t, usagef("heartbeat "+ours, "%q is not an action of %s", name, command)
		}
		if err != nil {
			return t, err
		}
		t.agents, t.fleet = []*config.Agent{agent}, false
	}
	switch {
	case is(0, actions):
		t.action, t.ids = words[0], words[1:]
	case len(words) > 0 && meantActions[command+" "+words[0]] != "":
		return t, usagef("heartbeat "+meantActions[command+" "+words[0]], "%q is not an action of %s", words[0], command)
	case len(words) > 0:
		return t, usagef("heartbeat "+command+" --help", "%q is not an action: it must be one of %s", words[0], strings.Join(actions, ", "))
	}
	return t, nil
}

// nearAgent reports whether a name is nearly an agent's.
func nearAgent(f *config.Fleet, name string) bool {
	return slices.ContainsFunc(f.Agents, func(a *config.Agent) bool { return config.Nearest(name, []string{a.Name}) != nil })
}

// meantActions are commands that people mean by others, which do not exist.
var meantActions = map[string]string{
	"dead-letter drop": "dead-letter purge ID", "dead-letter remove": "dead-letter purge ID", "dead-letter delete": "dead-letter purge ID",
	"inbox remove": "inbox drop ID", "inbox delete": "inbox drop ID", "inbox purge": "inbox drop ID", "inbox retry": "dead-letter retry ID",
}

// ambiguousError means that several agents have something that an id names.
type ambiguousError struct {
	id     string
	agents []string
	how    string // to name one of them as well
}

// ambiguous is that several agents have what an id names; how is to name one as well.
func ambiguous(id string, owners []*config.Agent, how string) error {
	e := &ambiguousError{id: id, how: how}
	for _, a := range owners {
		e.agents = append(e.agents, a.Name)
	}
	return e
}

// Error names the agents.
func (e *ambiguousError) Error() string {
	return fmt.Sprintf("cannot tell which %q is meant: agents %s have one", e.id, strings.Join(e.agents, ", "))
}

// Hint says what to type.
func (e *ambiguousError) Hint() string { return "name the agent as well: " + e.how }

// stored is a kind of thing that agents have and ids name: their entries, or their
// dead letters.
type stored[E interface{ Named(id string) bool }] struct {
	command string // the command that lists them
	thing   string // one of them, in words
	read    func(*config.Agent) ([]E, error)
}

// whose sorts ids by the agents that have them. An id that no agent has, or more
// than one, is an error, and nothing is done.
func (s stored[E]) whose(t target) (map[*config.Agent][]string, error) {
	found := map[*config.Agent][]string{}
	if !t.fleet {
		found[t.agents[0]] = t.ids
		return found, nil
	}
	for _, id := range t.ids {
		var owners []*config.Agent
		for _, a := range t.agents {
			all, err := s.read(a)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(all, func(e E) bool { return e.Named(id) }) {
				owners = append(owners, a)
			}
		}
		switch len(owners) {
		case 0:
			return nil, &failure{
				status: exitError, hint: "heartbeat " + s.command + " lists them",
				err: fmt.Errorf("cannot find %q in the queues of %d agents: %w", id, len(t.agents), inbox.ErrNotFound),
			}
		case 1:
			found[owners[0]] = append(found[owners[0]], id)
		default:
			return nil, ambiguous(id, owners, "AGENT ACTION ID")
		}
	}
	return found, nil
}

// named returns what the ids name, in their order, and which agent the last of it
// belongs to.
func (s stored[E]) named(t target, whose map[*config.Agent][]string) (agent string, found []E, err error) {
	for _, a := range t.agents {
		if len(whose[a]) == 0 {
			continue
		}
		all, err := s.read(a)
		if err != nil {
			return "", nil, err
		}
		for _, id := range whose[a] {
			before := len(found)
			for _, e := range all {
				if e.Named(id) {
					found = append(found, e)
				}
			}
			if len(found) == before {
				return "", nil, listHint(fmt.Errorf("cannot find %s %q: %w", s.thing, id, inbox.ErrNotFound), s.command, a)
			}
		}
		agent = a.Name
	}
	return agent, found, nil
}

// notEmpty reads what each agent has of a kind, and returns the lists that are not
// empty. It warns about those that cannot be read, and returns their agents.
func notEmpty[L interface{ empty() bool }](a *app, t target, of string, read func(*config.Agent) (L, error)) (all []L, unread unreadLists) {
	all = []L{}
	for _, agent := range t.agents {
		list, err := read(agent)
		if err != nil {
			a.warn(fmt.Sprintf("cannot read %s of agent %q: %v", of, agent.Name, err))
			unread.add(a.ours(), agent.Name, err)
		} else if !list.empty() {
			all = append(all, list)
		}
	}
	return all, unread
}

// locksFor is how long a command that looks at many queues waits for those that somebody
// else has locked, in all.
const locksFor = time.Second

// settling returns queue.Settle for a command that looks at many queues.
func settling(ctx context.Context) func(*config.Agent) error {
	end := time.Now().Add(locksFor)
	return func(a *config.Agent) error {
		ctx, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		return queue.Settle(ctx, a)
	}
}

// unreadLists are what agents have of a kind that could not be read.
type unreadLists struct {
	Unread []string `json:"unread,omitempty"` // the agents
	do     []string // what to type, for each
}

func (u *unreadLists) add(ours, agent string, err error) {
	do := ours + " doctor " + agent
	if errors.Is(err, inbox.ErrNeedsOperator) {
		do = ours + " answer " + agent
	}
	u.Unread, u.do = append(u.Unread, agent), append(u.do, do)
}

// text says for which agents it is not known what they have; what: in words.
func (u unreadLists) text(p *page, what string) {
	for i, agent := range u.Unread {
		p.saidf("it is not known what is %s for %s: %s", what, agent, u.do[i])
	}
}

// each does something for each agent concerned, in the order of the file, and
// returns the results, also if some have failed.
func each(t target, concerned func(*config.Agent) bool, do func(*config.Agent) (handled, error)) (result, error) {
	all := manyHandled{Agents: []handled{}}
	var errs []error
	for _, a := range t.agents {
		if !concerned(a) {
			continue
		}
		h, err := do(a)
		if err != nil {
			errs = append(errs, err)
		}
		if err == nil || h.Count > 0 {
			all.Agents = append(all.Agents, h)
		}
	}
	switch {
	case !t.fleet && len(all.Agents) == 1:
		return all.Agents[0], errors.Join(errs...)
	case len(all.Agents) == 0 && len(errs) > 0:
		return nil, errors.Join(errs...)
	}
	return all, errors.Join(errs...)
}

// handled is how many entries an act concerned.
type handled struct {
	Agent string `json:"agent"`
	Done  string `json:"done"` // dropped, queued again, deleted
	Count int    `json:"count"`
}

func (h handled) text(p *page) { p.printf("%s: %s %s\n", h.Agent, entries(h.Count), h.Done) }

// manyHandled is what an act on the whole fleet did.
type manyHandled struct {
	Agents []handled `json:"agents"`
}

func (m manyHandled) text(p *page) {
	if len(m.Agents) == 0 {
		p.printf("there was nothing to do\n")
	}
	for _, h := range m.Agents {
		h.text(p)
	}
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}
