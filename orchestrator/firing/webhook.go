package firing

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/memory"
	"heartbeat/sources"
	"heartbeat/sources/webhook"
)

// webhooks are the webhook triggers that run, by their paths.
type webhooks struct {
	room chan struct{} // for requests that are being read
	mu   sync.Mutex
	all  map[string]*Webhook
}

// readAtOnce is how many requests are read at the same time: the values of one may need
// 20 MB (foreign.MostValues).
const readAtOnce = 2

// set answers at a path until the returned function is called.
func (w *webhooks) set(path string, one *Webhook) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[path] = one
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.all[path] == one { // another trigger may have the path by now
			delete(w.all, path)
		}
	}
}

// Webhook returns the webhook trigger of a path, or nil.
func (f *Firing) Webhook(path string) *Webhook {
	f.webhooks.mu.Lock()
	defer f.webhooks.mu.Unlock()
	return f.webhooks.all[path]
}

// Webhook is a webhook trigger that runs.
type Webhook struct {
	t     trigger
	makes webhook.Trigger
	// turn has room for the deliveries that use the queue at the same time: they wait
	// for one lock there.
	turn chan struct{}

	memory  *memory.Agent
	kept    *memory.Trigger
	keeping sync.Mutex // what was refused is kept in its order

	mu     sync.Mutex
	said   string // the last failure that the journal has
	saidAt time.Time
}

// deliveriesOfOne is how many deliveries of one trigger wait for the queue's lock,
// where each that waits looks again and again.
const deliveriesOfOne = 4

// answer makes a webhook trigger answer requests.
func (t trigger) answer(m *memory.Agent, r *memory.Trigger) (stop func(), err error) {
	w := &Webhook{t: t, turn: make(chan struct{}, deliveriesOfOne), memory: m, kept: r}
	w.makes.Match = t.Webhook.Match
	if w.makes.Template, err = sources.ParseWebhookTemplate(t.Webhook.Prompt); err != nil {
		return nil, err
	}
	if t.Webhook.Key != "" {
		if w.makes.Key, err = sources.ParseWebhookTemplate(t.Webhook.Key); err != nil {
			return nil, err
		}
	}
	w.recallRefused()
	stop = t.of.f.webhooks.set(t.Webhook.Path, w)
	if _, err := w.secret(); err != nil { // requests are refused until it can be read
		w.failed(err)
	}
	return stop, nil
}

// secret reads the trigger's secret, each time: it can be replaced while it runs.
func (w *Webhook) secret() ([]byte, error) {
	if w.t.Webhook.SecretFile == "" {
		return nil, nil
	}
	return config.ReadSecret(w.t.Webhook.SecretFile)
}

// Outcome says what became of a request, from a closed list.
type Outcome string

// The outcomes.
const (
	Queued      Outcome = "queued"      // the prompt is on disk
	Known       Outcome = "known"       // it was queued before
	Declined    Outcome = "declined"    // it is not wanted: match, gate
	Refused     Outcome = "refused"     // who asks does not know the secret
	Encoded     Outcome = "encoded"     // the body is compressed, or no UTF-8
	Unreadable  Outcome = "unreadable"  // the body is no JSON
	Unfit       Outcome = "unfit"       // the prompt or the key cannot be made of it
	TooLarge    Outcome = "too-large"   // the prompt is over max-entry: a dead letter
	Full        Outcome = "full"        // there is no room: max-queue, rate
	Unavailable Outcome = "unavailable" // it cannot be queued now; asked again, it may be
)

// Answer is what a request is answered with.
type Answer struct {
	Outcome Outcome
	// ID is the entry's, where there is one.
	ID  string
	Why string
	// Free is when there may be room, or zero.
	Free time.Time
}

// Admits reports whether the body of a request with these headers is worth reading,
// or the answer without it.
func (w *Webhook) Admits(h http.Header) (Answer, bool) {
	secret, err := w.secret()
	if err != nil {
		w.failed(err)
		return Answer{Outcome: Unavailable, Why: "the secret cannot be read"}, false
	}
	if !webhook.Proves(secret, h) {
		err = webhook.Check(secret, h, nil, time.Now())
	} else {
		err = webhook.Encoded(h)
	}
	if err != nil {
		return w.refuses(h, err), false
	}
	return Answer{}, true
}

// refuses is the answer to a request with a fault, which is recorded.
func (w *Webhook) refuses(h http.Header, err error) Answer {
	f, detail := webhook.FaultOf(err), ""
	a := Answer{Outcome: Unreadable, Why: err.Error()}
	switch {
	case f == webhook.Unfit:
		a.Outcome, detail = Unfit, a.Why
	case errors.Is(err, webhook.ErrRefused):
		a.Outcome = Refused
	case errors.Is(err, webhook.ErrEncoded):
		a.Outcome = Encoded
	}
	w.refuse(h, f, detail)
	return a
}

// Deliver queues the prompt of a request. Its entry is on disk if the outcome is
// Queued or Known.
func (w *Webhook) Deliver(ctx context.Context, h http.Header, body []byte) Answer {
	secret, err := w.secret()
	if err == nil {
		err = webhook.Check(secret, h, body, time.Now())
	}
	if webhook.FaultOf(err) != "" {
		return w.refuses(h, err)
	}
	if err != nil {
		w.failed(err)
		return Answer{Outcome: Unavailable, Why: "the secret cannot be read"}
	}
	p, err := w.prompt(h, body)
	if webhook.FaultOf(err) != "" {
		return w.refuses(h, err)
	}
	w.accepts(h)
	if err != nil { // ErrUnwanted
		return Answer{Outcome: Declined, Why: err.Error()}
	}
	return w.take(ctx, p)
}

// prompt makes the prompt of a request, when it is its turn.
func (w *Webhook) prompt(h http.Header, body []byte) (sources.Prompt, error) {
	room := w.t.of.f.webhooks.room
	room <- struct{}{}
	defer func() { <-room }()
	return w.makes.Prompt(h, body, time.Now())
}

// take queues a prompt, and says what became of it.
func (w *Webhook) take(ctx context.Context, p sources.Prompt) Answer {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return Answer{Outcome: Unavailable, Why: "others are being queued; ask again"}
	}
	id := w.t.key + "@" + p.Label
	skipped, err := w.t.offer(ctx, p)
	if full, ok := errors.AsType[*fullError](err); ok {
		w.t.waits(full)
		return Answer{Outcome: Full, Why: full.why, Free: full.free}
	}
	if down, ok := errors.AsType[*downError](err); ok {
		return Answer{Outcome: Unavailable, Why: down.why}
	}
	switch {
	case err != nil:
		w.failed(err)
		return Answer{Outcome: Unavailable, Why: err.Error()}
	case skipped == "":
		return Answer{Outcome: Queued, ID: id}
	case skipped == skippedTwice:
		return Answer{Outcome: Known, ID: id}
	case skipped == skippedTooLarge:
		return Answer{Outcome: TooLarge, Why: skipped + "; it is kept as a dead letter"}
	default:
		return Answer{Outcome: Declined, Why: skipped}
	}
}
