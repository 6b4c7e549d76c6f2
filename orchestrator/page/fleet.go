package page

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
)

// coarse is the precision of durations in the sentences of a page, so that a sentence does not
// change each second only because something grows older.
const coarse = 10 * time.Second

// fewAgents is the number of agents up to which all groups are unfolded. A folded group shows how
// many of its agents are in which state. Agents keep their order when their state changes.
const fewAgents, mostOfGroup = 24, 50

// fleet is the page of all agents: what needs a person, what is spent, and each agent.
func (p *Page) fleet(ctx context.Context, q ask) (Sheet, error) {
	f, err := p.fleets.get(ctx, "", func() (Fleet, error) { return p.opt.Read.Fleet(ctx) })
	if err != nil {
		return Sheet{}, err
	}
	now := q.Now.Truncate(coarse)
	d := drawer{page: p, acts: q.Acts}
	all := p.problems(f)
	parts := []Part{
		d.part(Part{ID: "headline", Class: "headline", Polite: true}, "headline", headline{f.Summary, f.StoppingText(now), f.Scheduler, q.Acts}),
		d.troubles(f, all),
		d.part(Part{ID: "numbers", Class: "numbers", Label: "Today"}, "numbers", numbersOf(f)),
	}
	few := len(f.Agents) <= fewAgents
	for _, g := range grouped(f) {
		one := d.part(Part{ID: partID("group", g.id()), Tag: "details", Open: few, Class: "group", KidsTag: "ul", KidsClass: "rows"}, "group", g)
		for _, a := range g.Agents {
			one.Kids = append(one.Kids, d.part(Part{ID: partID("agent", a.Agent), Tag: "li", Class: "agent " + tone(a)}, "agent-row", rowOf(a, now, q.Acts)))
		}
		parts = append(parts, one)
	}
	return Sheet{Title: f.Fleet.Fleet, Parts: parts, Needs: len(all)}, d.err
}

// drawer draws parts, until one cannot be drawn.
type drawer struct {
	page *Page
	acts bool
	err  error
}

func (d *drawer) part(t Part, name string, data any) Part {
	if d.err == nil {
		t.HTML, d.err = d.page.draw(name, data)
	}
	return t
}

type headline struct {
	Summary, Stopping string
	Run               *status.Run
	Acts              bool
}

// Unsure reports whether the cost of a part is not known.
func (n numbers) Unsure() bool { return n.Today.Unseen+n.Today.Unpriced > 0 }

// numbers are the fleet's figures of today; the headline has those of now.
type numbers struct {
	Today   usage.Sum
	Tokens  int64
	Budgets []Budget
	Limits  []Limit
}

func numbersOf(f Fleet) (n numbers) {
	for _, a := range f.Agents {
		n.Today = n.Today.Plus(a.Today)
	}
	n.Tokens = fresh(n.Today)
	n.Budgets, n.Limits = f.Budgets, f.Limits
	return n
}

// fresh are the tokens that budgets count.
func fresh(s usage.Sum) int64 { return s.Input + s.Output + s.CacheWrite }

// group is a group of agents, or one part of many of a large one; "": those without one.
type group struct {
	Name   string
	Part   int // from 1 on; 0: it is whole
	Agents []status.Agent
}

func (g group) id() string {
	if g.Part == 0 {
		return g.Name
	}
	return g.Name + " " + strconv.Itoa(g.Part)
}

// From and To are the first agent of a part, and the last.
func (g group) From() string { return g.Agents[0].Agent }
func (g group) To() string   { return g.Agents[len(g.Agents)-1].Agent }

// States says how many agents are in which state.
func (g group) States() string {
	n := map[string]int{}
	for _, a := range g.Agents {
		n[labelOf(a)]++
	}
	var all []string
	for _, word := range slices.Sorted(maps.Keys(n)) {
		said := word
		if word == "asks" && n[word] > 1 {
			said = "ask"
		}
		all = append(all, strconv.Itoa(n[word])+" "+said)
	}
	return strings.Join(all, ", ")
}

// grouped returns the agents by group in the order of the fleet's file, whatever their state, so
// that a button which somebody is about to tap does not move. What needs a person is listed
// above, among the troubles.
func grouped(f Fleet) (all []group) {
	at := map[string]int{}
	var whole []group
	for _, a := range f.Agents {
		name := f.Group[a.Agent]
		i, known := at[name]
		if !known {
			i = len(whole)
			at[name] = i
			whole = append(whole, group{Name: name})
		}
		whole[i].Agents = append(whole[i].Agents, a)
	}
	for _, g := range whole {
		if len(g.Agents) <= mostOfGroup {
			all = append(all, g)
			continue
		}
		part := 0
		for some := range slices.Chunk(g.Agents, mostOfGroup) {
			part++
			all = append(all, group{g.Name, part, some})
		}
	}
	return all
}

