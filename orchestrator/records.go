package orchestrator

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/status"
)

// records is where it is written down what happens: the journal and the log.
type records struct {
	journal *journal.Journal
	opt     Options
}

// logged is what the log says of those events that come from room agent.
var logged = map[journal.Kind]struct {
	level slog.Level
	text  string
}{
	journal.StateChanged:   {slog.LevelInfo, "agent "},
	journal.DirectoryLost:  {slog.LevelError, "an agent's directory is lost; nothing is started in it"},
	journal.DirectoryFound: {slog.LevelWarn, "an agent's directory was found again"},
	journal.QueueLost:      {slog.LevelError, "a queue is lost"},
	journal.Stuck:          {slog.LevelWarn, "an agent's work does not move: the service fails"},
	journal.Removed:        {slog.LevelInfo, "agent removed"},
}

// note writes an event down. Events of one agent come in their order.
func (r *records) note(e journal.Event) { r.noteDo(e, e.Fix.String(), "") }

// noteDo is note of an event after which a person does something, and then something else,
// or "".
func (r *records) noteDo(e journal.Event, do, then string) {
	e.At = r.opt.Now()
	r.opt.Observe(e)
	if l, ok := logged[e.Kind]; ok {
		if s := status.State(e.State); s == status.BackingOff || s == status.Held {
			l.level = slog.LevelWarn
		}
		args := []any{"agent", e.Agent}
		if e.Reason != "" {
			args = append(args, "why", e.Reason.String())
		}
		if e.Detail != "" {
			args = append(args, "what", e.Detail.String())
		}
		if do != "" {
			args = append(args, "do", do)
		}
		if then != "" {
			args = append(args, "then", then)
		}
		if !e.Started.IsZero() {
			args = append(args, "since", e.Started.Local().Format(time.DateTime))
		}
		_, state := e.Move()
		r.opt.Log.Log(context.Background(), l.level, l.text+state, args...)
	}
	r.journal.Add(e)
}

// NoteAnswered writes down what the queue of an agent was told.
func (s *Scheduler) NoteAnswered(agent string, text foreign.Text) {
	s.records.note(journal.Event{At: s.opt.Now(), Agent: agent, Kind: journal.Answered, Reason: text})
}

// noteMove writes down that the state of a member has changed, and for one that is held
// what status says is to be done.
func (r *records) noteMove(m *member, moved journal.Event) {
	do, then := moved.Fix.String(), ""
	if moved.State == string(status.Held) && !moved.Paused {
		says := status.Agent{AgentState: m.Describe()}
		for _, t := range says.Troubles(cmp.Or(r.opt.Ours, "heartbeat"), r.opt.Now()) {
			if t.What == status.IsHeld {
				do, then = cmp.Or(do, t.Do), t.Then
			}
		}
		if do == r.opt.answerOf(m.Name) {
			then = ""
		}
	}
	r.noteDo(moved, do, then)
}

func removed(m *member) journal.Event { return journal.Event{Agent: m.Name, Kind: journal.Removed} }
