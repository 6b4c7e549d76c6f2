package firing

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/sources"
	"heartbeat/sources/webhook"
)

// webhooks are the webhook triggers that run, by their paths.
type webhooks struct {
	room chan struct{} // for requests that are being read
	mu   sync.Mutex
	all  map[string]*Webhook
}

// readAtOnce is how many requests are read at the same time: a body of 1 MiB may
// need 30 as values.
const readAtOnce = 8

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

	mu     sync.Mutex
	said   string // the last failure that the journal has
	saidAt time.Time
}

// deliveriesAtOnce is how many deliveries of one trigger wait for the queue's lock,
// where each that waits looks again and again.
const deliveriesAtOnce = 4

// answer makes a webhook trigger answer requests.
func (t trigger) answer() (stop func(), err error) {
	w := &Webhook{t: t, turn: make(chan struct{}, deliveriesAtOnce)}
	w.makes.Match = t.Webhook.Match
	if w.makes.Template, err = sources.ParseWebhookTemplate(t.Webhook.Prompt); err != nil {
		return nil, err
	}
	if t.Webhook.Key != "" {
		if w.makes.Key, err = sources.ParseWebhookTemplate(t.Webhook.Key); err != nil {
			return nil, err
		}
	}
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

// Name is the trigger's, as AGENT/TRIGGER.
func (w *Webhook) Name() string { return w.t.source() }

// Outcome says what became of a request, from a closed list.
type Outcome string

// The outcomes.
const (
	Queued      Outcome = "queued"      // the prompt is on disk
	Known       Outcome = "known"       // it was queued before
	Declined    Outcome = "declined"    // it is not wanted: match, gate
	Refused     Outcome = "refused"     // who asks does not know the secret
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
	switch {
	case err != nil:
		w.failed(err)
		return Answer{Outcome: Unavailable, Why: "the secret cannot be read"}, false
	case !webhook.Proves(secret, h):
		return Answer{Outcome: Refused, Why: webhook.ErrRefused.Error()}, false
	}
	return Answer{}, true
}

// Deliver queues the prompt of a request. Its entry is on disk if the outcome is
// Queued or Known.
func (w *Webhook) Deliver(ctx context.Context, h http.Header, body []byte) Answer {
	secret, err := w.secret()
	if err == nil {
		err = webhook.Check(secret, h, body)
	}
	if errors.Is(err, webhook.ErrRefused) {
		return Answer{Outcome: Refused, Why: err.Error()}
	}
	if err != nil {
		w.failed(err)
		return Answer{Outcome: Unavailable, Why: "the secret cannot be read"}
	}
	w.t.of.f.webhooks.room <- struct{}{}
	p, err := w.makes.Prompt(h, body, time.Now())
	<-w.t.of.f.webhooks.room
	switch {
	case errors.Is(err, webhook.ErrUnwanted):
		return Answer{Outcome: Declined, Why: err.Error()}
	case errors.Is(err, webhook.ErrUnreadable):
		return Answer{Outcome: Unreadable, Why: err.Error()}
	case err != nil:
		w.failed(err)
		return Answer{Outcome: Unfit, Why: err.Error()}
	}
	return w.take(ctx, p)
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
