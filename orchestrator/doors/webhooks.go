package doors

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"heartbeat/orchestrator/firing"
	"heartbeat/ptyrun/lobby"
	"heartbeat/sources/webhook"
)

// Limits of a delivery: how long queueing it may take, and when to ask again if it
// cannot be queued now.
const (
	deliverLimit = 75 * time.Second // a gate may take a minute
	askAgain     = 30 * time.Second
)

// What requests to webhooks take, at all addresses: the memory of their bodies, for which
// one waits so long, and how many are queued at a time, which may each wait for a gate. An
// address has room for others beside them.
const (
	mostBodies      = 32 << 20
	roomPatience    = 10 * time.Second
	deliveriesInAll = 128
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
	firing.Encoded:     http.StatusUnsupportedMediaType,
	firing.Unreadable:  http.StatusBadRequest,
	firing.Unfit:       http.StatusUnprocessableEntity,
	firing.TooLarge:    http.StatusRequestEntityTooLarge,
	firing.Full:        http.StatusTooManyRequests,
	firing.Unavailable: http.StatusServiceUnavailable,
}

// Webhooks answers at the paths of webhook triggers, which find returns; nil: there
// is none.
func Webhooks(find func(path string) *firing.Webhook) http.Handler {
	in := &intake{bodies: lobby.Bodies{Most: mostBodies}, turns: make(lobby.Turns, deliveriesInAll)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch hook := find(r.URL.Path); {
		case hook != nil:
			in.serve(w, r, hook)
		case fromPage(r):
			refuse(w, http.StatusForbidden, noPages)
		default:
			refuse(w, http.StatusNotFound, "no trigger has this path")
		}
	})
}

// intake bounds what all requests to webhooks take at a time, whoever sends them.
type intake struct {
	bodies lobby.Bodies
	turns  lobby.Turns
}

func (in *intake) serve(w http.ResponseWriter, r *http.Request, hook *firing.Webhook) {
	refuses := func(code int, f webhook.Fault, why string) {
		hook.Refuse(r.Header, f)
		refuse(w, code, why)
	}
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		refuses(http.StatusMethodNotAllowed, webhook.NoPost, "send a POST request")
		return
	case fromPage(r):
		refuses(http.StatusForbidden, webhook.WebPage, noPages)
		return
	case r.ContentLength > webhook.MaxBody:
		refuses(http.StatusRequestEntityTooLarge, webhook.TooLarge, "the body is over 1 MiB")
		return
	}
	if a, ok := hook.Admits(r.Header); !ok {
		answer(w, a)
		return
	}
	size := webhook.MaxBody
	if r.ContentLength >= 0 {
		size = int(r.ContentLength)
	}
	patience, cancel := context.WithTimeout(r.Context(), roomPatience)
	defer cancel()
	room, err := in.bodies.Enter(patience, size)
	if err != nil {
		w.Header().Set("Retry-After", seconds(askAgain))
		refuse(w, http.StatusServiceUnavailable, err.Error()+"; ask again")
		return
	}
	defer room.Leave()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, webhook.MaxBody))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		refuses(http.StatusRequestEntityTooLarge, webhook.TooLarge, "the body is over 1 MiB")
		return
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		refuses(http.StatusRequestTimeout, webhook.Incomplete, "the body did not arrive in time")
		return
	}
	if err != nil {
		refuses(http.StatusBadRequest, webhook.Incomplete, "the body did not arrive")
		return
	}
	room.Arrived(len(body))
	// What has arrived whole is queued, also if its sender does not wait for the answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), deliverLimit)
	defer cancel()
	done, err := in.turns.Take(ctx)
	if err != nil {
		answer(w, firing.Answer{Outcome: firing.Unavailable, Why: "others are being queued; ask again"})
		return
	}
	defer done()
	answer(w, hook.Deliver(ctx, r.Header, body))
}

func answer(w http.ResponseWriter, a firing.Answer) {
	switch a.Outcome {
	case firing.Refused:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case firing.Encoded:
		w.Header().Set("Accept-Encoding", "identity")
	case firing.Unavailable:
		w.Header().Set("Retry-After", seconds(askAgain))
	case firing.Full:
		w.Header().Set("Retry-After", seconds(max(time.Second, cmp.Or(max(0, time.Until(a.Free)), askAgain))))
	}
	say(w, codes[a.Outcome], reply{a.Outcome, a.ID, a.Why})
}

// seconds is a length in whole seconds, rounded up.
func seconds(d time.Duration) string { return strconv.Itoa(int((d + time.Second - 1) / time.Second)) }

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
