package simulate

import (
	"context"
	"fmt"
	"strings"

	"heartbeat/internal/simulate/hooks"
)

// feedback is what Stop hooks have the model do next.
type feedback struct{ user, system []string }

// stop fires Stop; ok is true when the turn goes on with next. What a hook says
// is recorded when that hook has ended, and all of them together at the end.
func (s *session) stop(ctx context.Context, active bool, reply string) (next feedback, ok bool) {
	e := event{name: "Stop", fields: []field{
		{"stop_hook_active", active},
		{"last_assistant_message", reply},
		{"background_tasks", s.runningTasks()},
		{"session_crons", []any{}},
	}}
	if s.broken("status-line-only-between-turns") {
		s.hush.Store(true)
		defer s.spent()
		defer s.hush.Store(false)
	}
	var sum summary
	e.heard = func(a answered) {
		text, system := s.stopFeedback(a)
		if text != "" {
			next.user = append(next.user, "Stop hook feedback:\n"+text)
			s.userText("Stop hook feedback:\n"+text, field{"isMeta", true})
		}
		next.system = append(next.system, system...)
		if a.Context != "" {
			next.system = append(next.system, s.additional(e, a)...)
		}
		sum.add(a, text)
	}
	// Measured in 2.1.329: the administrator's come first, and where one of them
	// blocks the others are not called.
	for _, managed := range []bool{true, false} {
		e.only = func(h hooks.Hook) bool { return h.Managed == managed }
		sum.infos = append(sum.infos, s.hooksOf(e)...)
		if s.fire(ctx, e); len(next.user) > 0 {
			break
		}
	}
	if ctx.Err() != nil {
		return next, false
	}
	if len(sum.infos) > 0 {
		s.record("system", sum.fields()...)
	}
	if sum.prevented {
		s.show("● Stop hook prevented continuation")
		next.system = append([]string{"Stop hook stopped continuation: Stop hook prevented continuation"}, next.system...)
		return next, false
	}
	next = next.asUser()
	return next, len(next.user) > 0
}

// asUser has system texts be a user's where there is none that they could follow.
func (f feedback) asUser() feedback {
	if len(f.user) > 0 || len(f.system) == 0 {
		return f
	}
	return feedback{user: []string{"<system-reminder>\n" + strings.Join(f.system, "\n\n") + "\n</system-reminder>"}}
}

// stopFeedback is what a Stop hook that blocks says to the model, as a user's
// text and beside it.
func (s *session) stopFeedback(a answered) (text string, system []string) {
	switch shown := a.Hook.Shown(); {
	case a.ByExit && s.broken("exit-2-ignored"):
		return "", nil
	case a.ByExit && s.broken("exit-2-altered"):
		return "[" + shown + "]: " + altered(a.Reason), nil
	case a.ByExit && s.broken("exit-2-twice"):
		return "[" + shown + "]: " + clean(a.Reason), []string{clean(a.Reason)}
	case a.ByExit:
		return "[" + shown + "]: " + clean(a.Reason), nil
	case a.Block:
		// Measured: a decision's reason goes out twice.
		return clean(a.Reason), []string{fmt.Sprintf("Stop hook blocking error from command: %q: %s", shown, clean(a.Reason))}
	}
	return "", nil
}

// summary is the record of one Stop: which hooks were called, and what they
// said. Those that block have no duration, nor have those that nobody waits for.
type summary struct {
	infos            []hookInfo
	errors, contexts []string
	failed           []int
	prevented        bool
	why              string
}

type hookInfo struct {
	Command  string `json:"command"`
	Duration *int64 `json:"durationMs,omitempty"`
}

// hooksOf names the hooks of an event.
func (s *session) hooksOf(e event) []hookInfo {
	settings, _ := s.store.Look()
	var infos []hookInfo
	for _, h := range s.hooksFor(settings, e) {
		infos = append(infos, hookInfo{Command: h.Shown()})
	}
	return infos
}

// add takes in how a hook ended, and what it has the model do.
func (u *summary) add(a answered, text string) {
	switch {
	case text != "":
		u.errors = append(u.errors, text)
	case a.Problem != "":
		u.failed = append(u.failed, len(u.errors))
		u.errors = append(u.errors, a.Problem)
	}
	if a.Context != "" {
		u.contexts = append(u.contexts, a.Context)
	}
	if a.Stop {
		u.prevented, u.why = true, a.StopWhy
	}
	for i := range u.infos {
		if text == "" && u.infos[i].Command == a.Hook.Shown() {
			u.infos[i].Duration = new(a.Took.Milliseconds())
		}
	}
}

func (u *summary) fields() []field {
	return []field{
		{"subtype", "stop_hook_summary"},
		{"hookCount", len(u.infos)},
		{"hookInfos", u.infos},
		{"hookErrors", orEmpty(u.errors)},
		{"failedHookErrorIndexes", orEmpty(u.failed)},
		{"hookAdditionalContext", orEmpty(u.contexts)},
		{"preventedContinuation", u.prevented},
		{"stopReason", u.why},
		{"hasOutput", len(u.errors)+len(u.contexts) > 0},
		{"level", "suggestion"},
	}
}

func orEmpty[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}
