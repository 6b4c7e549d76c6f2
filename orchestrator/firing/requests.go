package firing

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/sources/webhook"
)

// RefusedRequests are the requests of one kind of sender that a webhook has refused for
// one fault, since it last accepted one of that sender. They are remembered over restarts:
// many services never send a request again, and their next one may come in a week.
type RefusedRequests struct {
	Trigger string `json:"trigger"`
	memory.Refused
}

// Text says how many there are, of whom, and what is wrong with them.
func (r RefusedRequests) Text() string {
	text := "1 request"
	if r.Times != 1 {
		text = strconv.Itoa(r.Times) + " requests"
	}
	text = fmt.Sprintf("webhook %s has refused %s of %s: %s", r.Trigger, text, r.Sender, r.Fault.What())
	if r.Detail != "" {
		text += ": " + foreign.Text(r.Detail).String()
	}
	return text
}

// refusedFor is how long requests are told of after the last one: what sent them may be gone.
const refusedFor = 7 * 24 * time.Hour

// RefusedRequests returns the requests that the agent's webhooks have refused.
func (t *Triggers) RefusedRequests() (all []RefusedRequests) {
	t.refusing.Lock()
	defer t.refusing.Unlock()
	for _, r := range t.requests {
		if time.Since(r.Last) < refusedFor {
			all = append(all, r)
		}
	}
	return all
}

// Refuse records that a request with these headers was refused.
func (w *Webhook) Refuse(h http.Header, f webhook.Fault) { w.refuse(h, f, "") }

// longestDetail is how many bytes are kept of what a template lacks.
const longestDetail = 200

// refuse is Refuse, with what else there is to say of the fault.
func (w *Webhook) refuse(h http.Header, f webhook.Fault, detail string) {
	now, t := time.Now(), w.t.of
	same := RefusedRequests{Trigger: w.t.Name, Refused: memory.Refused{Sender: webhook.SenderOf(h), Fault: f}}
	t.refusing.Lock()
	i := slices.IndexFunc(t.requests, func(r RefusedRequests) bool {
		return r.Trigger == same.Trigger && r.Sender == same.Sender && r.Fault == same.Fault
	})
	if i < 0 {
		t.requests, i = append(t.requests, same), len(t.requests)
	}
	r := &t.requests[i]
	if now.Sub(r.Last) >= refusedFor {
		r.Since, r.Times = now, 0
	}
	r.Last, r.Times, r.Detail = now, r.Times+1, foreign.Short(detail, longestDetail)
	told := *r
	t.refusing.Unlock()
	w.keepRefused()
	if !isPowerOfTen(told.Times) || w.repeats(string(told.Sender)+" "+string(f)) {
		return
	}
	t.f.opt.Note(journal.Event{Agent: w.t.cfg.Name, Kind: journal.RequestsRefused, Trigger: w.t.Name, Reason: foreign.Text(told.Text()), Detail: foreign.Text("to check: " + f.Check())})
	t.f.opt.Log.Warn("a webhook refuses requests", "agent", w.t.cfg.Name, "trigger", w.t.Name, "sender", told.Sender, "fault", f, "times", told.Times, "check", f.Check())
	t.agent.RequestsRefused()
}

// isPowerOfTen reports whether a number is 1, 10, 100, …
func isPowerOfTen(n int) bool {
	return strings.TrimRight(strconv.Itoa(n), "0") == "1"
}

// accepts records that a request with these headers came from who may send it, and could be
// read. Other senders may be refused still.
func (w *Webhook) accepts(h http.Header) {
	sender, t := webhook.SenderOf(h), w.t.of
	t.refusing.Lock()
	before := len(t.requests)
	t.requests = slices.DeleteFunc(t.requests, func(r RefusedRequests) bool { return r.Trigger == w.t.Name && r.Sender == sender })
	over := len(t.requests) < before
	t.refusing.Unlock()
	if over {
		w.keepRefused()
		t.agent.RequestsRefused()
	}
}

// keepRefused has the memory know what was refused.
func (w *Webhook) keepRefused() {
	w.keeping.Lock()
	defer w.keeping.Unlock()
	var all []memory.Refused
	t := w.t.of
	t.refusing.Lock()
	for _, r := range t.requests {
		if r.Trigger == w.t.Name {
			all = append(all, r.Refused)
		}
	}
	t.refusing.Unlock()
	w.kept.NoteRefused(all)
	w.memory.SaveSoon()
}

// recallRefused takes over what the memory knows.
func (w *Webhook) recallRefused() {
	t := w.t.of
	t.refusing.Lock()
	defer t.refusing.Unlock()
	for _, r := range w.kept.Refused() {
		t.requests = append(t.requests, RefusedRequests{w.t.Name, r})
	}
}
