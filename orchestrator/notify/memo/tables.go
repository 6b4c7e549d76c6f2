package memo

import (
	"fmt"
	"math"
	"time"

	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/store"
)

// table is one of those that a state is kept in.
type table struct {
	name string
	// columns begin with those of the key, keys of them.
	columns []string
	keys    int
	order   string
	// rows gives each row of a state to put; take takes one into a state.
	rows func(s *State, put func(row ...any))
	take func(s *State, scan store.Scan) error
}

// tables are all of them; what a row of one belongs to is in one before it.
var tables = []table{
	{
		name: "facts", keys: 1, order: "fact",
		columns: []string{
			"fact", "agent", "kind", "urgent", "since", "text", "remedy", "link", "slow", "once", "only_to", "not_to", "about", "quiet",
			"seen", "told", "reminders", "gone", "end_told", "returns", "missed", "happens",
		},
		rows: func(s *State, put func(...any)) {
			for key, t := range s.Told {
				put(key, t.Agent, string(t.Kind), t.Urgent, store.Millis(t.Since), t.Text, t.Do, t.Link, t.Slow, t.Once, t.To, t.Not, t.Of, t.Quiet,
					store.Millis(t.First), store.Millis(t.At), t.Reminders, store.Millis(t.Gone), t.Over, t.Returns, t.Missed, t.Happens)
			}
		},
		take: func(s *State, scan store.Scan) error {
			t := &notice.Told{}
			var since, first, at, gone int64
			err := scan(&t.Key, &t.Agent, &t.Kind, &t.Urgent, &since, &t.Text, &t.Do, &t.Link, &t.Slow, &t.Once, &t.To, &t.Not, &t.Of, &t.Quiet,
				&first, &at, &t.Reminders, &gone, &t.Over, &t.Returns, &t.Missed, &t.Happens)
			t.Since, t.First, t.At, t.Gone = store.Time(since), store.Time(first), store.Time(at), store.Time(gone)
			s.Told[t.Key] = t
			return err
		},
	},
	{
		name: "facts_untold", keys: 3, order: "fact, what, n", columns: []string{"fact", "what", "n", "value"},
		rows: func(s *State, put func(...any)) {
			for key, t := range s.Told {
				for n, text := range t.Pending {
					put(key, "text", n, text)
				}
				for n, of := range t.PendingOf {
					put(key, "about", n, of)
				}
			}
		},
		take: func(s *State, scan store.Scan) error {
			var key, what, value string
			err := scan(&key, &what, new(int), &value)
			t := s.Told[key]
			switch {
			case err != nil || t == nil:
			case what == "text":
				t.Pending = append(t.Pending, value)
			default:
				t.PendingOf = append(t.PendingOf, value)
			}
			return err
		},
	},
	{
		name: "targets", keys: 1, order: "target",
		columns: []string{"target", "next", "failing", "why", "arrived", "dropped", "unnamed", "message", "made", "attempts"},
		rows: func(s *State, put func(...any)) {
			for target, b := range s.Boxes {
				var m outbox.Message
				if b.Sending != nil {
					m = *b.Sending
				}
				put(target, store.Millis(b.Next), store.Millis(b.Failing), b.Why, store.Millis(b.Arrived), b.Dropped, b.Unnamed, m.Key, store.Millis(m.Made), m.Attempts)
			}
		},
		take: func(s *State, scan store.Scan) error {
			var target string
			var next, failing, arrived, made int64
			b, m := &outbox.Box{}, &outbox.Message{}
			err := scan(&target, &next, &failing, &b.Why, &arrived, &b.Dropped, &b.Unnamed, &m.Key, &made, &m.Attempts)
			b.Next, b.Failing, b.Arrived, m.Made = store.Time(next), store.Time(failing), store.Time(arrived), store.Time(made)
			if m.Key != "" {
				b.Sending = m
			}
			s.Boxes[target] = b
			return err
		},
	},
	{
		name: "notices", keys: 3, order: "at, notice",
		columns: []string{
			"target", "sending", "notice", "due", "event", "kind", "agent", "urgent", "at", "since", "over", "text", "remedy", "link", "times", "entry", "reply", "only_to", "not_to",
		},
		rows: func(s *State, put func(...any)) {
			s.each(func(target string, sending bool, due time.Time, n notice.Notice) {
				put(target, sending, n.Key, store.Millis(due), string(n.Event), string(n.Kind), n.Agent, n.Urgent, store.Millis(n.At), store.Millis(n.Since), store.Millis(n.Over),
					n.Text, n.Do, n.Link, n.Times, n.Entry, n.Reply, n.To, n.Not)
			})
		},
		take: func(s *State, scan store.Scan) error {
			var target string
			var sending bool
			var due, at, since, over int64
			var n notice.Notice
			err := scan(&target, &sending, &n.Key, &due, &n.Event, &n.Kind, &n.Agent, &n.Urgent, &at, &since, &over,
				&n.Text, &n.Do, &n.Link, &n.Times, &n.Entry, &n.Reply, &n.To, &n.Not)
			n.At, n.Since, n.Over = store.Time(at), store.Time(since), store.Time(over)
			switch b := s.Boxes[target]; {
			case err != nil || b == nil:
			case !sending:
				b.Waiting = append(b.Waiting, outbox.Item{Notice: n, Due: store.Time(due)})
			case b.Sending != nil:
				b.Sending.Notices = append(b.Sending.Notices, n)
			}
			return err
		},
	},
	{
		name: "notices_about", keys: 4, order: "target, sending, notice, n", columns: []string{"target", "sending", "notice", "n", "about"},
		rows: func(s *State, put func(...any)) {
			s.each(func(target string, sending bool, _ time.Time, n notice.Notice) {
				for i, of := range n.Of {
					put(target, sending, n.Key, i, of)
				}
			})
		},
		take: func(s *State, scan store.Scan) error {
			var target, key, of string
			var sending bool
			err := scan(&target, &sending, &key, new(int), &of)
			if n := s.notice(target, sending, key); n != nil {
				n.Of = append(n.Of, of)
			}
			return err
		},
	},
	{
		name: "letters_read", keys: 1, order: "agent", columns: []string{"agent", "dead", "reply", "reply_id"},
		rows: func(s *State, put func(...any)) {
			for agent, m := range s.Marks {
				put(agent, nanos(m.Dead), nanos(m.Reply), m.ReplyID)
			}
		},
		take: func(s *State, scan store.Scan) error {
			var agent string
			var dead, reply int64
			m := &Mark{}
			err := scan(&agent, &dead, &reply, &m.ReplyID)
			m.Dead, m.Reply = time.Unix(0, dead), time.Unix(0, reply)
			s.Marks[agent] = m
			return err
		},
	},
	{
		name: "replies_passed", keys: 1, order: "n", columns: []string{"reply", "n"},
		rows: func(s *State, put func(...any)) {
			for n, key := range s.Replied {
				put(key, s.Before+n)
			}
		},
		take: func(s *State, scan store.Scan) error {
			var key string
			var n int
			err := scan(&key, &n)
			if len(s.Replied) == 0 {
				s.Before = n
			}
			s.Replied = append(s.Replied, key)
			return err
		},
	},
	{
		name: "queue_heads", keys: 1, order: "agent", columns: []string{"agent", "prompt", "since"},
		rows: func(s *State, put func(...any)) {
			for agent, h := range s.Heads {
				if h.Saved {
					put(agent, h.ID, store.Millis(h.Since))
				}
			}
		},
		take: func(s *State, scan store.Scan) error {
			var agent string
			var since int64
			h := &Head{Saved: true}
			err := scan(&agent, &h.ID, &since)
			h.Since = store.Time(since)
			s.Heads[agent] = h
			return err
		},
	},
	{
		name: "ping_fails", keys: 1, order: "one", columns: []string{"one", "since", "why"},
		rows: func(s *State, put func(...any)) {
			if s.Ping != nil {
				put(1, store.Millis(s.Ping.Since), s.Ping.Why)
			}
		},
		take: func(s *State, scan store.Scan) error {
			var since int64
			p := &Ping{}
			err := scan(new(int), &since, &p.Why)
			p.Since, s.Ping = store.Time(since), p
			return err
		},
	},
}

// each gives each notice that is on its way to do.
func (s *State) each(do func(target string, sending bool, due time.Time, n notice.Notice)) {
	for target, b := range s.Boxes {
		for _, i := range b.Waiting {
			do(target, false, i.Due, i.Notice)
		}
		if b.Sending != nil {
			for _, n := range b.Sending.Notices {
				do(target, true, time.Time{}, n)
			}
		}
	}
}

// notice is one that is on its way, or nil.
func (s *State) notice(target string, sending bool, key string) *notice.Notice {
	b := s.Boxes[target]
	if b == nil {
		return nil
	}
	if !sending {
		for i := range b.Waiting {
			if b.Waiting[i].Key == key {
				return &b.Waiting[i].Notice
			}
		}
		return nil
	}
	if b.Sending != nil {
		for i := range b.Sending.Notices {
			if b.Sending.Notices[i].Key == key {
				return &b.Sending.Notices[i]
			}
		}
	}
	return nil
}

// nanos is a time in nanoseconds. What an agent has written may be of any year.
func nanos(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, 0)):
		return 0
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// keyOf names a row of a table.
func (t table) keyOf(row []any) string { return fmt.Sprintf("%#v", row[:t.keys]) }
