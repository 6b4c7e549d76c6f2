package agent

import (
	"fmt"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
)

// Answers records what its session's Stop hooks have decided.
func (a *Agent) Answers(all []hook.Answered) {
	for _, h := range all {
		a.note(journal.Event{Kind: journal.Stopped, Answer: h.Answer, Done: h.Done, Entry: h.Entry, Reason: foreign.Text(h.Why)})
	}
}

// Strays records the prompts of its session that neither its queue nor a person has given,
// and that no report had before.
func (a *Agent) Strays(all []session.Stray) {
	for _, s := range all {
		if s.Number > a.life.strays {
			a.life.strays = s.Number
			a.note(journal.Event{Kind: journal.Stray, Session: a.life.session, Reason: foreign.Text(s.Who()), Detail: foreign.Text(s.Prompt)})
		}
	}
}

// saidEvery is how often the journal gets what a session says about itself.
const saidEvery = time.Minute

// hears writes what the live session says about itself to the journal: new words, from time to
// time.
func (a *Agent) hears(said *session.Said, now time.Time) {
	l := &a.life
	if said == nil || said.Text == "" || said.Text == l.noted.Text || now.Sub(l.noted.At) < saidEvery {
		return
	}
	l.noted = session.Said{At: now, Text: said.Text}
	a.note(journal.Event{Kind: journal.Alive, Session: l.session, Detail: foreign.Text(said.Text)})
}

// Full says that the conversation of its session is fuller than max-context allows; "": it is
// not, or that is not known.
func (a *Agent) Full() string {
	told := a.life.last.Told
	if a.def.MaxContext == 0 || told == nil || told.Context.Used < float64(a.def.MaxContext) {
		return ""
	}
	return fmt.Sprintf("its context is %.0f%% full, and max-context is %d%%: the next session begins a new conversation", told.Context.Used, a.def.MaxContext)
}
