package session

import (
	"strings"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/usage"
)

// lineTime is how exact the times of a transcript's lines are.
const lineTime = time.Millisecond

// unwritten returns what has begun, by what our hooks have recorded, after the end of the
// client's transcript: turns, by the deliveries that they were for, and what a subagent
// was asked. A client that was killed may have had answers to all of it. inTurn is since
// when the session's turn ran at its end; zero: none ran.
func unwritten(r *hook.Record, inTurn time.Time, end usage.Tail, now time.Time) (turns []string) {
	after := func(at time.Time) bool { return at.After(end.At.Add(lineTime)) && !at.After(now) }
	delivery := ""
	if r.Work != nil {
		delivery = r.Work.DeliveryID
	}
	if end.At.IsZero() && (!inTurn.IsZero() || len(r.Answers) > 0) {
		first := delivery
		if len(r.Answers) > 0 && r.Answers[0].Done != "" {
			first = r.Answers[0].Done
		}
		turns = append(turns, first)
	}
	var last hook.Answer
	for _, a := range r.Answers {
		if !after(a.At) {
			continue
		}
		if byItself(last, a.Answer) {
			turns = append(turns, "")
		}
		if last = a.Answer; gives(last) {
			turns = append(turns, a.Entry)
		}
	}
	if len(turns) == 0 && !end.Asking && after(inTurn) {
		turns = append(turns, delivery) // nobody was given it: a person has typed, or a task has ended
	}
	aside := end.Asides
	if inTurn.IsZero() && asksAside(r.BackgroundTasks) {
		aside = max(aside, 1)
	}
	for range aside {
		turns = append(turns, delivery)
	}
	return turns
}

// gives reports whether a Stop hook has begun the next turn.
func gives(a hook.Answer) bool {
	return a == hook.Gave || a == hook.GaveAgain || a == hook.GaveOn || a == hook.IdleTurn
}

// byItself reports whether a turn that no Stop hook has begun was between two answers. A
// hook that waits, or that has a check made, gives a second answer at the same Stop.
func byItself(before, next hook.Answer) bool {
	switch before {
	case hook.LetGo, hook.HeldBack:
		return true
	case hook.Waits:
		return next == hook.Waits || next == hook.Checks
	}
	return false
}

// asksAside reports whether one of the tasks that run in the background asks the model.
func asksAside(tasks []string) bool {
	for _, t := range tasks {
		if kind, _, _ := strings.Cut(t, ": "); kind != "" && kind != "shell" {
			return true
		}
	}
	return false
}

// unwritten is that of a session whose shim was killed, by the record that it has left.
func (l Leftover) unwritten(end usage.Tail) []string {
	if l.Home == "" {
		return nil
	}
	shown, err := hook.ReadRecord(l.Home)
	if err != nil || shown == nil || shown.Session != l.Session {
		return nil
	}
	r := hook.Record(*shown)
	return unwritten(&r, turnSince(&r, time.Time{}), end, time.Now())
}

// turnSince is since when a turn runs; if none runs, it is what it was before.
func turnSince(r *hook.Record, before time.Time) time.Time {
	if r.Phase != hook.Turn {
		return before
	}
	return r.Since
}
