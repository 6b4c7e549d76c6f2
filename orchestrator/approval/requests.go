package approval

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/store"
)

// The limits of requests, so that an agent that asks without end neither fills the disk nor
// hides the requests of others.
const (
	// MostOpen is how many requests of one agent may wait, mostOfFleet of all agents.
	MostOpen    = 20
	mostOfFleet = 1000
	// MostInHour is how many requests an agent may make in an hour, answered or not.
	MostInHour = 60
	// mostDone is how many answered requests are kept.
	mostDone = 500
)

// Conditions of requests.
const (
	waits = `state = 'asked'`
	// owes is Request.Owes.
	owes = `told = 0 AND approver = '' AND state IN ('approved', 'rejected', 'expired')`
	// ofAgent is whether a request comes from the agent with the key $1 and the name $2.
	ofAgent = `CASE WHEN $1 <> '' AND agent <> '' THEN agent = $1 ELSE agent_name = $2 END`
	// stands is whether a request is about an entry as people were shown it: of the agent $1 the
	// entry $2, shown as $3.
	stands = `approver <> '' AND agent = $1 AND entry = $2 AND about = $3 AND state <> 'withdrawn'`
	// needed is whether a request's answer counts once others about the same are answered.
	needed = `approver <> '' AND state <> 'withdrawn' AND EXISTS (SELECT 1 FROM requests o WHERE o.state = 'asked' AND o.approver <> ''
		AND o.agent = requests.agent AND o.entry = requests.entry AND o.about = requests.about)`
)

// Waiting returns the requests that wait for an answer, oldest first.
func Waiting(v *store.View) ([]Request, error) { return read(v, waits+` ORDER BY at, request`) }

// Done returns the latest answered requests, oldest first.
func Done(v *store.View) ([]Request, error) {
	return read(v, `NOT `+waits+` ORDER BY answered_at, at, request`)
}

// Owed returns the answered requests whose answer the agent still has to be told, oldest first.
func Owed(v *store.View) ([]Request, error) {
	return read(v, owes+` ORDER BY answered_at, at, request`)
}

// Find returns a request, answered or not; the error matches ErrNone.
func Find(v *store.View, id string) (Request, error) {
	all, err := read(v, `request = $1`, id)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%q: %w", id, ErrNone)
	}
	if err != nil {
		return Request{}, err
	}
	return all[0], nil
}

// For returns the requests, answered or not, about an entry as people were shown it; see
// Request.About. Withdrawn ones are left out.
func For(v *store.View, key, entry, about string) ([]Request, error) {
	return read(v, stands+` ORDER BY at, request`, key, entry, about)
}

// Ask files a request of an agent and, if its rules give one, the answer. If a request for the
// same Name and About exists and was not withdrawn, Ask returns that one instead, and filed is
// false. The error matches ErrTooMany if the agent has made too many requests.
func Ask(c *store.Change, r Request, rules config.Approvals, now time.Time) (asked Request, filed bool, err error) {
	if r, err = r.cleaned(); err != nil {
		return r, false, err
	}
	asked, filed, err = ask(c, r, rules, now)
	if err != nil {
		return r, false, fmt.Errorf("cannot ask for an approval: %w", err)
	}
	return asked, filed, nil
}

func ask(c *store.Change, r Request, rules config.Approvals, now time.Time) (asked Request, filed bool, err error) {
	r.State, r.At, r.Until = Asked, kept(now), kept(now.Add(Lasts))
	if r.Name != "" {
		same, err := read(&c.View, stands+` AND approver = $4 ORDER BY at, request`, r.Key, r.Entry, r.About, r.Name)
		if err != nil || len(same) > 0 {
			return first(same), false, err
		}
	}
	if err := bounded(&c.View, r, now); err != nil {
		return r, false, err
	}
	var past []Request
	if len(rules.After) > 0 {
		if past, err = read(&c.View, ofAgent+` AND person = 1`, r.Key, r.Agent); err != nil {
			return r, false, err
		}
	}
	if r.ID, err = newID(&c.View); err != nil {
		return r, false, err
	}
	if a := decide(rules, r, past); a != nil {
		r = r.answered(*a, now)
		r.Told = true // by the result of this call
	}
	return r, true, Put(c, r)
}

