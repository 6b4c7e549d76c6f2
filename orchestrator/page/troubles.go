package page

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"heartbeat/orchestrator/status"
)

// mostTroubles is how many troubles the fleet's page shows.
const mostTroubles = 50

// trouble is what is wrong with one agent or with several, as a sentence, and what can be done
// about it here.
type trouble struct {
	status.Alike
	// Here is true on the agent's own page, which does not name it again.
	Here bool
	// Ask is what an agent asks, or nil.
	Ask  *asked
	Taps []tap
	// Links are the pages that show what a command to type would show, or on which it is
	// answered. Letters are the agents whose dead letters it is about, if they are several.
	Links   []tab
	Letters []letters
	// Hints say when to press one of Taps.
	Hints []string
	// Steps are what has to be done elsewhere: commands, or words.
	Steps []string
	// refused are the rules that would have allowed what was refused.
	refused []string
}

// letters are the dead letters of one agent.
type letters struct {
	Agent string
	Count string
	Acts  bool
}

// Agents are those that have it.
func (t trouble) Agents() []string {
	switch {
	case t.Ask != nil:
		return []string{t.Ask.Agent}
	case t.Agent == "":
		return nil
	}
	return append([]string{t.Agent}, t.Others...)
}

// Named are the agents that the sentence names.
func (t trouble) Named() []string {
	all := t.Agents()
	return all[:min(len(all), mostNamed)]
}

// Further is how many it does not name.
func (t trouble) Further() int { return len(t.Agents()) - len(t.Named()) }

// mostNamed is how many agents a sentence names.
const mostNamed = 5

// Loud reports whether something is wrong, or somebody waits for an answer.
func (t trouble) Loud() bool { return t.Ask != nil || t.What.Alarming() }

// leads are the words between the agents and what status says of them; the others are led by
// a colon.
var leads = map[status.Word][2]string{
	status.IsHeld: {" is ", " are "}, status.IsPaused: {" is ", " are "}, status.IsParked: {" is ", " are "}, status.OverBudget: {" is ", " are "},
	status.BacksOff: {" is ", " are "}, status.WasHeld: {" is ", " are "}, status.HasDeadLetters: {" has ", " have "},
	status.QueueAsks: {" asks where its queue continues: ", " ask where their queues continue: "},
}

// Says is the rest of the sentence, after the agents.
func (t trouble) Says() string {
	one := 0
	if len(t.Agents()) > 1 {
		one = 1
	}
	lead, known := leads[t.What]
	switch {
	case len(t.refused) > 0:
		return [2]string{" was not allowed ", " were not allowed "}[one] + strings.Join(t.refused, ", ") + " in the last session."
	case t.Agent == "":
		return stop(capital(t.Text))
	case !known:
		lead[one] = ": "
	}
	return lead[one] + stop(t.Text)
}

// tap is a button: what it does, and what it says; Of names the agent for people who hear it
// alone. Class is its look: a quiet one is not what to do first.
type tap struct {
	Do, Text, Of string
	Class        string // yes, no, quiet or ""
}

// tryNow is the button of what is tried again anyway.
const tryNow = "Try now"

// tapsOf returns the buttons for the commands that a trouble says to type, as far as a button can
// replace them. stays is true if a resume does not end the trouble.
func tapsOf(t status.Trouble, agents []string, stays bool) (taps []tap) {
	commands := t.Commands()
	if (t.What == status.IsParked || t.What == status.BacksOff) && !stays {
		commands = append(commands, []string{"resume", t.Agent}) // which tries again at once
	}
	for _, command := range commands {
		for _, agent := range agents[:min(len(agents), mostTaps)] {
			words := slices.Clone(command)
			if len(words) > 1 && words[1] == t.Agent {
				words[1] = agent
			}
			one := tap{Do: strings.Join(words, " "), Text: capital(words[0]), Of: agent}
			if d, _, ok := parseDeed(url.Values{"do": {one.Do}}); !ok || d.text {
				continue
			}
			switch {
			case words[0] == "trigger":
				one.Text = "Fire " + words[2] + " now"
			case words[0] == "reload": // of a file that may be as it was
				one.Class, one.Of = "quiet", ""
			case words[0] == "resume" && (t.What == status.IsParked || t.What == status.BacksOff):
				one.Text, one.Class = tryNow, "quiet"
			}
			if len(agents) > 1 && one.Of != "" {
				one.Text, one.Of = one.Text+" "+agent, ""
			}
			if !slices.ContainsFunc(taps, func(other tap) bool { return other.Do == one.Do }) {
				taps = append(taps, one)
			}
		}
	}
	return taps
}

