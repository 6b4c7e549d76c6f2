package page

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/status"
)

// mostTroubles is how many troubles the fleet's page shows.
const mostTroubles = 50

// trouble is what is wrong with one agent or with several, and what can be done here.
type trouble struct {
	status.Alike
	Taps []tap
	// Answer is the page on which to answer it, or "". Reads is true if there is something to
	// read first.
	Answer string
	Reads  bool
	// Links are the pages that show what a command to type would show. Letters are the agents
	// whose dead letters it is about.
	Links   []tab
	Letters []letters
}

// letters are the dead letters of one agent.
type letters struct {
	Agent string
	Count string
	Acts  bool
	Here  bool // the page is the agent's
}

// Agents are those that have it.
func (t trouble) Agents() []string {
	if t.Agent == "" {
		return nil
	}
	return append([]string{t.Agent}, t.Others...)
}

// Word is the kind of trouble, for people.
func (t trouble) Word() string { return strings.ReplaceAll(string(t.What), "-", " ") }

// ID is that of what is unfolded.
func (t trouble) ID() string { return partID("todo", string(t.What)+"-"+t.Agent) }

// Plain reports whether the advice is shown unfolded, because no button does it.
func (t trouble) Plain() bool { return len(t.Taps)+len(t.Links)+len(t.Letters) == 0 && t.Answer == "" }

// tap is a button: what it does, and what it says. A quiet one is not what to do first.
type tap struct {
	Do, Text string
	Quiet    bool
}

// tapsOf returns the buttons for the commands that a trouble says to type, as far as a button can
// replace them. stays is true if a resume does not end the trouble.
func tapsOf(t status.Trouble, agents []string, stays bool) (taps []tap) {
	commands := t.Commands()
	if (t.What == status.IsHeld || t.What == status.IsParked || t.What == status.BacksOff) && !stays {
		commands = append(commands, []string{"resume", t.Agent}) // which tries again at once
	}
	for _, command := range commands {
		for _, agent := range agents[:min(len(agents), mostTaps)] {
			words := slices.Clone(command)
			if len(words) > 1 && words[1] == t.Agent {
				words[1] = agent
			}
			one := tap{Do: strings.Join(words, " "), Quiet: words[0] == "reload"} // of a file that may be as it was
			if d, _, ok := parseDeed(url.Values{"do": {one.Do}}); !ok || d.text {
				continue
			}
			if one.Text = capital(one.Do); !slices.Contains(taps, one) {
				taps = append(taps, one)
			}
		}
	}
	return taps
}

// linksOf returns the pages that show the output of commands that a trouble says to type.
func linksOf(t status.Trouble) (links []tab) {
	for _, c := range t.Commands() {
		if len(c) < 2 || c[1] != t.Agent {
			continue
		}
		switch c[0] {
		case "logs":
			links = append(links, tab{Text: "What it did", URL: agentURL(t.Agent) + "/record"})
		case "usage":
			links = append(links, tab{Text: "What was spent", URL: agentURL(t.Agent) + "/plots"})
		}
	}
	return links
}

// mostTaps is for how many agents with the same trouble there are buttons.
const mostTaps = 5

// DeadLetters reports whether the trouble is about dead letters.
func (t trouble) DeadLetters() bool { return t.What == status.HasDeadLetters }

func (d *drawer) troubles(f Fleet) Part {
	all := status.Together(f.Troubles)
	more := max(0, len(all)-mostTroubles)
	of := map[string]status.Agent{}
	for _, a := range f.Agents {
		of[a.Agent] = a
	}
	waiting, _ := d.page.opt.Approvals.Waiting() // the page of approvals says what cannot be read
	var shown []trouble
	for _, t := range all[:len(all)-more] {
		one := trouble{Alike: t, Answer: answerOf(f, t), Links: linksOf(t.Trouble)}
		_, stays := of[t.Agent].Stays("") // a resume does not end what it waits for
		if d.acts {
			one.Taps = tapsOf(t.Trouble, one.Agents(), stays)
		}
		switch {
		case one.DeadLetters():
			one.Letters = lettersOf(one.Agents(), of, d.acts)
		case t.What == status.NeedsApproval:
			one.asks(waiting, d.acts)
		}
		shown = append(shown, one)
	}
	return d.part(Part{ID: "troubles", Class: "troubles", Label: "What needs a person"}, "troubles", struct {
		Troubles   []trouble
		More, Many int
	}{shown, more, len(all)})
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

// asks gives a trouble the buttons for yes and no if the question is all that there is to
// read.
func (t *trouble) asks(waiting []approval.Request, acts bool) {
	var one []approval.Request
	for _, r := range waiting {
		if r.Agent == t.Agent {
			one = append(one, r)
		}
	}
	t.Reads = true
	if len(one) != 1 || len(t.Others) > 0 || !acts {
		return
	}
	if a := (asked{Request: one[0], Acts: acts}); a.Answerable() && !a.Grave() && a.Payload == "" {
		t.Reads = false
		t.Taps = []tap{{Do: "approve " + a.Agent + " " + a.ID, Text: "Approve"}, {Do: "reject " + a.Agent + " " + a.ID, Text: "Reject", Quiet: true}}
	}
}

// answerOf returns the address at which to answer a trouble, or "".
func answerOf(f Fleet, t status.Alike) string {
	if t.What != status.NeedsApproval && t.What != status.QueueAsks {
		return ""
	}
	for _, a := range f.Agents {
		if t.What == status.NeedsApproval && !t.Stops() {
			break // the agent's own address is that of the request which stops it
		}
		if a.Agent == t.Agent && (a.Asks || len(t.Others) == 0) {
			return answerAt(a)
		}
	}
	return Root + "approvals"
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
