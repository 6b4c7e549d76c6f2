package queue

import (
	"context"
	"slices"

	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// Text is what the line of an entry says: its id, or "" where nobody gave it one, the
// hash of its line, which counts then, and its prompt.
type Text struct{ ID, Entry, Prompt string }

func (t Text) is(id, entry string) bool { return t.ID == id && (id != "" || t.Entry == entry) }

// Says reports whether an entry of the same id, or without one of the same line, says the
// same.
func (t Text) Says(prompt string) bool { return t.ID == "" || SameText(t.Prompt, prompt) }

// Texts returns what stands in an agent's queue: in flight, queued, and set aside.
func Texts(ctx context.Context, a *config.Agent) (all []Text, err error) {
	err = Read(ctx, a, func(q *inbox.Queue) error {
		return q.Standing(func(id, entry, prompt string) { all = append(all, Text{id, entry, prompt}) })
	})
	return all, err
}

// Gone returns which of the given entries are nowhere in an agent's queue, with their own
// text, and which have ended there: as dead letters with that text, or by an outbox record
// that counts. The others stand.
func Gone(ctx context.Context, a *config.Agent, all []Text, counts func(inbox.Delivery) bool) (gone, ended []Text, err error) {
	gone, err = standNot(ctx, a, all)
	if len(gone) == 0 || err != nil {
		return nil, nil, err
	}
	if ended, err = haveEnded(ctx, a, gone, counts); err != nil {
		return nil, nil, err
	}
	gone = slices.DeleteFunc(gone, func(t Text) bool { return slices.Contains(ended, t) })
	if len(gone) > 0 { // one that was queued again, or set aside, while the files were read
		gone, err = standNot(ctx, a, gone)
	}
	return gone, ended, err
}

// standNot returns those that do not stand. One that stands under an id that is not among
// them stands all the same.
func standNot(ctx context.Context, a *config.Agent, all []Text) ([]Text, error) {
	standing, err := Texts(ctx, a)
	if err != nil {
		return nil, err
	}
	named, others := make(map[string][]string, len(standing)), map[string]bool{}
	lines, asked := make(map[string]bool, len(standing)), make(map[string]bool, len(all))
	for _, t := range all {
		asked[t.ID] = true
	}
	for _, s := range standing {
		named[s.ID] = append(named[s.ID], cleanText(s.Prompt))
		lines[s.Entry] = true
		if !asked[s.ID] || s.ID == "" {
			others[cleanText(s.Prompt)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(t Text) bool {
		text := cleanText(t.Prompt)
		return others[text] || t.ID != "" && slices.Contains(named[t.ID], text) || t.ID == "" && lines[t.Entry]
	}), nil
}

// haveEnded returns those that have ended.
func haveEnded(ctx context.Context, a *config.Agent, all []Text, counts func(inbox.Delivery) bool) (ended []Text, err error) {
	end := func(id, entry string, as func(Text) bool) {
		for _, t := range all {
			if t.is(id, entry) && as(t) && !slices.Contains(ended, t) {
				ended = append(ended, t)
			}
		}
	}
	err = Read(ctx, a, func(q *inbox.Queue) error {
		for d, err := range q.Deliveries() {
			if err != nil {
				return err
			}
			if counts(d) {
				end(d.ID, d.EntryID, func(Text) bool { return true })
			}
		}
		for d, err := range q.DeadLetters() {
			if err != nil {
				return err
			}
			end(d.ID, d.EntryID, func(t Text) bool { return SameText(t.Prompt, d.Prompt()) })
		}
		return nil
	})
	return ended, err
}
