package page

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/page/changes"
)

// request is what agent a asks for in a lab.
func request(id string) approval.Request {
	now := time.Now()
	return approval.Request{ID: id, Agent: "a", At: now.Add(-time.Hour), Until: now.Add(time.Hour), Question: "May I <b>deploy</b>?", Payload: "line one\nline two", State: approval.Asked}
}

func (l *lab) Waiting() ([]approval.Request, error) { return []approval.Request{request("r1")}, nil }

func (l *lab) Done() ([]approval.Request, error) {
	r := request("r2")
	r.State, r.By, r.AnsweredAt = approval.Rejected, "a person", time.Now()
	return []approval.Request{r}, nil
}

func (l *lab) Find(id string) (approval.Request, error) {
	if id == "none" {
		return approval.Request{}, approval.ErrNone
	}
	if id == "r2" {
		done, _ := l.Done()
		return done[0], nil
	}
	return request(id), nil
}

func (l *lab) Answer(_ context.Context, id string, a approval.Answer) (approval.Request, error) {
	return request(id), l.done("answer", id, string(a.State), a.By, a.Note)
}

// diffs answers with what differs, and nothing else.
type diffs struct{ AgentRead }

func (diffs) Changes(context.Context, string) (*changes.Changes, error) {
	return &changes.Changes{Files: []changes.File{{Name: "main.go", Status: changes.Changed, Lines: []changes.Line{{Kind: '+', Text: "<new>"}}}}}, nil
}

// TestAnApprovalIsAnswered by who may act, with what differs before their eyes; what was
// answered elsewhere, and what another agent asks, is not.
func TestAnApprovalIsAnswered(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.page.opt.Agents = diffs{}
	acts, looks := l.enter(access.Act), l.enter(access.Look)
	if _, body := l.ask(looks, http.MethodGet, Root+"approvals", nil); !strings.Contains(body, `<a href="/page/approvals/r1">May I &lt;b&gt;deploy&lt;/b&gt;?</a>`) || !strings.Contains(body, "rejected by a person") {
		t.Errorf("all of them: %s", body)
	}
	_, body := l.ask(acts, http.MethodGet, Root+"approvals/r1", nil)
	for _, want := range []string{"line one\nline two", "&lt;new&gt;", `value="approve a r1"`, `value="reject a r1"`, `name="text-a"`} {
		if !strings.Contains(body, want) {
			t.Errorf("without %q: %s", want, body)
		}
	}
	if _, body := l.ask(looks, http.MethodGet, Root+"approvals/r1", nil); strings.Contains(body, "Approve") || !strings.Contains(body, "&lt;new&gt;") {
		t.Errorf("who may only look: %s", body)
	}
	if _, body := l.ask(acts, http.MethodGet, Root+"approvals/r2", nil); strings.Contains(body, "Approve<") || !strings.Contains(body, "rejected by a person") {
		t.Errorf("an answered one: %s", body)
	}
	if res, _ := l.ask(acts, http.MethodGet, Root+"approvals/none", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("none: %d", res.StatusCode)
	}
	form := l.form(acts)
	l.ask(acts, http.MethodPost, Root+"act", with(form, "do", "reject a r1", "text-a", "not now"))
	if len(l.did) != 1 || l.did[0] != "answer r1 rejected a person (phone) not now" {
		t.Errorf("%q", l.did)
	}
	l.fails = approval.ErrAnswered
	for do, want := range map[string]string{"approve a r3": "it is answered already", "approve b r4": "there is no such request", "approve a none": "there is no such request"} {
		res, _ := l.ask(acts, http.MethodPost, Root+"act", with(l.form(acts), "do", do))
		if _, body := l.ask(acts, http.MethodGet, res.Header.Get("Location"), nil); !strings.Contains(body, want) {
			t.Errorf("%s: %s", do, body)
		}
	}
}