// labelOf is the word for an agent's state: one that waits for a person's answer asks.
func labelOf(a status.Agent) string {
	if (row{Agent: a, Word: a.Shown()}).Answer() != "" {
		return "asks"
	}
	return string(a.Shown())
}

// row is an agent in the list.
type row struct {
	status.Agent
	Acts  bool
	Word  status.State
	Label string
	Sign  string
	// Note says why it does what it does, or "". Last is what it does or said last, where
	// there is no note.
	Note   string
	Last   *status.Line
	Doing  string // the source of the entry in flight, or what the session does without one
	Since  time.Time
	Begun  time.Time // of the entry in flight
	Queued string    // "": nothing is
	// Iteration is the present iteration and their limit; "": no check has to pass.
	Iteration string
	Tokens    int64
	Wakes     string // what fires without a schedule, or ""
}

func rowOf(a status.Agent, now time.Time, acts bool) row {
	r := row{Agent: a, Acts: acts, Word: a.Shown(), Since: a.ShownSince(), Note: a.Note(now), Queued: a.QueuedText(), Tokens: fresh(a.Today), Wakes: wakes(a)}
	if r.Sign, r.Label = signs[r.Word], labelOf(a); r.Label == "asks" {
		r.Sign = "?"
	}
	if r.Note == "" {
		r.Note = a.Problem
	}
	switch {
	case a.Proof != nil:
		r.Iteration = status.Of(a.Proof.Iteration, a.Proof.Most)
		if r.Note == "" {
			r.Note = a.Proof.Text(now)
		}
	case a.InFlight != nil && a.InFlight.Checked:
		r.Iteration = status.Of(a.InFlight.Iteration, a.InFlight.Most)
	}
	if strings.Contains(r.Note, "iteration "+r.Iteration) { // it says so already
		r.Iteration = ""
	}
	if t := tone(a); r.Note == "" && (t == "bad" || t == "warn") {
		r.Note = a.Reason.String()
	}
	if r.Queued == "0" {
		r.Queued = ""
	}
	if l := a.Line; l != nil && (r.Note == "" || a.InTurn() && a.Silent.IsZero() && a.Said == nil) {
		r.Note, r.Last = "", l
	}
	switch f := a.InFlight; {
	case f != nil:
		r.Doing, r.Begun = origin(a.Agent, f.Source), f.DeliveredAt
	case a.Phase == hook.Background:
		r.Doing = "background tasks"
	}
	return r
}

// wakes says what may queue a prompt at any time, where nothing is scheduled.
func wakes(a status.Agent) string {
	switch what := a.Unscheduled(); what {
	case "", "any time":
		return what
	default:
		return "by " + what
	}
}

// Answer is where what the agent waits for is answered, or "".
func (r row) Answer() string {
	if _, stays := r.Stays(""); r.Word != status.Held || !stays && !r.Asks {
		return ""
	}
	return answerAt(r.Agent)
}

// Resumes reports whether it continues when a person resumes it, and not by itself.
func (r row) Resumes() bool {
	switch r.Word {
	case status.State(status.IsPaused):
		return true
	case status.Held:
		_, stays := r.Stays("")
		return !stays && !r.GoesOn && r.Answer() == ""
	case status.Parked, status.BackingOff, status.Idle, status.Waiting, status.Starting, status.Running, status.Ending, status.Checking, status.Stopped:
	}
	return false
}

// Spent reports whether anything was spent today, if only what nobody knows.
func (r row) Spent() bool { return r.Today != usage.Sum{} }

// Sleeps reports whether nothing goes on.
func (r row) Sleeps() bool { return r.Word == status.Idle || r.Word == status.Stopped }

// Tone is the row's colour.
func (r row) Tone() string { return tone(r.Agent) }

// signs are shown beside the words, for people who see colours differently.
var signs = map[status.State]string{
	status.Idle: "○", status.Waiting: "◔", status.Starting: "◐", status.Running: "●", status.Ending: "◑", status.Checking: "◌",
	status.BackingOff: "↻", status.Parked: "‖", status.Held: "✕", status.Stopped: "□", status.State(status.IsPaused): "‖",
}

// tone returns the colour of an agent's state. It adds nothing to the word for the state.
func tone(a status.Agent) string {
	switch a.Shown() {
	case status.Running, status.Starting, status.Ending:
		return "good"
	case status.Held:
		return "bad"
	case status.Checking:
		return "calm"
	case status.BackingOff, status.Parked, status.Waiting, status.State(status.IsPaused):
		return "warn"
	case status.Idle, status.Stopped:
	}
	return "calm"
}

// origin is status.Origin, as wide as a page has room for.
func origin(agent, source string) string { return foreign.Short(status.Origin(agent, source), 40) }
