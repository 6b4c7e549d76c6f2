package page

import (
	"bytes"
	"context"
	"encoding/json"
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/page/changes"
	"heartbeat/orchestrator/page/window"
	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/transcript"
	"heartbeat/ptyrun/screen"
)

// AgentRead reads what the pages of one agent show. It reads no other agent's files, and only
// what is shown.
type AgentRead interface {
	// Said are the newest lines of the agent's conversation.
	Said(ctx context.Context, agent string) ([]window.Line, error)
	// Screen is what its session's terminal shows.
	Screen(ctx context.Context, agent string) (Screen, error)
	Queue(ctx context.Context, agent string) (Queue, error)
	Triggers(agent string) ([]Trigger, error)
	// Record is the outcome of the agent's prompts and sessions.
	Record(ctx context.Context, agent string) (Record, error)
	Changes(ctx context.Context, agent string) (*changes.Changes, error)
	// Series is what an agent did since a time; "": all agents.
	Series(ctx context.Context, agent string, since, now time.Time, every series.Every) (series.Past, error)
}

// Screen is what a terminal shows.
type Screen struct {
	Rows [][]screen.Span
	// Note says why there is nothing, or "".
	Note string
}

// Queue is what is queued for an agent, and what was given up.
type Queue struct {
	Entries []Entry
	More    bool // there are more entries
	// Dead are the newest dead letters, newest first, DeadMore how many older ones there
	// are.
	Dead     []Dead
	DeadMore int
	// Note says why something cannot be shown, or "".
	Note string
	// Choices are the places where a queue that asks may continue.
	Choices []Choice
}

// Legend explains the reasons of the dead letters, each once.
func (q Queue) Legend() (all []Dead) {
	for _, d := range q.Dead {
		if d.Means = onPage(d.Means); d.Means != "" && !slices.ContainsFunc(all, func(o Dead) bool { return o.Reason == d.Reason }) {
			all = append(all, d)
		}
	}
	return all
}

// column finds sentences about a column of a command's list: the page has no columns.
var column = regexp.MustCompile(`\b[A-Z]{4,}\b`)

// onPage is a text without the sentences about columns of commands' lists.
func onPage(text string) string {
	var kept []string
	for sentence := range strings.SplitAfterSeq(text, ". ") {
		if !column.MatchString(sentence) {
			kept = append(kept, sentence)
		}
	}
	return strings.TrimSpace(strings.Join(kept, ""))
}

// Choice is one: its name, where it is, and what it hands over, repeats and loses.
type Choice struct {
	Name, Where string
	Means       []string
}

// Entry is one that is queued, in flight or set aside.
type Entry struct {
	ID       string // that was made for its delivery
	InFlight bool
	Aside    bool // it waits outside of the queue
	Urgent   bool // it goes before the others
	State    string
	Source   foreign.Text
	Attempt  int
	Since    time.Time // when it was handed over
	Prompt   foreign.Text
	// Answer is where what it waits for aside is answered, or "".
	Answer string
}

// Dead is a dead letter.
type Dead struct {
	ID        string
	Reason    foreign.Text
	Means     string // its reason in our words
	Cause     foreign.Text
	Source    foreign.Text
	Attempts  int
	At        time.Time
	Prompt    foreign.Text
	Retryable bool
	// Textless is what a person calls it whose text nobody has any more; otherwise "".
	Textless foreign.Text
}

// Trigger is a trigger of an agent.
type Trigger struct {
	Name   string
	When   string // in words, where it has no schedule
	Next   time.Time
	Urgent bool // its prompts go before the others
}

