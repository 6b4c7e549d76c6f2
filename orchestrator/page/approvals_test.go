package page

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/page/changes"
)

// begun is when the tests have begun: what a lab's agents ask does not change by itself.
var begun = time.Now()

// request is what agent a asks for in a lab.
func request(id string) approval.Request {
	now := begun
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
	if _, body := l.ask(looks, http.MethodGet, Root+"approvals", nil); !strings.Contains(body, `<a href="/page/approvals/r1">`) || !strings.Contains(body, "May I &lt;b&gt;deploy&lt;/b&gt;?") || strings.Contains(body, "Approve<") || !strings.Contains(body, "rejected by a person") {
		t.Errorf("all of them: %s", body)
	}
	_, body := l.ask(acts, http.MethodGet, Root+"approvals/r1", nil)
	for _, want := range []string{"line one\nline two", "&lt;new&gt;", `value="approve a r1"`, `value="reject a r1"`, `name="text-r1"`} {
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
	l.ask(acts, http.MethodPost, Root+"act", with(form, "do", "reject a r1", "text-r1", "not now"))
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

// severalAsk are requests of one agent and of another, the second of which is grave, the third with
// more to read than a list has.
type severalAsk struct{ *lab }

func (severalAsk) Waiting() ([]approval.Request, error) {
	all := []approval.Request{request("r1"), request("r3"), request("r4"), request("r5")}
	all[1].Agent, all[1].Category = "b", "destroy"
	all[2].Payload = foreign.Text(strings.Repeat("long ", longestWhole))
	return all, nil
}

// TestAnApprovalIsAnsweredInTheList: it only linked to each request. There are yes and no, with
// a note of its own for each, where all that there is to read is there; and the same is
// refused as on the request's own page.
func TestAnApprovalIsAnsweredInTheList(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.page.opt.Approvals = severalAsk{l}
	acts, looks := l.enter(access.Act), l.enter(access.Look)
	_, body := l.ask(acts, http.MethodGet, Root+"approvals", nil)
	for want, times := range map[string]int{
		`name="do" value="approve a r1">Approve<`: 1, `class="no" form="act" name="do" value="reject a r1"`: 1,
		`class="yes" form="act" name="do" value="approve b r3"`: 1, `class="no" form="act" name="do" value="reject b r3"`: 1,
		`value="approve a r4"`: 0, `<a href="/page/approvals/r4">May I`: 1, "long long": 0, `value="approve a r5"`: 1,
		`<label for="approval-note-r5">`: 1, `<textarea id="approval-note-r5" form="act" name="text-r5"`: 1, "line one\nline two": 3,
		`id="approval-answer-r1" data-part=`: 1, ` data-still>`: 3,
	} {
		if n := strings.Count(body, want); n != times {
			t.Errorf("%d times %s, want %d: %s", n, want, times, body)
		}
	}
	if _, body := l.ask(looks, http.MethodGet, Root+"approvals", nil); strings.Contains(body, "Approve<") || strings.Contains(body, "<textarea") || !strings.Contains(body, "line one\nline two") {
		t.Errorf("who may only look: %s", body)
	}
	notes := []string{"text-r1", "the first", "text-r3", "not now", "text-r5", "the last", "back", Root + "approvals"}
	res, _ := l.ask(acts, http.MethodPost, Root+"act", with(l.form(acts), append(notes, "do", "approve a r5")...))
	if len(l.did) != 1 || l.did[0] != "answer r5 approved a person (phone) the last" || !strings.HasPrefix(res.Header.Get("Location"), Root+"approvals?done=") {
		t.Errorf("%q, then %s", l.did, res.Header.Get("Location"))
	}
	if _, body := l.ask(acts, http.MethodGet, res.Header.Get("Location"), nil); !strings.Contains(body, "a: approved") {
		t.Errorf("what came of it is not said: %s", body)
	}
	if res, _ := l.ask(looks, http.MethodPost, Root+"act", with(l.form(looks), append(notes, "do", "approve a r1")...)); res.StatusCode != http.StatusForbidden || len(l.did) != 1 {
		t.Errorf("who may only look answers: %d, %q", res.StatusCode, l.did)
	}
	l.fails = approval.ErrAnswered
	for do, want := range map[string]string{"approve a r1": "it is answered already", "approve b r4": "there is no such request"} {
		res, _ := l.ask(acts, http.MethodPost, Root+"act", with(l.form(acts), append(notes, "do", do)...))
		if _, body := l.ask(acts, http.MethodGet, res.Header.Get("Location"), nil); !strings.Contains(body, want) {
			t.Errorf("%s: %s", do, body)
		}
	}
}

// TestALongListOfApprovals has what answers the first of them, and links to all others.
func TestALongListOfApprovals(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var all []approval.Request
	for i := range mostWhole + 5 {
		all = append(all, request(fmt.Sprintf("r%d", i)))
	}
	l.page.opt.Approvals = these{l, all}
	_, body := l.ask(l.enter(access.Act), http.MethodGet, Root+"approvals", nil)
	if forms, links := strings.Count(body, ">Approve<"), strings.Count(body, `<a href="/page/approvals/r`); forms != mostWhole || links != len(all)+1 {
		t.Errorf("%d forms, %d links", forms, links)
	}
}
