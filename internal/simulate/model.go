package simulate

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"heartbeat/internal/simulate/script"
)

// apiFailure is a request that the API refused for good.
type apiFailure struct{ kind, message, details string }

func (f *apiFailure) Error() string { return f.kind + ": " + f.message }

// failureWords are what the client says for each kind.
var failureWords = map[string]string{
	"rate_limit":            "API Error: Request rejected (429) · Rate limited",
	"server_error":          "API Error: 529 Overloaded. This is a server-side issue, usually temporary",
	"authentication_failed": "Invalid API key · Fix external API key",
	"billing_error":         "Credit balance is too low",
	"invalid_request":       "Prompt is too long",
	"model_not_found":       "There's an issue with the selected model. It may not exist or you may not have access to it.",
}

// answer has the model answer: one request, and one more after each tool it
// calls. acted says that it called one.
func (s *session) answer(ctx context.Context, prompts, system []string) (reply string, acted bool, err error) {
	text := strings.Join(prompts, "\n")
	if len(prompts) == 0 {
		text = strings.Join(system, "\n")
	}
	steps, err := s.model.Answer(text)
	if err != nil {
		return "", false, &apiFailure{kind: "unknown", message: err.Error()}
	}
	s.request(prompts, system)
	done := s.thinking()
	defer done()
	thought, replied := false, false
	think := func() {
		if !thought {
			sleep(ctx, s.model.ThinkTime())
		}
	}
	for _, step := range steps {
		switch {
		case ctx.Err() != nil:
		case step.Delay > 0:
			sleep(ctx, time.Duration(step.Delay))
			thought = true
		case step.Reply != nil:
			think()
			reply, replied = s.say(ctx, script.Fill(*step.Reply, text)), true
		case step.Tool != "" || step.Background != "" || step.Subagent != nil:
			think()
			acted, thought, replied = true, false, false
			err = s.useTool(ctx, step)
			s.requestAgain(ctx, err)
		default:
			err = s.mishap(ctx, step)
		}
		if err != nil || ctx.Err() != nil {
			return "", acted, cmp.Or(err, ctx.Err())
		}
	}
	if !replied {
		think()
		reply = s.say(ctx, script.Fill(script.DefaultReply, text))
	}
	return reply, acted, ctx.Err()
}

// requestAgain is the request that carries a tool's result.
func (s *session) requestAgain(ctx context.Context, err error) {
	if err == nil && ctx.Err() == nil {
		s.request(nil, nil)
	}
}

func (s *session) thinking() (done func()) {
	if s.term == nil {
		return func() {}
	}
	return s.term.spin("esc to interrupt")
}

// say is the model's words, unless it was interrupted before them.
func (s *session) say(ctx context.Context, reply string) string {
	if ctx.Err() == nil {
		s.assistantContent("end_turn", textBlock{"text", reply})
		s.show("● " + reply)
	}
	return reply
}

// mishap is what can happen to a request or to the client itself.
func (s *session) mishap(ctx context.Context, step script.Step) error {
	switch {
	case step.Fail != "":
		sleep(ctx, s.model.ThinkTime())
		words := cmp.Or(step.Message, failureWords[step.Fail], "API Error: "+step.Fail)
		return &apiFailure{step.Fail, words, step.Details}
	case step.Hang:
		<-ctx.Done()
	case step.Crash:
		die()
	case step.Exit != nil:
		s.exit(*step.Exit)
		<-ctx.Done()
	case step.Print != "":
		for range max(1, step.Repeat) {
			if s.term == nil || ctx.Err() != nil {
				break
			}
			s.term.send(step.Print)
		}
	default:
		return errors.New("the step says nothing to do")
	}
	return nil
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
