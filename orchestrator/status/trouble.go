package status

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Trouble is something that keeps an agent from working, or that a person has to
// know about: what is wrong, since when, and what to do.
type Trouble struct {
	Agent string `json:"agent"`
	What  Word   `json:"what"`
	// Part tells it from others of its agent that are of the same kind; "": there is only one.
	Part  string    `json:"part,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Text says what is wrong, for how long and why. It gives no advice.
	Text string `json:"text"`
	// Do is what to type or to change. Then is what follows: a command, or words; or "".
	Do   string `json:"do"`
	Then string `json:"then,omitempty"`
	// cause is what it has in common with the same trouble of another agent. dead is the
	// dead letters that it is about.
	cause string
	dead  given
	ours  string
	aside bool // the queue goes on meanwhile
	// stranger is true if somebody may have made it who has nothing to do with the fleet.
	stranger bool
}

// ByStranger reports whether somebody may have made the trouble who has nothing to do with the
// fleet: it can wait until a person looks.
func (t Trouble) ByStranger() bool { return t.stranger }

// Commands are those of Do and Then in words, without what all commands of the fleet begin
// with. What is in words only is none.
func (t Trouble) Commands() (all [][]string) {
	for _, step := range []string{t.Do, t.Then} {
		if line, ok := strings.CutPrefix(step, t.ours+" "); ok {
			line, _, _ = strings.Cut(line, "   # ")
			all = append(all, strings.Fields(line))
		}
	}
	return all
}

// sign is one trouble, before it gets the agent's name and the command's prefix.
type sign struct {
	what     Word
	part     string
	since    time.Time
	text     string // what is wrong and for how long, or ""
	why      string // or ""
	cause    string // if that is not why
	do, then step
	dead     given
	aside    bool // the queue goes on meanwhile
	stranger bool
}

func (s sign) of(agent, ours string) Trouble {
	text := strings.TrimSuffix(strings.TrimPrefix(s.text+": "+s.why, ": "), ": ")
	return Trouble{
		Agent: agent, What: s.what, Part: s.part, Since: s.since, Text: text, Do: s.do.in(ours), Then: s.then.in(ours),
		cause: cmp.Or(s.cause, s.why), dead: s.dead, ours: ours, aside: s.aside, stranger: s.stranger,
	}
}

// step is something to do: words, or a command without its prefix, and a remark. The
// zero value is nothing.
type step struct{ words, command, remark string }

func (s step) in(ours string) string {
	switch {
	case s.command == "":
		return s.words
	case s.remark == "":
		return ours + " " + s.command
	}
	return ours + " " + s.command + "   # " + s.remark
}

// byItself is what follows where nobody has to say that the cause is gone.
var byItself = step{words: "it continues by itself"}

// sorted sorts troubles, most urgent first.
func sorted(all []Trouble) []Trouble {
	order := Words()
	slices.SortStableFunc(all, func(x, y Trouble) int {
		return cmp.Compare(slices.Index(order, x.What), slices.Index(order, y.What))
	})
	return all
}

// Alike is a trouble that several agents have for the same cause: the first one's,
// and the names of the others.
type Alike struct {
	Trouble
	Others []string
}

// Together returns troubles in their order, with those of one cause as one. Causes
// are equal that differ only in the agent's own name.
func Together(all []Trouble) []Alike {
	type cause struct {
		what          Word
		why, do, then string
	}
	var together []Alike
	seen := map[cause]int{}
	for _, t := range all {
		c := cause{t.What, nameless(t.cause, t.Agent), nameless(t.Do, t.Agent), nameless(t.Then, t.Agent)}
		at, known := seen[c]
		if !known || t.Agent == together[at].last() { // another part of the same agent
			seen[c] = len(together)
			together = append(together, Alike{Trouble: t})
			continue
		}
		a := &together[at]
		a.Others = append(a.Others, t.Agent)
		if t.What == HasDeadLetters { // one command shows all of them
			a.dead = a.dead.and(t.dead)
			a.Since, a.Text, a.Do = a.dead.since, a.dead.text(), a.ours+" dead-letter"
		}
	}
	return together
}

// last is the last agent that has it.
func (a Alike) last() string {
	if n := len(a.Others); n > 0 {
		return a.Others[n-1]
	}
	return a.Agent
}

// mostInCommand is how many agents a command names.
const mostInCommand = 8

// ForAll returns what is to be done about it for all that have it, where a command takes
// several agents.
func (a Alike) ForAll() Trouble {
	t := a.Trouble
	t.Do, t.Then = a.forAll(t.Do), a.forAll(t.Then)
	return t
}

func (a Alike) forAll(step string) string {
	for _, verb := range []string{"resume", "doctor"} {
		one := a.ours + " " + verb + " " + a.Agent
		rest, is := strings.CutPrefix(step, one)
		switch {
		case !is || rest != "" && rest[0] != ' ' || len(a.Others) == 0:
		case len(a.Others) < mostInCommand:
			return one + " " + strings.Join(a.Others, " ") + rest
		case verb == "resume" && rest == "":
			return one + "   # and the others: it takes several names, or --all"
		}
	}
	return step
}

// nameless is a text in which an agent's name stands for itself no more.
func nameless(text, agent string) string {
	if agent == "" {
		return text
	}
	for from := 0; ; {
		i := strings.Index(text[from:], agent)
		if i < 0 {
			return text
		}
		i += from
		end := i + len(agent)
		if i > 0 && inName(text[i-1]) || end < len(text) && inName(text[end]) {
			from = end
			continue
		}
		text = text[:i] + "\x00" + text[end:]
		from = i + 1
	}
}

// inName reports whether a character can be part of an agent's name.
func inName(c byte) bool {
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
