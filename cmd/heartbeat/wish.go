package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/send"
)

// wish is what a command wants of the scheduler of the session that it runs in. It goes by the
// session's socket, so that neither the fleet's file nor a directory of heartbeat's has to be the
// same there.
type wish struct {
	// Fleet is the file by which the command goes; "": any. Another fleet's is not granted.
	Fleet string            `json:"fleet,omitempty"`
	Ask   *approval.Request `json:"ask,omitempty"`
	Send  *wishToSend       `json:"send,omitempty"`
}

// wishToSend is a prompt, and when it is to be queued, as send's flags say it.
type wishToSend struct {
	Agent string        `json:"agent"`
	Asked send.Asked    `json:"asked"`
	At    string        `json:"at,omitempty"`
	In    time.Duration `json:"in,omitempty"`
}

// granted is the answer to a wish.
type granted struct {
	Data      json.RawMessage `json:"data,omitempty"`
	Elsewhere bool            `json:"elsewhere,omitempty"` // the session is another fleet's
	Error     string          `json:"error,omitempty"`
	Hint      string          `json:"hint,omitempty"`
	Status    int             `json:"status,omitempty"`
}

// errUngranted means that no scheduler of the wish's fleet has answered: whether it has done
// something is not known.
var errUngranted = errors.New("the scheduler has not answered")

// want has the scheduler of this process's session do something. The error matches
// ask.ErrNoSession outside of a session, and errUngranted.
func want(w wish, into any) error {
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	a, err := ask.Put(os.Getenv, ask.Wish, data)
	if errors.Is(err, ask.ErrNoSession) {
		return err
	}
	var g granted
	if err == nil && a.Kind == ask.Print {
		err = json.Unmarshal(a.Body, &g)
	}
	switch {
	case err != nil || a.Kind != ask.Print:
		return errors.Join(errUngranted, err)
	case g.Elsewhere:
		return fmt.Errorf("%w: the session is of another fleet", errUngranted)
	case g.Error != "":
		return &failure{status: g.Status, hint: g.Hint, err: errors.New(g.Error)}
	}
	return json.Unmarshal(g.Data, into)
}

// grant does what something in the session of an agent wants.
func (r *surroundings) grant(ctx context.Context, agent string, want json.RawMessage) json.RawMessage {
	var w wish
	var data any
	err := json.Unmarshal(want, &w)
	f := r.s.Declared()
	switch {
	case err != nil:
		err = fmt.Errorf("cannot read what the session wants: %w", err)
	case w.Fleet != "" && w.Fleet != f.Path:
		return answerOf(granted{Elsewhere: true})
	case w.Ask != nil:
		data, err = r.s.AskApproval(ctx, agent, approval.Request{Question: w.Ask.Question, Category: w.Ask.Category, Payload: w.Ask.Payload, Cut: w.Ask.Cut})
	case w.Send != nil:
		data, err = r.queue(ctx, agent, *w.Send)
	default:
		err = errors.New("this scheduler does not know what the session wants: it is of another version")
	}
	if err != nil {
		return answerOf(granted{Error: err.Error(), Hint: hintOf(err), Status: statusOf(err)})
	}
	text, err := json.Marshal(data)
	if err != nil {
		return answerOf(granted{Error: err.Error(), Status: exitError})
	}
	return answerOf(granted{Data: text})
}

func answerOf(g granted) json.RawMessage {
	text, _ := json.Marshal(g) // it has text alone
	return text
}

// queue puts a prompt of a session of the agent by into an agent's queue, or where it waits for
// its time.
func (r *surroundings) queue(ctx context.Context, by string, w wishToSend) (send.Sent, error) {
	f := r.s.Declared()
	agent, err := findAgent(f, w.Agent)
	if err != nil {
		return send.Sent{}, err
	}
	c := sendCmd{At: flagText(w.At), In: w.In}
	w.Asked.Await = func(ctx context.Context, o awaited.Order) (bool, error) {
		o.By = by
		return awaits(ctx, r.store, o)
	}
	if !c.timed() {
		s, err := send.Prompt(ctx, f, agent, w.Asked, r.app.ours())
		return s, refusedNow(r.app, agent, err)
	}
	at, err := c.due(agent, time.Now())
	if err != nil {
		return send.Sent{}, err
	}
	s, err := send.At(ctx, f, agent, w.Asked, at)
	if err == nil {
		r.s.LookLater()
	}
	return s, err
}

// accept has a prompt accepted: in a session of the same fleet by its scheduler, otherwise, or
// where that does not answer, here. The id makes one prompt of both. beside is what is done for one
// that was accepted here.
func (c sendCmd) accept(a *app, asked *send.Asked, agent string, here func() (send.Sent, error), beside func(*send.Sent)) (s send.Sent, err error) {
	accept := func() (send.Sent, error) {
		s, err := here()
		if err == nil {
			beside(&s)
		}
		return s, err
	}
	if os.Getenv(ask.EnvSocket) == "" {
		return accept()
	}
	w := wishToSend{Agent: agent, Asked: *asked, At: string(c.At), In: c.In}
	if asked.ID == "" {
		asked.ID, asked.Idempotent = send.NewID(), true
		w.Asked = *asked
	}
	err = want(wish{Fleet: a.known.Path, Send: &w}, &s)
	if errors.Is(err, ask.ErrNoSession) || errors.Is(err, errUngranted) {
		return accept()
	}
	return s, err
}