// unquoted matches what needs no quotes in a command.
var unquoted = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._:/@-]*$`)

// ours reports whether a button may name an id or a name. Others, which an agent may have
// written into its files, get no button.
func ours(id string) bool { return len(id) <= 128 && unquoted.MatchString(id) }

// agentView is what the templates of an agent's pages get.
type agentView struct {
	row
	Troubles []trouble
	Here     string // the page
}

// Tabs are the pages of an agent.
func (v agentView) Tabs() []tab {
	at := agentURL(v.Agent.Agent)
	return []tab{
		{"Now", at, v.Here == "now"},
		{"Record", at + "/record", v.Here == "record"},
		{"Plots", at + "/plots", v.Here == "plots"},
		{"Changes", at + "/changes", v.Here == "changes"},
	}
}

type tab struct {
	Text, URL string
	Here      bool
}

// head is the first part of all pages of an agent.
func (p *Page) head(ctx context.Context, q ask, here string) (Sheet, agentView, error) {
	name := q.Path("agent")
	a, troubles, err := p.opt.Read.Agent(ctx, name)
	if err != nil {
		return Sheet{}, agentView{}, err
	}
	v := agentView{row: rowOf(a, q.Now, q.Acts), Here: here}
	of := map[string]status.Agent{name: a}
	for _, t := range p.problems(Fleet{Fleet: status.Fleet{Agents: []status.Agent{a}}, Troubles: troubles}) {
		t.Here = true
		t.acted(of, q.Acts)
		t.Taps = slices.DeleteFunc(t.Taps, func(t tap) bool { return v.Resumes() && t.Do == "resume "+name }) // it is above
		v.Troubles = append(v.Troubles, t)
	}
	d := drawer{page: p}
	s := Sheet{Title: name, Crumb: name, Parts: []Part{d.part(Part{ID: "agent-head", Class: "agent " + v.Tone()}, "agent-head", v)}}
	if len(v.Troubles) > 0 {
		s.Parts = append(s.Parts, d.part(Part{ID: "agent-troubles", Class: "agent troubles"}, "agent-troubles", v))
	}
	return s, v, d.err
}

// agent is the page of what an agent does now.
func (p *Page) agent(ctx context.Context, q ask) (Sheet, error) {
	s, v, err := p.head(ctx, q, "now")
	if err != nil {
		return s, err
	}
	name := v.Agent.Agent
	if q.Acts {
		d := drawer{page: p}
		if s.Parts = append(s.Parts, d.part(Part{ID: "agent-send", Still: true}, "agent-send", v)); d.err != nil {
			return s, d.err
		}
	}
	shows := []func() (Part, error){
		func() (Part, error) { return p.conversation(ctx, name) },
		func() (Part, error) { return p.terminal(ctx, name) },
	}
	for _, show := range shows {
		part, err := show()
		if err != nil {
			return s, err
		}
		s.Parts = append(s.Parts, part)
	}
	queued, err := p.queue(ctx, name, q.Acts)
	if err != nil {
		return s, err
	}
	triggers, err := p.triggers(name, q.Acts)
	s.Parts = append(append(s.Parts, queued...), triggers)
	return s, err
}

// note returns what is shown in place of something that cannot be read.
func (p *Page) note(id, title string, err error) (Part, error) {
	html, err := p.draw("agent-note", map[string]string{"Title": title, "Note": err.Error()})
	return Part{ID: id, HTML: html}, err
}

// conversation is what an agent was asked, said and did: each line a part of its own, so
// that only new ones are sent.
func (p *Page) conversation(ctx context.Context, name string) (Part, error) {
	const id, title = "agent-said", "Conversation"
	lines, err := p.opt.Agents.Said(ctx, name)
	if err != nil {
		return p.note(id, title, err)
	}
	html, err := p.draw("agent-said", map[string]int{"Lines": len(lines)})
	if err != nil {
		return Part{}, err
	}
	part := Part{ID: id, HTML: html, KidsTag: "ol", KidsClass: "said-lines"}
	for _, l := range lines {
		html, err := p.draw("agent-line", l)
		if err != nil {
			return Part{}, err
		}
		part.Kids = append(part.Kids, Part{ID: "said-" + strconv.Itoa(l.ID), Tag: "li", Class: "said-" + kindOf(l), HTML: html})
	}
	return part, nil
}

// kindOf returns our word for the kind of a line.
func kindOf(l window.Line) string {
	switch {
	case l.Failed:
		return "failed"
	case l.Kind == transcript.Prompt:
		return "prompt"
	case l.Kind == transcript.Tool:
		return "tool"
	case l.Kind == transcript.Result:
		return "result"
	}
	return "text"
}

func (p *Page) terminal(ctx context.Context, name string) (Part, error) {
	s, err := p.opt.Agents.Screen(ctx, name)
	if err != nil {
		s = Screen{Note: err.Error()}
	}
	html, err := p.draw("agent-screen", struct {
		Screen
		Agent string
	}{s, name})
	return Part{ID: "agent-screen", Tag: "details", Class: "fold", HTML: html}, err
}

// queue is what is queued, and what was given up; each takes no room where there is nothing.
func (p *Page) queue(ctx context.Context, name string, acts bool) ([]Part, error) {
	const id, title = "agent-queue", "Queue"
	all, err := p.opt.Agents.Queue(ctx, name)
	if err != nil {
		part, err := p.note(id, title, err)
		return []Part{part}, err
	}
	waiting, _ := p.opt.Approvals.Waiting() // the page of approvals says what cannot be read
	for _, r := range waiting {
		if i := slices.IndexFunc(all.Entries, func(e Entry) bool { return e.Aside && e.ID == r.Entry }); i >= 0 && r.Agent == name {
			all.Entries[i].Answer = approvalURL(r.ID)
		}
	}
	d, v := drawer{page: p}, queueView{all, name, acts}
	return []Part{d.part(Part{ID: id}, id, v), d.part(Part{ID: "agent-dead"}, "agent-dead", v)}, d.err
}

// queueView is a Queue, whose it is, and whether the viewer may act.
type queueView struct {
	Queue
	Agent string
	Acts  bool
}

func (p *Page) triggers(name string, acts bool) (Part, error) {
	const id, title = "agent-triggers", "Triggers"
	all, err := p.opt.Agents.Triggers(name)
	if err != nil {
		return p.note(id, title, err)
	}
	html, err := p.draw("agent-triggers", struct {
		Triggers []Trigger
		Agent    string
		Acts     bool
	}{all, name, acts})
	return Part{ID: id, HTML: html}, err
}

// agentFunctions are those of the templates of an agent's pages.
func agentFunctions() template.FuncMap {
	return template.FuncMap{
		"ours":        ours,
		"text":        func(t foreign.Text) string { return textOf(t.Raw()) },
		"rendered":    rendered,
		"unmarked":    unmarked,
		"whole":       wholeCall,
		"mark":        func(l window.Line) string { return marks[kindOf(l)] },
		"look":        lookOf,
		"size":        sizeOf,
		"fold":        func(f changes.File, open bool) folded { return folded{f, open} },
		"approvalURL": approvalURL,
		"origin":      func(agent string, source foreign.Text) string { return origin(agent, source.Raw()) },
		"abbreviate":  func(t foreign.Text) string { return foreign.Short(t.Raw(), mostOfLine) },
		"long":        func(t foreign.Text) bool { return len(t) > mostOfLine || strings.Contains(t.Raw(), "\n") },
	}
}

// mostOfLine is how much of a text is shown before it is unfolded.
const mostOfLine = 160

// textOf returns foreign text with its line breaks and without control characters.
func textOf(s string) string {
	var lines []string
	for line := range foreign.Lines(s) {
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// wholeCall is the input of a tool, as people read JSON.
func wholeCall(input foreign.Text) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(input.Raw()), "", "  ") != nil { // it was cut
		return textOf(input.Raw())
	}
	return textOf(b.String())
}

// marks say what a line is.
var marks = map[string]string{"prompt": "asked", "text": "said", "tool": "did", "result": "got", "failed": "failed"}

// lookOf returns the CSS classes of a span of a terminal.
func lookOf(s screen.Style) string {
	var classes []string
	for _, c := range []struct {
		is   bool
		name string
	}{
		{s.Text != screen.None && s.Back == screen.None, "t-" + string(s.Text)},
		{s.Back != screen.None, "t-on t-on-" + string(s.Back)},
		{s.Swapped, "t-swapped"},
		{s.Bold, "t-bold"},
		{s.Faint, "t-faint"},
		{s.Italic, "t-italic"},
		{s.Underlined, "t-under"},
		{s.Crossed, "t-crossed"},
	} {
		if c.is {
			classes = append(classes, c.name)
		}
	}
	return strings.Join(classes, " ")
}
