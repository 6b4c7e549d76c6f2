package entries

import (
	"fmt"
	"strings"

	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// names are the columns of the table entries, as values and fields have them.
const names = `agent, seq, delivery, entry_id, id, source, state, lane, place, not_before, accepted, attempt, repeats, untouched, unread,
	checked, iteration, most, check_no, claimed, interrupted, handover, failure, cancel, suspended, conversation, ended, reason, cause`

// numbers are the parameters for names.
var numbers = func() string {
	var all []string
	for i := range strings.Split(names, ",") {
		all = append(all, fmt.Sprintf("$%d", i+1))
	}
	return strings.Join(all, ", ")
}()

// set is the part of an UPDATE that writes all columns but the key and what never changes.
var set = func() string {
	var all []string
	for i, name := range strings.Split(names, ",") {
		if i >= 6 {
			all = append(all, fmt.Sprintf("%s = $%d", strings.TrimSpace(name), i+1))
		}
	}
	return strings.Join(all, ", ")
}()

func values(e *queue.Entry) []any {
	return []any{
		e.Agent, e.Seq, e.Delivery, e.EntryID, e.ID, e.Source, string(e.State), int(e.Lane), e.Place, store.Millis(e.NotBefore), store.Millis(e.Accepted),
		e.Attempt, e.Repeats, e.Untouched, e.Unread,
		e.Checked, e.Iteration, e.Most, e.Check, store.Millis(e.Claimed), string(e.Interrupted), e.Handover.N, e.Failure, string(e.Cancel),
		store.Millis(e.Suspended), e.Conversation, store.Millis(e.Ended), string(e.Reason), e.Cause,
	}
}

// scan reads a row of names.
func scan(row store.Scan) (e queue.Entry, err error) {
	var notBefore, accepted, claimed, suspended, ended int64
	err = row(
		&e.Agent, &e.Seq, &e.Delivery, &e.EntryID, &e.ID, &e.Source, &e.State, &e.Lane, &e.Place, &notBefore, &accepted,
		&e.Attempt, &e.Repeats, &e.Untouched, &e.Unread,
		&e.Checked, &e.Iteration, &e.Most, &e.Check, &claimed, &e.Interrupted, &e.Handover.N, &e.Failure, &e.Cancel,
		&suspended, &e.Conversation, &ended, &e.Reason, &e.Cause,
	)
	e.NotBefore, e.Accepted, e.Claimed = store.Time(notBefore), store.Time(accepted), store.Time(claimed)
	e.Suspended, e.Ended = store.Time(suspended), store.Time(ended)
	return e, err
}

// one returns the entry that a condition names, with its hand-over; nil: there is none.
func one(v *store.View, where string, args ...any) (*queue.Entry, error) {
	var found *queue.Entry
	err := v.Each(`SELECT `+names+` FROM entries WHERE `+where, args, func(row store.Scan) error {
		e, err := scan(row)
		found = &e
		return err
	})
	if found == nil || err != nil || found.Handover.N == 0 {
		return found, err
	}
	found.Handover, err = handoverOf(v, found.Key, found.Handover.N)
	return found, err
}

func handoverOf(v *store.View, k queue.Key, n int64) (queue.Handover, error) {
	h := queue.Handover{N: n}
	var at int64
	_, err := v.One(`SELECT session, via, at, prompt_id, transcript, place, file, unmarked FROM handovers WHERE agent = $1 AND seq = $2 AND n = $3`,
		[]any{k.Agent, k.Seq, n}, &h.Session, &h.Via, &at, &h.PromptID, &h.Transcript, &h.Offset, &h.File, &h.Unmarked)
	h.At = store.Time(at)
	return h, err
}

// many returns the entries that a condition names, without their hand-overs.
func many(v *store.View, where string, args ...any) (all []queue.Entry, err error) {
	err = v.Each(`SELECT `+names+` FROM entries WHERE `+where, args, func(row store.Scan) error {
		e, err := scan(row)
		all = append(all, e)
		return err
	})
	return all, err
}

// inFlight is the condition that an entry is in flight, written out so that the index of live
// entries is taken.
const inFlight = `ended = 0 AND state IN ('offered', 'taken', 'started', 'background', 'checking', 'unproven')`

// InFlight returns the entry of an agent that is in flight; nil: there is none.
func InFlight(v *store.View, agent string) (*queue.Entry, error) {
	return one(v, `agent = $1 AND `+inFlight, agent)
}

// Get returns an entry by its key; nil: there is none.
func Get(v *store.View, k queue.Key) (*queue.Entry, error) {
	return one(v, `agent = $1 AND seq = $2`, k.Agent, k.Seq)
}

// Find returns an entry by its delivery id; nil: there is none.
func Find(v *store.View, agent, delivery string) (*queue.Entry, error) {
	return one(v, `agent = $1 AND delivery = $2`, agent, delivery)
}

// Named returns the latest entry that a sender has given an id; nil: there is none any more.
func Named(v *store.View, agent, id string) (*queue.Entry, error) {
	return one(v, `agent = $1 AND seq = (SELECT seq FROM ids WHERE agent = $1 AND id = $2)`, agent, id)
}

// TextOf returns what an entry says. The error matches ErrDamaged if that is not what was queued.
func TextOf(v *store.View, k queue.Key) (t queue.Text, err error) {
	var hash string
	found, err := v.One(`SELECT prompt, hash, line, length FROM texts WHERE agent = $1 AND seq = $2`, []any{k.Agent, k.Seq}, &t.Prompt, &hash, &t.Line, &t.Length)
	switch {
	case err != nil:
	case !found:
		err = fmt.Errorf("cannot read entry %d of %s: %w", k.Seq, k.Agent, ErrNotFound)
	case sum(t.Prompt) != hash:
		err = fmt.Errorf("cannot read entry %d of %s: %w", k.Seq, k.Agent, ErrDamaged)
	}
	return t, err
}

// ShownOf returns what the next hand-over of an entry shows of its last check.
func ShownOf(v *store.View, k queue.Key) (s queue.Shown, err error) {
	_, err = v.One(`SELECT output, answers FROM shown WHERE agent = $1 AND seq = $2`, []any{k.Agent, k.Seq}, &s.Output, &s.Answers)
	return s, err
}

// GivenOf returns an entry with what its text is made of. The errors are those of TextOf.
func GivenOf(v *store.View, e *queue.Entry) (*queue.Given, error) {
	g := &queue.Given{Entry: *e}
	var err error
	if g.Text, err = TextOf(v, e.Key); err == nil {
		g.Shown, err = ShownOf(v, e.Key)
	}
	return g, err
}

// ReplyOf returns what a session has said of an entry last; nil: nothing yet.
func ReplyOf(v *store.View, k queue.Key) (*queue.Reply, error) {
	var r queue.Reply
	var abandoned string
	var at int64
	found, err := v.One(`SELECT session, reply, cut, abandoned, at FROM replies WHERE agent = $1 AND seq = $2`, []any{k.Agent, k.Seq}, &r.Session, &r.Text, &r.Cut, &abandoned, &at)
	if !found || err != nil {
		return nil, err
	}
	if abandoned != "" {
		r.Abandoned = strings.Split(abandoned, "\n")
	}
	r.At = store.Time(at)
	return &r, nil
}

// Depth is how many entries of an agent are in which state.
type Depth struct {
	Queued    int // those that are urgent or return included
	Urgent    int
	Returning int
	Later     int
	Suspended int
	// InFlight is the state of the entry in flight, "" if there is none.
	InFlight queue.State
}

// Depths returns the depth of each agent that has entries which have not ended.
func Depths(v *store.View) (map[string]Depth, error) {
	all := map[string]Depth{}
	err := v.Each(`SELECT agent, state, lane, count(*) FROM entries WHERE ended = 0 GROUP BY agent, state, lane`, nil, func(row store.Scan) error {
		var agent string
		var state queue.State
		var lane queue.Lane
		var n int
		err := row(&agent, &state, &lane, &n)
		d := all[agent]
		d.add(state, lane, n)
		all[agent] = d
		return err
	})
	return all, err
}

// DepthOf returns the depth of one agent.
func DepthOf(v *store.View, agent string) (d Depth, err error) {
	err = v.Each(`SELECT state, lane, count(*) FROM entries WHERE agent = $1 AND ended = 0 GROUP BY state, lane`, []any{agent}, func(row store.Scan) error {
		var state queue.State
		var lane queue.Lane
		var n int
		err := row(&state, &lane, &n)
		d.add(state, lane, n)
		return err
	})
	return d, err
}

func (d *Depth) add(s queue.State, l queue.Lane, n int) {
	switch {
	case s == queue.Queued:
		d.Queued += n
		if l == queue.Urgent {
			d.Urgent += n
		}
		if l == queue.Returning {
			d.Returning += n
		}
	case s == queue.Later:
		d.Later += n
	case s == queue.Suspended:
		d.Suspended += n
	case s.IsInFlight():
		d.InFlight = s
	}
}

// Queued returns the first entries that are queued, in the order in which they will be handed
// over.
func Queued(v *store.View, agent string, most int) ([]queue.Entry, error) {
	return many(v, `agent = $1 AND state = 'queued' ORDER BY lane, place LIMIT $2`, agent, most)
}

// Suspended returns the entries that wait for a person beside the queue, the first one first.
func Suspended(v *store.View, agent string) ([]queue.Entry, error) {
	return many(v, `agent = $1 AND ended = 0 AND state = 'suspended' ORDER BY suspended, seq`, agent)
}

// Later returns the entries whose time has not come, the next one first.
func Later(v *store.View, agent string) ([]queue.Entry, error) {
	return many(v, `agent = $1 AND ended = 0 AND state = 'later' ORDER BY not_before, seq`, agent)
}
