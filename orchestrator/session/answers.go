package session

import (
	"slices"

	"heartbeat/hook"
)

// freshAnswers are the answers to Stop hooks that no report has had yet. They are for the
// journal.
func (s *shim) freshAnswers() []hook.Answered {
	if s.record == nil { // it never began
		return nil
	}
	all := s.record.Answers
	fresh := all[slices.Index(all, s.lastAnswer)+1:]
	if len(fresh) > 0 {
		s.lastAnswer = fresh[len(fresh)-1]
	}
	return fresh
}