// bounded returns an error if an agent has made too many requests.
func bounded(v *store.View, r Request, now time.Time) error {
	var waiting, ofFleet, lately int
	_, err := v.One(`SELECT COUNT(CASE WHEN `+waits+` AND `+ofAgent+` THEN 1 END), COUNT(CASE WHEN `+waits+` THEN 1 END),
		COUNT(CASE WHEN at > $3 AND at <= $4 AND `+ofAgent+` THEN 1 END) FROM requests`, // not from a clock that was ahead
		[]any{r.Key, r.Agent, store.Millis(now.Add(-time.Hour)), store.Millis(now)}, &waiting, &ofFleet, &lately)
	switch {
	case err != nil:
		return err
	case waiting >= MostOpen:
		return fmt.Errorf("%w: %d of the agent wait for an answer already", ErrTooMany, waiting)
	case ofFleet >= mostOfFleet:
		return fmt.Errorf("%w: %d of the fleet wait for an answer already", ErrTooMany, ofFleet)
	case lately >= MostInHour:
		return fmt.Errorf("%w: the agent has asked %d times in the last hour", ErrTooMany, lately)
	}
	return nil
}

// Give files the answer to a waiting request and returns the request. The error matches ErrNone,
// ErrTooLong or ErrAnswered; with the last one the request is returned, too.
func Give(c *store.Change, id string, a Answer, now time.Time) (r Request, err error) {
	if n := Length(a.Note); a.Person && n > MaxNote {
		return r, fmt.Errorf("cannot answer %q: %w: %d bytes, and %d at most are kept", id, ErrTooLong, n, MaxNote)
	}
	all, err := read(&c.View, `request = $1`, id)
	switch r = first(all); {
	case err != nil:
	case len(all) == 0:
		err = ErrNone
	case !r.Waits():
		err = fmt.Errorf("%w: %s, %s", ErrAnswered, r.Answered(), r.AnsweredAt.Local().Format(time.RFC3339))
	default:
		if r, err = r.answered(a, now).cleaned(); err == nil {
			err = Put(c, r)
		}
	}
	if err != nil {
		return r, fmt.Errorf("cannot answer %q: %w", id, err)
	}
	return r, nil
}

// End is how a request ends that no person has answered, or why its answer is not needed.
type End struct {
	ID string
	// Answer is what a request gets that waits, if it is not nil.
	Answer *Answer
	// Needless is why the agent is not told the answer; "": the request waits. If it has neither,
	// its time begins again: a clock that was ahead filed it in the future, and it might wait for
	// years.
	Needless string
}

// Ends returns how requests end: those that wait, and those whose answer is owed. gone returns a
// reason for a request that is not needed any more.
func Ends(waiting, owed []Request, gone func(Request) (why string), now time.Time) (all []End) {
	for _, r := range waiting {
		if why := gone(r); why != "" {
			all = append(all, End{ID: r.ID, Answer: &Answer{State: Withdrawn, Note: why}})
		} else if r.At.After(now) {
			all = append(all, End{ID: r.ID})
		} else if deadline.Over(r.Until, now) {
			all = append(all, End{ID: r.ID, Answer: &Answer{State: Expired}})
		}
	}
	for _, r := range owed {
		if why := gone(r); why != "" {
			all = append(all, End{ID: r.ID, Needless: why})
		}
	}
	return all
}

// Settle has requests end, and returns those that have: the answer of one that was answered stays,
// with the reason. What was answered, or told, meanwhile does not end so.
func Settle(c *store.Change, all []End, now time.Time) (ended []Request, err error) {
	for _, e := range all {
		r, err := e.settle(c, now)
		switch {
		case err == nil && r != nil:
			ended = append(ended, *r)
		case err != nil && !errors.Is(err, ErrAnswered) && !errors.Is(err, ErrNone):
			return nil, err
		}
	}
	return ended, nil
}

// settle has one end, and returns it if it does.
func (e End) settle(c *store.Change, now time.Time) (*Request, error) {
	if e.Answer != nil {
		r, err := Give(c, e.ID, *e.Answer, now)
		return &r, err
	}
	if e.Needless == "" {
		_, err := c.Do(`UPDATE requests SET at = $2, until = $3 WHERE request = $1 AND `+waits, e.ID, store.Millis(now), store.Millis(now.Add(Lasts)))
		return nil, err
	}
	n, err := c.Do(`UPDATE requests SET told = 1, needless = $2 WHERE request = $1 AND `+owes, e.ID, clipped(e.Needless).Raw())
	if err != nil || n == 0 {
		return nil, err
	}
	r, err := Find(&c.View, e.ID)
	return &r, err
}

// Renamed updates the name of an agent in its open requests: those that wait, and those whose
// answer it does not have.
func Renamed(c *store.Change, key, name string) error {
	_, err := c.Do(`UPDATE requests SET agent_name = $2 WHERE agent = $1 AND agent <> '' AND (`+waits+` OR `+owes+`)`, key, name)
	if err != nil {
		return fmt.Errorf("cannot rename the agent of approvals: %w", err)
	}
	return nil
}

