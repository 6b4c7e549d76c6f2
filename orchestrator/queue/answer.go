package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// Question returns the question of an agent's queue to a person, or nil.
func Question(ctx context.Context, a *config.Agent) (asked *inbox.Question, err error) {
	err = Read(ctx, a, func(q *inbox.Queue) (err error) {
		asked, err = q.Question()
		return err
	})
	return asked, err
}

// NoQuestionError means that a queue asks nothing.
type NoQuestionError struct{ Agent string }

// Error names the agent.
func (e *NoQuestionError) Error() string {
	return fmt.Sprintf("cannot answer: the queue of agent %q is fine, and asks nothing", e.Agent)
}

// Answer lets an agent's queue continue at the place that answer names, or at a byte offset at
// which a line begins, and returns the choice. While a session lives, the error is a
// *BusyError.
func Answer(ctx context.Context, a *config.Agent, name string) (given inbox.Answer, err error) {
	err = inbox.HoldOrphaned(ctx, place(a), false, func(q inbox.Orphaned) error {
		q.Within(ctx)
		asked, err := q.Question(offsetIn(name)...)
		if err != nil {
			return err
		}
		if asked == nil {
			return &NoQuestionError{a.Name}
		}
		if given, err = choose(asked, name); err != nil {
			return err
		}
		return q.StartAt(given.Offset)
	})
	if errors.Is(err, inbox.ErrSessionLives) {
		err = livesThere(fmt.Sprintf("cannot answer for agent %q", a.Name), a.Inbox)
	}
	return given, err
}

func offsetIn(name string) []int64 {
	if at, err := strconv.ParseInt(name, 10, 64); err == nil {
		return []int64{at}
	}
	return nil
}

func choose(asked *inbox.Question, name string) (inbox.Answer, error) {
	at := offsetIn(name)
	names := make([]string, len(asked.Answers))
	for i, a := range asked.Answers {
		if names[i] = a.Name; a.Name == name || len(at) > 0 && a.Offset == at[0] {
			return a, nil
		}
	}
	if len(at) > 0 {
		return inbox.Answer{}, fmt.Errorf("cannot answer %q: no line of the inbox begins at that byte", name)
	}
	return inbox.Answer{}, fmt.Errorf("cannot answer %q: the answers are %s, or a byte offset where a line begins", name, strings.Join(names, ", "))
}
