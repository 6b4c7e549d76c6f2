package entries

import (
	"fmt"
	"time"

	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// number keeps the numbers of ends in line with a step: who is done, and who is dead, has the next
// one of its agent, or n. was is the state before; "": there was none.
func number(c *store.Change, was queue.State, e queue.Entry, n int64) (err error) {
	if was == e.State && n == 0 {
		return nil
	}
	if was == queue.Dead {
		if _, err := c.Do(`UPDATE queues SET gone = gone + 1 WHERE agent = $1`, e.Agent); err != nil {
			return err
		}
	}
	switch column := string(e.State); {
	case e.State != queue.Done && e.State != queue.Dead:
		if was != queue.Dead {
			return nil
		}
	case n == 0:
		if _, err := c.One(`UPDATE queues SET `+column+` = `+column+` + 1 WHERE agent = $1 RETURNING `+column, []any{e.Agent}, &n); err != nil {
			return err
		}
	default:
		if _, err := c.Do(`UPDATE queues SET `+column+` = $2 WHERE agent = $1 AND `+column+` < $2`, e.Agent, n); err != nil {
			return err
		}
	}
	_, err = c.Do(`UPDATE entries SET n = $3 WHERE agent = $1 AND seq = $2`, e.Agent, e.Seq, n)
	return err
}

// Counts are the numbers that the ends of an agent's entries have come to.
type Counts struct {
	Done, Dead int64 // the last numbers that were given
	Gone       int64 // dead entries that are dead no more
}

// Gone returns Counts.Gone of each agent where that is not 0.
func Gone(v *store.View) (map[string]int64, error) {
	all := map[string]int64{}
	err := v.Each(`SELECT agent, gone FROM queues WHERE gone > 0`, nil, func(row store.Scan) error {
		var agent string
		var n int64
		err := row(&agent, &n)
		all[agent] = n
		return err
	})
	return all, err
}

// CountsOf returns those of an agent.
func CountsOf(v *store.View, agent string) (n Counts, err error) {
	_, err = v.One(`SELECT done, dead, gone FROM queues WHERE agent = $1`, []any{agent}, &n.Done, &n.Dead, &n.Gone)
	return n, err
}

// Ended is an entry that is done or dead, with all that is told of it.
type Ended struct {
	queue.Entry
	// N is its number among the agent's entries that have ended so, from 1, in the order in which
	// that was committed. Where entries were removed, or are dead no more, numbers are missing.
	N int64
	queue.Text
	Reply   *queue.Reply // what its session has said last; nil: nothing is known
	Verdict *Verdict     // the last one; nil: there was none
	Output  string       // what the last check has said
}

// Ends returns entries that are done, or dead, with numbers behind one, in their order, and the
// texts of all of them: at most so many.
func Ends(v *store.View, agent string, as queue.State, after int64, most int) ([]Ended, error) {
	return ended(v, `agent = $1 AND state = $2 AND n > 0 AND n > $3 ORDER BY n LIMIT $4`, agent, string(as), after, most)
}

// Done returns the entries of an agent that were done last, at a time or after it, the latest
// first, with what was replied: at most so many.
func Done(v *store.View, agent string, since time.Time, most int) ([]Ended, error) {
	return ended(v, `agent = $1 AND state = 'done' AND n > 0 AND ended >= $2 ORDER BY n DESC LIMIT $3`, agent, store.Millis(since), most)
}

// Dead returns the dead letters of an agent with numbers behind one, the oldest first: at most so
// many.
func Dead(v *store.View, agent string, after int64, most int) ([]Ended, error) {
	return Ends(v, agent, queue.Dead, after, most)
}

// EndOf returns what is told of an entry that is done or dead; nil: it is neither.
func EndOf(v *store.View, k queue.Key) (*Ended, error) {
	found, err := ended(v, `agent = $1 AND seq = $2 AND n > 0`, k.Agent, k.Seq)
	if len(found) == 0 {
		return nil, err
	}
	return &found[0], err
}

// ended returns the entries that a condition names.
func ended(v *store.View, where string, args ...any) (all []Ended, err error) {
	err = v.Each(`SELECT n, `+names+` FROM entries WHERE `+where, args, func(row store.Scan) error {
		var d Ended
		d.Entry, err = scan(func(columns ...any) error { return row(append([]any{&d.N}, columns...)...) })
		all = append(all, d)
		return err
	})
	for i := range all {
		if err == nil {
			err = all[i].tell(v)
		}
	}
	return all, err
}

// tell reads what the row of an entry does not hold. A text that is damaged is told as it is: the
// entry is handed over no more.
func (d *Ended) tell(v *store.View) (err error) {
	if d.Handover, err = handoverOf(v, d.Key, d.Handover.N); err != nil {
		return err
	}
	if _, err = v.One(`SELECT prompt, line, length FROM texts WHERE agent = $1 AND seq = $2`, []any{d.Agent, d.Seq}, &d.Prompt, &d.Line, &d.Length); err != nil {
		return err
	}
	if d.Reply, err = ReplyOf(v, d.Key); err != nil {
		return err
	}
	if d.Verdict, err = verdictOf(v, d.Key); err != nil {
		return err
	}
	shown, err := ShownOf(v, d.Key)
	d.Output = shown.Output
	return err
}

// verdictOf returns the last verdict about an entry; nil: there is none.
func verdictOf(v *store.View, k queue.Key) (*Verdict, error) {
	var d Verdict
	var took, at int64
	found, err := v.One(`SELECT check_no, iteration, passed, reason, by_whom, why, took, at FROM verdicts WHERE agent = $1 AND seq = $2 ORDER BY check_no DESC LIMIT 1`,
		[]any{k.Agent, k.Seq}, &d.Check, &d.Iteration, &d.Passed, &d.GiveUp, &d.By, &d.Why, &took, &at)
	if !found || err != nil {
		return nil, err
	}
	d.Took, d.At = time.Duration(took)*time.Millisecond, store.Time(at)
	return &d, nil
}

// Past is how an entry has ended, as it is known from elsewhere: the store is older than that.
type Past struct {
	N      int64        // the number of its end
	Reason queue.Reason // why it is dead; "": it is done
	Cause  string
	At     time.Time // when it ended
	// Attempt, Repeats and Iteration are those of the entry.
	Attempt, Repeats, Iteration int
	Handover                    queue.Handover // its last one; without a time: none is known
	Reply                       queue.Reply    // of one that is done
	Verdict                     *Verdict       // what has proved that it is done
	Output                      string         // what its last check has said
}

// EndAs ends an entry as it has ended elsewhere, whatever state its row has but done.
func EndAs(c *store.Change, k queue.Key, p Past) error {
	before, err := Get(&c.View, k)
	if err != nil {
		return err
	}
	if before == nil {
		return fmt.Errorf("cannot end entry %d of %s: %w", k.Seq, k.Agent, ErrNotFound)
	}
	after, err := before.EndAs(p.Reason, p.Cause, p.At)
	if err != nil {
		return err
	}
	after.Attempt, after.Repeats, after.Iteration = max(after.Attempt, p.Attempt), max(after.Repeats, p.Repeats), max(after.Iteration, p.Iteration)
	if p.Verdict != nil {
		after.Check++
		p.Verdict.Check = after.Check
	}
	if !p.Handover.At.IsZero() {
		after.Handover = p.Handover
		after.Handover.N = before.Handover.N + 1
	}
	if err := move(c, *before, after, change{end: p.N, at: p.At}); err != nil {
		return err
	}
	if err := endHandover(c, after, string(after.State), p.At); err != nil {
		return err
	}
	if p.Output != "" {
		if err := writeShown(c, k, queue.Shown{Output: p.Output}); err != nil {
			return err
		}
	}
	if p.Verdict != nil {
		if err := writeVerdict(c, k, *p.Verdict); err != nil {
			return err
		}
	}
	if p.Reason != "" {
		return nil
	}
	return writeReply(c, k, p.Reply)
}

// GiveAgain queues an entry again that a session may have had since: see queue.Entry.GiveAgain.
func GiveAgain(c *store.Change, k queue.Key, now time.Time) (*queue.Entry, error) {
	return takeBy(c, k, change{at: now, outcome: "given-again"}, queue.Entry.GiveAgain)
}

// passed is how far the numbers of a queue go on behind those that are known to have been given:
// more than an agent is sent within the life of a store that was lost.
const passed = 1 << 20

// Pass has an agent's queue number on behind what a store that was lost may have given: its ends
// behind these, its entries behind the time in milliseconds. Their delivery ids are made of them.
func Pass(c *store.Change, agent string, done, dead int64, now time.Time) error {
	if err := begin(c, agent); err != nil {
		return err
	}
	_, err := c.Do(`UPDATE queues SET done = CASE WHEN done < $2 THEN $2 ELSE done END, dead = CASE WHEN dead < $3 THEN $3 ELSE dead END,
		seq = CASE WHEN seq + $4 < $5 THEN $5 ELSE seq + $4 END WHERE agent = $1`, agent, done, dead, int64(passed), store.Millis(now))
	return err
}
