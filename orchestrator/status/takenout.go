package status

import (
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
)

// TakenOut are prompts that were queued and that somebody took out of the inbox, by
// putting another file in its place, cutting or overwriting it.
type TakenOut struct {
	Entries int       `json:"entries"`
	Why     string    `json:"why"`
	Since   time.Time `json:"since,omitzero"`
	// IDs are those of the first ones, of ours, as far as they are known.
	IDs []string `json:"ids,omitempty"`
	// Textless are those whose text went with the inbox: they cannot be queued again.
	Textless int `json:"textless,omitempty"`
	// Dead are those of them that are dead letters already; Filed is true if all are.
	Dead  int  `json:"dead_letters,omitempty"`
	Filed bool `json:"filed"`
}

// TakenOutOf returns what was taken out of an inbox: what nobody has filed yet, and the dead
// letters that others are; nil if nothing was.
func TakenOutOf(missing inbox.Gone, dead inbox.DeadCount) *TakenOut {
	t := &TakenOut{
		Entries: missing.Entries + dead.Lost, Why: missing.Why, IDs: missing.IDs, Textless: missing.Textless + dead.Textless,
		Dead: dead.Lost, Filed: missing.Entries == 0,
	}
	switch last := dead.LastLost; {
	case t.Entries == 0:
		return nil
	case t.Filed:
		if t.Why, t.Since = last.Cause, last.At; last.ID != "" {
			t.IDs = []string{last.ID}
		}
	}
	return t
}

// sign is what is said about prompts that somebody took out of an agent's inbox. asks is
// true if its queue asks a person, whose answer makes them dead letters.
func (t *TakenOut) sign(agent string, asks bool, now time.Time) sign {
	text := t.What()
	if !t.Since.IsZero() {
		text += " " + Age(now.Sub(t.Since)) + " ago"
	}
	verb, remark := t.Cure(asks)
	return sign{what: LostPrompts, since: t.Since, text: text, why: t.Cause(), do: step{command: verb + " " + agent, remark: remark}}
}

// What says how many prompts vanished.
func (t *TakenOut) What() string { return plural(t.Entries, "queued prompt") + " vanished" }

// Cause says why they vanished, and which the first ones are.
func (t *TakenOut) Cause() string {
	if len(t.IDs) == 0 {
		return t.Why
	}
	return t.Why + " (" + session.NamesOf(t.IDs, t.Entries) + ")"
}

// Cure is what a person does about it: the command that is to be typed, without the agent,
// and what it is good for. asks is true if the agent's queue asks a person.
func (t *TakenOut) Cure(asks bool) (verb, remark string) {
	if asks && !t.Filed {
		return "answer", "it says which; with an answer they become dead letters"
	}
	return "dead-letter", t.Remedy()
}

// Remedy is what can be done with the dead letters that they are, or become.
func (t *TakenOut) Remedy() string {
	switch {
	case t.Textless == 0:
		return "retry ID queues one again, purge ID deletes it"
	case t.Textless < t.Entries:
		return "retry ID queues one again whose text is known; send the others again, purge ID deletes one"
	}
	return "their text is gone: send them again, or look in a backup of the inbox; purge ID deletes one"
}
