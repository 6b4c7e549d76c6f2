package doors

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"heartbeat/orchestrator/firing"
	"heartbeat/sources/webhook"
)

// Limits of a delivery: how long queueing it may take, and when to ask again if it
// cannot be queued now.
const (
	deliverLimit = 75 * time.Second // a gate may take a minute
	askAgain     = 30 * time.Second
)

// reply is the body of an answer.
type reply struct {
	Status firing.Outcome `json:"status"`
	ID     string         `json:"id,omitempty"`
	Reason string         `json:"reason,omitempty"`
}

// codes are the answers for what becomes of a request.
var codes = map[firing.Outcome]int{
	firing.Queued:      http.StatusAccepted,
	firing.Known:       http.StatusOK,
	firing.Declined:    http.StatusOK,
	firing.Refused:     http.StatusUnauthorized,
	firing.Unreadable:  http.StatusBadRequest,
	firing.Unfit:       http.StatusUnprocessableEntity,
	firing.TooLarge:    http.StatusRequestEntityTooLarge,
	firing.Full:        http.StatusTooManyRequests,
	firing.Unavailable: http.StatusServiceUnavailable,
}

// Webhooks answers at the paths of webhook triggers, which find returns; nil: there
// is none.
func Webhooks(find func(path string) *firing.Webhook, log *slog.Logger) http.Handler {
	h := &intake{find: find, log: log, told: map[string]time.Time{}}
	return http.HandlerFunc(h.serve)
}

type intake struct {
	find func(string) *firing.Webhook
	log  *slog.Logger

	mu   sync.Mutex
	told map[string]time.Time // when it was last said that a trigger refuses
}

func (h *intake) serve(w http.ResponseWriter, r *http.Request) {
	hook := h.find(r.URL.Path)
	switch {
	case hook == nil:
		refuse(w, http.StatusNotFound, "no trigger has this path")
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "send a POST request")
		return
	case r.ContentLength > webhook.MaxBody:
		refuse(w, http.StatusRequestEntityTooLarge, "the body is over 1 MiB")
		return
	}
	if a, ok := hook.Admits(r.Header); !ok {
		h.answer(w, hook, a)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, webhook.MaxBody))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		refuse(w, http.StatusRequestEntityTooLarge, "the body is over 1 MiB")
		return
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		refuse(w, http.StatusRequestTimeout, "the body did not arrive in time")
		return
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body did not arrive")
		return
	}
	// What has arrived whole is queued, also if its sender does not wait for the answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), deliverLimit)
	defer cancel()
	h.answer(w, hook, hook.Deliver(ctx, r.Header, body))
}

func (h *intake) answer(w http.ResponseWriter, hook *firing.Webhook, a firing.Answer) {
	switch a.Outcome {
	case firing.Refused:
		w.Header().Set("WWW-Authenticate", "Bearer")
		h.tell(hook.Name(), a.Why)
	case firing.Unavailable:
		w.Header().Set("Retry-After", seconds(askAgain))
	case firing.Full:
		w.Header().Set("Retry-After", seconds(max(time.Second, cmp.Or(max(0, time.Until(a.Free)), askAgain))))
	}
	say(w, codes[a.Outcome], reply{a.Outcome, a.ID, a.Why})
}

// seconds is a length in whole seconds, rounded up.
func seconds(d time.Duration) string { return strconv.Itoa(int((d + time.Second - 1) / time.Second)) }

// tellEvery is how often it is said that requests to one trigger are refused.
const tellEvery = time.Minute

func (h *intake) tell(trigger, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Sub(h.told[trigger]) >= tellEvery {
		h.told[trigger] = now
		h.log.Warn("a request to a webhook was refused", "trigger", trigger, "why", why)
	}
}

// refuse answers a request that nothing was done for.
func refuse(w http.ResponseWriter, code int, why string) {
	say(w, code, reply{Status: firing.Refused, Reason: why})
}

func say(w http.ResponseWriter, code int, what reply) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false) // it is no page: Content-Type says so
	_ = out.Encode(what)     // the client may have gone
}