// Tell records that the agent has the answers to requests.
func Tell(c *store.Change, ids ...string) error {
	for _, id := range ids {
		if _, err := c.Do(`UPDATE requests SET told = 1 WHERE request = $1 AND NOT `+waits, id); err != nil {
			return fmt.Errorf("cannot note that the agent has the answer to %q: %w", id, err)
		}
	}
	return nil
}

// Put keeps a request as it is, in the place of one with its id, and removes the oldest answered
// ones if there are too many: none that an agent does not have the answer to, or whose answer
// counts once other requests about the same check are answered.
func Put(c *store.Change, r Request) error {
	_, err := c.Do(`INSERT INTO requests (request, agent, agent_name, at, until, aside, approver, category, session, entry, iteration, about, state,
			answered_at, answered_by, person, told, needless, cut, question, note, payload)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
		ON CONFLICT (request) DO UPDATE SET agent = excluded.agent, agent_name = excluded.agent_name, at = excluded.at, until = excluded.until,
			aside = excluded.aside, approver = excluded.approver, category = excluded.category, session = excluded.session, entry = excluded.entry,
			iteration = excluded.iteration, about = excluded.about, state = excluded.state, answered_at = excluded.answered_at,
			answered_by = excluded.answered_by, person = excluded.person, told = excluded.told, needless = excluded.needless, cut = excluded.cut,
			question = excluded.question, note = excluded.note, payload = excluded.payload`,
		r.ID, r.Key, r.Agent, store.Millis(r.At), store.Millis(r.Until), r.Aside, r.Name, r.Category, r.Session, r.Entry, r.Iteration, r.About, string(r.State),
		store.Millis(r.AnsweredAt), r.By, r.Person, r.Told, r.Needless.Raw(), r.Cut, r.Question.Raw(), r.Note.Raw(), r.Payload.Raw())
	if err != nil || r.Waits() {
		return err
	}
	var done int
	if _, err := c.One(`SELECT COUNT(*) FROM requests WHERE NOT `+waits, nil, &done); err != nil || done <= mostDone {
		return err
	}
	_, err = c.Do(`DELETE FROM requests WHERE request IN (SELECT request FROM requests WHERE NOT (`+waits+`) AND NOT (`+owes+`) AND NOT (`+needed+`)
		ORDER BY answered_at, at, request LIMIT $1)`, done-mostDone)
	return err
}

// Renew has requests about an entry as people were shown it, and their answers, be about what
// they are shown now: it is the same, told by another hash.
func Renew(c *store.Change, key, entry, before, now string) error {
	_, err := c.Do(`UPDATE requests SET about = $4 WHERE agent = $1 AND entry = $2 AND about = $3`, key, entry, before, now)
	return err
}

// read returns the requests for which a condition holds, in its order.
func read(v *store.View, where string, args ...any) (all []Request, err error) {
	err = v.Each(`SELECT request, agent, agent_name, at, until, aside, approver, category, session, entry, iteration, about, state,
			answered_at, answered_by, person, told, needless, cut, question, note, payload FROM requests WHERE `+where, args, func(scan store.Scan) error {
		var r Request
		var at, until, answered int64
		err := scan(&r.ID, &r.Key, &r.Agent, &at, &until, &r.Aside, &r.Name, &r.Category, &r.Session, &r.Entry, &r.Iteration, &r.About, &r.State,
			&answered, &r.By, &r.Person, &r.Told, &r.Needless, &r.Cut, &r.Question, &r.Note, &r.Payload)
		r.At, r.Until, r.AnsweredAt = store.Time(at).UTC(), store.Time(until).UTC(), store.Time(answered).UTC()
		all = append(all, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the approvals: %w", err)
	}
	return all, nil
}

// first returns the first of some requests; the zero value: there is none.
func first(all []Request) Request {
	if len(all) == 0 {
		return Request{}
	}
	return all[0]
}

// answered returns the request with its answer.
func (r Request) answered(a Answer, now time.Time) Request {
	r.State, r.AnsweredAt, r.By, r.Note, r.Person = a.State, kept(now), a.By, clipped(a.Note), a.Person
	return r
}

// kept returns a time as the store keeps it.
func kept(at time.Time) time.Time { return store.Time(store.Millis(at)).UTC() }

// newID returns an id that no request has.
func newID(v *store.View) (string, error) {
	for {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails (crypto/rand)
		id := hex.EncodeToString(b[:])
		if known, err := v.One(`SELECT at FROM requests WHERE request = $1`, []any{id}, new(int64)); err != nil || !known {
			return id, err
		}
	}
}