// linksOf returns the pages that show the output of commands that a trouble says to type.
func linksOf(t status.Trouble) (links []tab) {
	for _, c := range t.Commands() {
		if one := linkOf(t, c); one.URL != "" && !slices.Contains(links, one) {
			links = append(links, one)
		}
	}
	return links
}

// linkOf returns the page that shows the output of a command, if there is one.
func linkOf(t status.Trouble, c []string) tab {
	own := len(c) > 1 && c[1] == t.Agent
	switch {
	case c[0] == "approval":
		return tab{Text: "Answer", URL: Root + "approvals"}
	case c[0] == "answer" && own:
		return tab{Text: "Answer", URL: agentURL(t.Agent) + "#agent-queue"}
	case c[0] == "inbox" && own:
		return tab{Text: "Its queue", URL: agentURL(t.Agent) + "#agent-queue"}
	case c[0] == "dead-letter" && own:
		return tab{Text: "Read", URL: agentURL(t.Agent) + "#agent-dead"}
	case c[0] == "logs" && own && !slices.Contains(c, "--raw"):
		return tab{Text: "What it did", URL: agentURL(t.Agent) + "/record"}
	case c[0] == "usage" && own:
		return tab{Text: "What was spent", URL: agentURL(t.Agent) + "/plots"}
	}
	return tab{}
}

// mostTaps is for how many agents with the same trouble there are buttons.
const mostTaps = 5

// problems are what needs a person, in the order in which it is shown: the troubles, and each
// request that waits for an answer in place of the trouble that there are some.
func (p *Page) problems(f Fleet) []trouble {
	waiting, _ := p.opt.Approvals.Waiting() // the page of approvals says what cannot be read
	known := map[string]bool{}
	for _, a := range f.Agents {
		known[a.Agent] = true
	}
	asking := map[string]bool{}
	var asks []trouble
	for _, r := range waiting {
		if known[r.Agent] {
			asking[r.Agent] = true
			asks = append(asks, trouble{Ask: &asked{Request: r}})
		}
	}
	others := slices.DeleteFunc(slices.Clone(f.Troubles), func(t status.Trouble) bool { return t.What == status.NeedsApproval && asking[t.Agent] })
	order := status.Words()
	approvals := slices.Index(order, status.NeedsApproval)
	var all []trouble
	for _, t := range status.Together(others) {
		if slices.Index(order, t.What) >= approvals {
			all, asks = append(all, asks...), nil
		}
		all = append(all, trouble{Alike: t})
	}
	return append(all, asks...)
}

// acted gives a trouble of agents what can be done about it.
func (t *trouble) acted(of map[string]status.Agent, acts bool) {
	if t.Ask != nil {
		t.asks(acts)
		return
	}
	t.Links = linksOf(t.Trouble)
	agents := t.Agents()
	if acts {
		_, stays := of[t.Agent].Stays("") // a resume does not end what it waits for
		t.Taps = tapsOf(t.Trouble, agents, stays)
	}
	switch {
	case t.What == status.ToolsRefused:
		for _, d := range of[t.Agent].Denied {
			t.refused = append(t.refused, d.Rule)
			for _, agent := range agents {
				t.allows(agent, d.Rule, acts && len(agents) <= mostTaps)
			}
		}
	case t.What == status.HasDeadLetters && len(agents) > 1:
		t.Links, t.Letters = nil, lettersOf(agents, of, acts)
	case t.What == status.HasDeadLetters && acts && ours(t.Agent):
		t.Taps = append(t.Taps, tap{Do: "retry-all " + t.Agent, Text: "Retry", Of: t.Agent, Class: "quiet"})
		if of[t.Agent].Dead > 1 {
			t.Taps[0].Text = "Retry all"
		}
	}
	t.steps(acts)
}

// longestRule is how long a rule may be, in bytes, for a button.
const longestRule = 100

// allows adds the button with which an agent may use what it was refused.
func (t *trouble) allows(agent, rule string, acts bool) {
	one := tap{Do: "allow " + agent + " " + url.QueryEscape(rule), Text: "Allow " + rule, Of: "for " + agent}
	if len(t.Others) > 0 {
		one.Text, one.Of = one.Text+" "+one.Of, ""
	}
	if _, _, ok := parseDeed(url.Values{"do": {one.Do}}); ok && acts && ours(agent) && len(rule) <= longestRule && !strings.Contains(rule, "…") {
		t.Taps = append(t.Taps, one)
	}
}

