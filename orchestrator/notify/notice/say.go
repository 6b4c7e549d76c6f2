package notice

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/hook/foreign"
)

// phrases say what is true of the agent, or of the fleet, and what is when it is over.
var phrases = map[Kind]struct{ is, over string }{
	"queue-asks":       {"needs an answer about its queue", "knows where its queue continues"},
	"directory-lost":   {"has lost its directory", "has its directory again"},
	"unusable":         {"cannot use its directory or queue", "can use its directory and queue again"},
	"approval":         {"waits for approval", "has its answer"},
	"held":             {"is held", "is no longer held"},
	"queue-lost":       {"has lost prompts", "was resumed after its loss of prompts"},
	"check-trouble":    {"has a check that cannot be run", "has its checks run again"},
	"stuck":            {"gets no work done: the service fails", "gets its work done again"},
	"trigger-fails":    {"has a trigger that fails", "has a trigger that works again"},
	"requests-refused": {"refuses requests of a webhook", "no longer refuses them"},
	"not-sent":         {"cannot queue prompts whose time has come", "has queued the prompts whose time had come"},
	"stray-prompt":     {"was given a prompt past its queue", "was given none past its queue in its last session"},
	"parked":           {"is parked", "is no longer parked"},
	"over-budget":      {"has spent its budget", "may spend again"},
	"paused":           {"was paused by an agent", "is no longer paused"},
	"store-fails":      {"cannot keep what the fleet remembers", "keeps what the fleet remembers again"},
	"not-listening":    {"does not serve one of its addresses", "serves its addresses again"},
	"client-drift":     {"has a client that failed the probe", "has a client that passes the probe"},
	Login:              {"is refused for its login, key or bill", "is no longer refused"},
	QueueStuck:         {"has a queue that does not move", "has a queue that moves again"},
	GivenUp:            {"has given up prompts", ""},
	Crashed:            {"was started after a crash", ""},
	TargetFails:        {"cannot tell somebody", "can tell everybody again"},
	PingFails:          {"cannot send its ping", "sends its ping again"},
	DiskFull:           {"has a full disk", "has room on that disk again"},
	Finding:            {"has a finding of doctor", "no longer has that finding of doctor"},
	Reply:              {"has replied", ""},
	Waits:              {"cannot work on a prompt that waits", "works on its prompts again"},
	Test:               {"sends a test", ""},
}

// Headline says on one line what a notice is about.
func (n Notice) Headline() string {
	who := n.Agent
	if who == "" {
		who = "the scheduler"
	}
	p, known := phrases[n.Kind]
	if n.Kind == TargetFails && n.Not != "" {
		p.is, p.over = "cannot tell "+n.Not, "can tell "+n.Not+" again"
	}
	switch {
	case !known:
		return who + ": " + string(n.Kind)
	case n.Event == Ended:
		return who + " " + p.over
	case n.Event == Lasts:
		return who + " still " + p.is
	}
	return who + " " + p.is
}

// mostHeadlines is how many headlines a title has.
const mostHeadlines = 3

// Title says on one line what several notices of a fleet are about.
func Title(fleet string, all []Notice) string {
	all = together(all)
	var parts []string
	for _, n := range all[:min(len(all), mostHeadlines)] {
		parts = append(parts, n.Headline())
	}
	if more := len(all) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return foreign.Short(fmt.Sprintf("[%s] %s", fleet, strings.Join(parts, ", ")), 200)
}

// together makes one notice of several targets that fail, or do not any more, with the
// names of all of them.
func together(all []Notice) (short []Notice) {
	first := map[Event]int{}
	for _, n := range all {
		at, before := first[n.Event]
		switch {
		case n.Kind != TargetFails || n.Not == "":
		case before:
			short[at].Not += ", " + n.Not
			continue
		default:
			first[n.Event] = len(short)
		}
		short = append(short, n)
	}
	return short
}

// Text says everything that people want to know about several notices, in at most
// that many bytes. All but a reply is on one line each: nothing that others wrote
// looks like a line of ours.
func Text(all []Notice, most int) string {
	var b strings.Builder
	for i, n := range all {
		part := n.text()
		if left := len(all) - i; i > 0 && b.Len()+len(part) > most-100 {
			fmt.Fprintf(&b, "\nand %d more: heartbeat notify log shows them", left)
			break
		}
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(part)
	}
	return cut(b.String(), most)
}

func (n Notice) text() string {
	var b strings.Builder
	b.WriteString(n.Headline())
	if text := foreign.Line(n.Text); text != "" && n.Event != Ended {
		b.WriteString(n.behind(text))
	}
	var remarks []string
	switch {
	case n.Event == Ended:
		remarks = append(remarks, "after "+span(n.lasted()))
	case n.Event == Lasts:
		remarks = append(remarks, "for "+span(n.At.Sub(n.Since)))
	}
	switch {
	case n.Times > 1 && n.Kind == GivenUp:
		remarks = append(remarks, prompts(n.Times))
	case n.Times > 1 && n.Event == Happened:
		remarks = append(remarks, fmt.Sprintf("%d times", n.Times))
	case n.Times > 1:
		remarks = append(remarks, fmt.Sprintf("it comes and goes: %d times", n.Times))
	}
	if len(remarks) > 0 {
		b.WriteString(" (" + strings.Join(remarks, "; ") + ")")
	}
	if n.Do != "" {
		b.WriteString("\n    " + foreign.Line(n.Do))
	}
	if n.Link != "" {
		b.WriteString("\n    " + foreign.Line(n.Link))
	}
	if n.Reply != "" {
		for line := range foreign.Lines(n.Reply) {
			b.WriteString("\n  " + line)
		}
	}
	return b.String()
}

// behind is a text as it stands behind the headline, whose last words it may begin with.
func (n Notice) behind(text string) string {
	said := strings.TrimPrefix(phrases[n.Kind].is, "is ")
	if rest, twice := strings.CutPrefix(text, said+" "); twice && said != "" {
		return " " + rest
	}
	return ": " + text
}

// lasted is how long it was so.
func (n Notice) lasted() time.Duration {
	end := n.Over
	if end.IsZero() { // of an earlier version
		end = n.At
	}
	return max(0, end.Sub(n.Since))
}

// span formats a duration in its one or two largest units.
func span(d time.Duration) string {
	switch d = d.Abs(); {
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

// cut shortens a text to so many bytes, at the end of a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "…"
	end := max(0, most-len(mark))
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
