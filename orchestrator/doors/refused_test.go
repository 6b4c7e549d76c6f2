package doors

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/memory"
	"heartbeat/sources/webhook"
)

// TestRefusedRequestsAreTold: every kind of refusal was answered to the sender, and nobody
// here was told. Each is counted by trigger, sender and fault, without anything of what was
// sent, until a request of that sender is accepted; that another sender's is changes nothing.
func TestRefusedRequestsAreTold(t *testing.T) {
	t.Parallel()
	const body = `{"issue": {"number": 17}, "label": {"name": "agent"}}`
	const hub, given = "X-Hub-Signature-256", "sk-of-the-sender"
	standard := func(at time.Time, signature string) []string {
		return []string{"Webhook-Id", "m", "Webhook-Timestamp", fmt.Sprint(at.Unix()), "Webhook-Signature", "v1," + base64.StdEncoding.EncodeToString([]byte(signature))}
	}
	long := strings.Repeat(" ", webhook.MaxBody+1)
	cases := map[string]struct {
		fault   webhook.Fault
		method  string // POST if ""
		headers []string
		body    string // body if ""
		chunked io.Reader
	}{
		"no secret":                   {fault: webhook.NoSecret, headers: []string{"Cookie", given}},
		"an empty signature":          {fault: webhook.NoSecret, headers: []string{hub, ""}},
		"the old signature only":      {fault: webhook.NoSecret, headers: []string{"X-Hub-Signature", "sha1=00"}},
		"another secret":              {fault: webhook.WrongSecret, headers: []string{"Authorization", "Bearer " + given}},
		"GitLab's with another":       {fault: webhook.WrongSecret, headers: []string{"X-Gitlab-Token", given}},
		"another kind of login":       {fault: webhook.WrongSecret, headers: []string{"Authorization", "Basic " + secret}},
		"another signature":           {fault: webhook.WrongSignature, headers: []string{hub, "sha256=00"}},
		"Gitea's signature":           {fault: webhook.WrongSignature, headers: []string{"X-Gitea-Signature", "00"}},
		"a signature without a body":  {fault: webhook.ChangedBody, headers: []string{hub, signed("")}},
		"a body with a line end more": {fault: webhook.ChangedBody, headers: []string{hub, signed(body)}, body: body + "\n"},
		"a body with spaces more":     {fault: webhook.ChangedBody, headers: []string{hub, signed(strings.ReplaceAll(body, " ", ""))}},
		"no time":                     {fault: webhook.NoTimestamp, headers: []string{"Webhook-Signature", "v1,00"}},
		"a wrong standard signature":  {fault: webhook.WrongSignature, headers: standard(time.Now(), "x")},
		"an old signature": {fault: webhook.OldSignature, headers: func() []string {
			at := time.Now().Add(-time.Hour)
			return standard(at, string(macOf(fmt.Sprintf("m.%d.%s", at.Unix(), body))))
		}()},
		"another method":           {fault: webhook.NoPost, method: http.MethodPut},
		"a page":                   {fault: webhook.WebPage, headers: []string{"Origin", "https://evil.example"}},
		"a large body":             {fault: webhook.TooLarge, body: long},
		"a large body, in pieces":  {fault: webhook.TooLarge, headers: []string{hub, signed(long)}, chunked: strings.NewReader(long)},
		"a body that ends early":   {fault: webhook.Incomplete, headers: []string{hub, "sha256=00"}, chunked: iotest.ErrReader(errors.New("gone"))},
		"a compressed body":        {fault: webhook.Compressed, headers: []string{"Authorization", "Bearer " + secret, "Content-Encoding", "gzip"}},
		"a compressed body unsaid": {fault: webhook.Compressed, headers: []string{"Authorization", "Bearer " + secret}, body: "\x1f\x8b" + given},
		"another alphabet":         {fault: webhook.NotUTF8, headers: []string{"Authorization", "Bearer " + secret, "Content-Type", "application/json; charset=latin1"}, body: "\"\xe9\""},
		"no JSON":                  {fault: webhook.NotJSON, headers: []string{"Authorization", "Bearer " + secret}, body: given},
		"tiny values":              {fault: webhook.ManyValues, headers: []string{"Authorization", "Bearer " + secret}, body: "[" + strings.Repeat("{},", foreign.MostValues) + "{}]"},
		"no key":                   {fault: webhook.Unfit, headers: []string{"Authorization", "Bearer " + secret}, body: `{"label": {"name": "agent"}}`},
		"a form":                   {fault: webhook.NotJSON, headers: []string{"Authorization", "Bearer " + secret, "Content-Type", "application/x-www-form-urlencoded"}, body: "token=" + given},
	}
	walked := map[webhook.Fault]bool{}
	for _, tt := range cases {
		walked[tt.fault] = true
	}
	for _, f := range webhook.Faults() {
		if !walked[f] {
			t.Errorf("no request has the fault %s", f)
		}
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.cfg.Triggers[1].Webhook.Key = "{{.JSON.issue.number}}"
			l.hooks.Set(t.Context(), l.cfg)
			h := Webhooks(l.fires.Webhook)
			send := func(agent, method, body string, chunked io.Reader, headers ...string) int {
				r := httptest.NewRequestWithContext(t.Context(), method, "/github", strings.NewReader(body))
				if chunked != nil {
					r = httptest.NewRequestWithContext(t.Context(), method, "/github", chunked)
					r.ContentLength = -1
				}
				r.Header.Set("User-Agent", agent)
				for i := 0; i < len(headers); i += 2 {
					r.Header.Set(headers[i], headers[i+1])
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w.Code
			}
			if tt.method == "" {
				tt.method = http.MethodPost
			}
			if tt.body == "" {
				tt.body = body
			}
			begin := time.Now()
			for range 2 {
				if code := send("curl/8 "+given, tt.method, tt.body, tt.chunked, tt.headers...); code < 400 || code >= 500 {
					t.Errorf("answered with %d", code)
				}
				if s, ok := tt.chunked.(*strings.Reader); ok {
					s.Reset(long)
				}
			}
			want := webhook.SenderOf(http.Header{"User-Agent": {"curl/8"}})
			if strings.HasPrefix(strings.Join(tt.headers, ""), "Webhook-Id") {
				want = "a sender of Standard Webhooks"
			}
			all := l.hooks.RefusedRequests()
			if len(all) != 1 || all[0].Trigger != "github" || all[0].Sender != want || all[0].Fault != tt.fault || all[0].Times != 2 || all[0].Since.Before(begin) || all[0].Last.Before(all[0].Since) {
				t.Fatalf("told is %+v, want 2 of %s: %s", all, want, tt.fault)
			}
			text := all[0].Text() + all[0].Fault.Check()
			if strings.Contains(text, given) || strings.Contains(text, secret) || !strings.Contains(text, "2 requests of "+string(want)) || all[0].Fault.Check() == "" {
				t.Errorf("it says %q", text)
			}
			good := []string{"Authorization", "Bearer " + secret}
			send("Go-http-client/1.1", http.MethodPost, body, nil, good...)
			if again := l.hooks.RefusedRequests(); !slices.Equal(again, all) {
				t.Errorf("another sender's request has changed it: %+v", again)
			}
			l.hooks.Stop()
			l.hooks = l.fires.Of("a", memory.Identity{Key: "a"}, l) // the next run
			l.hooks.Set(t.Context(), l.cfg)
			if again := l.hooks.RefusedRequests(); !slices.Equal(again, all) {
				t.Errorf("it is forgotten: %+v", again)
			}
			if want != "curl" {
				good = append(good, "Webhook-Id", "n")
			}
			if code := send("curl/8", http.MethodPost, `{"label": {"name": "nobody"}}`, nil, good...); code != http.StatusOK || len(l.hooks.RefusedRequests()) != 0 {
				t.Errorf("one that is accepted, %d: %+v", code, l.hooks.RefusedRequests())
			}
		})
	}
}