// steps fills in what has to be done elsewhere, and when to press a button.
func (t *trouble) steps(acts bool) {
	for i, step := range []string{t.Do, t.Then} {
		one := t.Trouble
		one.Do, one.Then = step, ""
		commands := one.Commands()
		_, remark, _ := strings.Cut(step, "   # ")
		switch {
		case step == "":
		case t.What == status.ToolsRefused && len(t.Taps) == len(t.refused)*len(t.Agents()):
		case t.What == status.ToolsRefused && i == 0:
			t.Steps = append(t.Steps, "To allow it, type heartbeat edit "+t.Agent+", and add it to what the agent may use.")
		case len(commands) == 0 && commandOf(step) != nil: // of another fleet, or a program's
			t.Steps = append(t.Steps, step)
		case len(commands) == 0 && strings.Contains(step, "/login"):
			t.Steps = append(t.Steps, stop("Log in where the fleet runs: "+step))
		case len(commands) == 0 && i == 0:
			t.Steps = append(t.Steps, stop("To do: "+step))
		case len(commands) == 0:
			t.Steps = append(t.Steps, stop(capital(step)))
		case t.What == status.HasDeadLetters, linkOf(one, commands[0]).URL != "":
		case !acts || !slices.ContainsFunc(t.Taps, func(p tap) bool { return p.Do == strings.Join(commands[0], " ") }):
			t.Steps = append(t.Steps, step)
		case remark != "":
			hint, by := strings.CutPrefix(remark, "tries at once; otherwise ")
			if !by {
				hint = commands[0][0] + " " + hint
			}
			t.Hints = append(t.Hints, stop(capital(hint)))
		}
	}
}

// mostRead is how many bytes of a question, and longestWhole how many of what it is about, stand
// among the troubles with the buttons for yes and no.
const mostRead = 400

// asks gives a request the buttons for yes and no if all that there is to read can stand beside
// them, and it is not grave.
func (t *trouble) asks(acts bool) {
	t.Ask.Acts = acts
	a := t.Ask
	whole := len(a.Question) <= mostRead && len(a.Payload) <= longestWhole && !a.Cut
	switch {
	case a.Answerable() && whole && !a.Grave():
		t.Taps = []tap{{Do: "approve " + a.Agent + " " + a.ID, Text: "Approve", Of: a.Agent, Class: "yes"}, {Do: "reject " + a.Agent + " " + a.ID, Text: "Reject", Of: a.Agent, Class: "no"}}
	case a.Acts:
		t.Links = []tab{{Text: "Read and answer", URL: approvalURL(a.ID)}}
	default:
		t.Links = []tab{{Text: "Read it", URL: approvalURL(a.ID)}}
	}
}

// ID is that of what is unfolded.
func (t trouble) ID() string { return partID("about", t.Ask.ID) }

// Shown reports whether what a request is about stands beside its buttons.
func (t trouble) Shown() bool { return t.Ask != nil && t.Ask.Payload != "" && len(t.Taps) > 0 }

func (d *drawer) troubles(f Fleet, all []trouble) Part {
	of := map[string]status.Agent{}
	for _, a := range f.Agents {
		of[a.Agent] = a
	}
	shown := all[:min(len(all), mostTroubles)]
	for i := range shown {
		shown[i].acted(of, d.acts)
	}
	return d.part(Part{ID: "troubles", Class: "troubles", Label: "What needs a person"}, "troubles", struct {
		Troubles   []trouble
		More, Many int
	}{shown, len(all) - len(shown), len(all)})
}

func lettersOf(agents []string, of map[string]status.Agent, acts bool) (all []letters) {
	for _, name := range agents {
		count := strconv.Itoa(of[name].Dead)
		if of[name].DeadMore {
			count += "+"
		}
		all = append(all, letters{Agent: name, Count: count, Acts: acts && ours(name)})
	}
	return all
}

// answerAt returns the address at which to answer an agent: its queue if that asks, its request
// if that is the only one, otherwise the list of requests.
func answerAt(a status.Agent) string {
	switch {
	case a.Asks:
		return agentURL(a.Agent) + "#agent-queue"
	case a.Approval != nil && a.Approval.More == 0:
		return approvalURL(a.Approval.ID)
	}
	return Root + "approvals"
}
