package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"heartbeat/sources"
)

func trigger(t testing.TB, prompt, key string, match ...sources.Condition) *Trigger {
	t.Helper()
	parse := func(text string) *sources.Template {
		tmpl, err := sources.ParseWebhookTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		return tmpl
	}
	w := &Trigger{Template: parse(prompt), Match: match}
	if key != "" {
		w.Key = parse(key)
	}
	return w
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func sign(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// TestSecrets has the example that GitHub publishes for testing signatures: secret,
// body and what they make.
func TestSecrets(t *testing.T) {
	t.Parallel()
	const (
		secret, body = "It's a Secret to Everybody", "Hello, World!"
		right        = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	)
	for name, tt := range map[string]struct {
		headers http.Header
		body    string
		ok      bool
	}{
		"signed":                           {headers("X-Hub-Signature-256", right), body, true},
		"another body":                     {headers("X-Hub-Signature-256", right), body + " ", false},
		"another secret":                   {headers("X-Hub-Signature-256", sign("x", body)), body, false},
		"cut":                              {headers("X-Hub-Signature-256", right[:len(right)-2]), body, false},
		"no hex":                           {headers("X-Hub-Signature-256", "sha256=zz"), body, false},
		"another sum":                      {headers("X-Hub-Signature-256", strings.Replace(right, "256", "1", 1)), body, false},
		"no name of the sum":               {headers("X-Hub-Signature-256", right[len("sha256="):]), body, false},
		"the old signature":                {headers("X-Hub-Signature", "sha1=x"), body, false},
		"bearer":                           {headers("Authorization", "Bearer "+secret), body, true},
		"bearer, as others write it":       {headers("Authorization", "bearer  "+secret), body, true},
		"bearer of something else":         {headers("Authorization", "Bearer x"), body, false},
		"bearer, empty":                    {headers("Authorization", "Bearer "), body, false},
		"basic":                            {headers("Authorization", "Basic "+secret), body, false},
		"a wrong signature and bearer":     {headers("X-Hub-Signature-256", sign("x", body), "Authorization", "Bearer "+secret), body, false},
		"two signatures":                   {headers("X-Hub-Signature-256", sign("x", body), "X-Hub-Signature-256", right), body, false},
		"nothing":                          {headers(), body, false},
		"two signatures, the second wrong": {headers("X-Hub-Signature-256", right, "X-Hub-Signature-256", sign("x", body)), body, false},
		"the old signature beside it":      {headers("X-Hub-Signature", "sha1=x", "X-Hub-Signature-256", right), body, true},
		"Bitbucket":                        {headers("X-Hub-Signature", right), body, true},
		"Bitbucket, another body":          {headers("X-Hub-Signature", right), "x", false},
		"Gitea":                            {headers("X-Gitea-Signature", right[len("sha256="):]), body, true},
		"Gitea with all it sends":          {headers("X-Gitea-Signature", right[len("sha256="):], "X-Gogs-Signature", right[len("sha256="):], "X-Hub-Signature", "sha1=x", "X-Hub-Signature-256", right), body, true},
		"Gitea, another secret":            {headers("X-Gitea-Signature", sign("x", body)[len("sha256="):]), body, false},
		"Gitea's wrong beside GitHub's":    {headers("X-Gitea-Signature", sign("x", body)[len("sha256="):], "X-Hub-Signature-256", right), body, false},
		"Forgejo":                          {headers("X-Forgejo-Signature", right[len("sha256="):]), body, true},
		"GitLab's token":                   {headers("X-Gitlab-Token", secret), body, true},
		"GitLab's token, another":          {headers("X-Gitlab-Token", "x"), body, false},
		"GitLab's token, empty":            {headers("X-Gitlab-Token", ""), body, false},
		"a wrong bearer beside the token":  {headers("X-Gitlab-Token", secret, "Authorization", "Bearer x"), body, false},
	} {
		err := Check([]byte(secret), tt.headers, []byte(tt.body), time.Now())
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
		if tt.ok && !Proves([]byte(secret), tt.headers) {
			t.Errorf("%s: its body is not read", name)
		}
	}
	if Proves([]byte(secret), headers("Authorization", "Bearer x")) || !Proves(nil, headers()) || Check(nil, headers(), nil, time.Now()) != nil {
		t.Error("without a secret everybody may ask, with one only who knows it")
	}
}

// TestStandardWebhooks has the example that the specification publishes: its signature covers
// an id and a time beside the body. GitLab signs so.
func TestStandardWebhooks(t *testing.T) {
	t.Parallel()
	const (
		secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"test": 2432232314}`
		id, right    = "msg_p5jXN8AQM9LWM0D4loKWxJek", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	)
	at := time.Unix(1614265330, 0)
	given := func(id, time, signature string) http.Header {
		return headers("webhook-id", id, "webhook-timestamp", time, "webhook-signature", signature)
	}
	for name, tt := range map[string]struct {
		secret  string
		headers http.Header
		body    string
		now     time.Time
		ok      bool
	}{
		"signed":               {secret, given(id, "1614265330", right), body, at, true},
		"one of several":       {secret, given(id, "1614265330", "v1a,x v1,x "+right), body, at.Add(4 * time.Minute), true},
		"a secret as it is":    {"It is a secret of ours", given("1", "1614265330", "v1,"+standardSum("It is a secret of ours", "1.1614265330."+body)), body, at, true},
		"old":                  {secret, given(id, "1614265330", right), body, at.Add(6 * time.Minute), false},
		"from the future":      {secret, given(id, "1614265330", right), body, at.Add(-6 * time.Minute), false},
		"another time":         {secret, given(id, "1614265331", right), body, at, false},
		"another id":           {secret, given("msg_x", "1614265330", right), body, at, false},
		"another body":         {secret, given(id, "1614265330", right), body + " ", at, false},
		"another secret":       {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", given(id, "1614265330", right), body, at, false},
		"another version":      {secret, given(id, "1614265330", strings.Replace(right, "v1", "v2", 1)), body, at, false},
		"no id":                {secret, headers("webhook-timestamp", "1614265330", "webhook-signature", right), body, at, false},
		"wrong beside a token": {secret, headers("webhook-id", id, "webhook-timestamp", "1614265330", "webhook-signature", "v1,x", "X-Gitlab-Token", secret), body, at, false},
	} {
		err := Check([]byte(tt.secret), tt.headers, []byte(tt.body), tt.now)
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
		if !Proves([]byte(tt.secret), tt.headers) {
			t.Errorf("%s: its body is not read", name)
		}
	}
}

func standardSum(secret, text string) string {
	return base64.StdEncoding.EncodeToString(mac([]byte(secret), []byte(text)))
}

// TestBodiesAreReadAsTheyAreEncoded: a compressed body was "not JSON", and the form that GitHub
// sends by default was refused.
func TestBodiesAreReadAsTheyAreEncoded(t *testing.T) {
	t.Parallel()
	w := trigger(t, "{{.JSON.a}} {{.Body}}", "")
	const form = "application/x-www-form-urlencoded"
	for name, tt := range map[string]struct {
		kind, coding, body, want string
		err                      error
	}{
		"JSON":                      {"application/json", "", `{"a":"é"}`, `é {"a":"é"}`, nil},
		"JSON, its charset said":    {"application/json; charset=UTF-8", "identity", `{"a":"é"}`, `é {"a":"é"}`, nil},
		"JSON as curl -d sends it":  {form, "", `{"a":"b=c&payload=x"}`, `b=c&payload=x {"a":"b=c&payload=x"}`, nil},
		"a byte order mark":         {"application/json", "", "\ufeff{\"a\":\"b\"}", `b {"a":"b"}`, nil},
		"a mark before curl's":      {form, "", "\ufeff{\"a\":\"b\"}", `b {"a":"b"}`, nil},
		"a form":                    {form, "", "payload=%7B%22a%22%3A%22%C3%A9+b%22%7D&x=y", `é b {"a":"é b"}`, nil},
		"a form without a payload":  {form, "", "a=b", "", ErrUnreadable},
		"a form with two":           {form, "", "payload=%7B%7D&payload=%7B%7D", "", ErrUnreadable},
		"a form whose is no JSON":   {form, "", "payload=x", "", ErrUnreadable},
		"a charset, nothing of it":  {"application/json; charset=iso-8859-1", "", `{"a":"e"}`, `e {"a":"e"}`, nil},
		"another charset":           {"application/json; charset=iso-8859-1", "", "{\"a\":\"\xe9\"}", "", ErrEncoded},
		"two bytes a character":     {"application/json; charset=utf-16le", "", "{\x00}\x00", "", ErrEncoded},
		"compressed":                {"application/json", "gzip", "\x1f\x8b", "", ErrEncoded},
		"compressed, not said":      {"application/json", "", "\x1f\x8b", "", ErrEncoded},
		"compressed in another way": {"", "identity, BR", "x", "", ErrEncoded},
	} {
		h := headers("Content-Type", tt.kind, "Content-Encoding", tt.coding)
		err := Encoded(h)
		var p sources.Prompt
		if err == nil {
			p, err = w.Prompt(h, []byte(tt.body), time.Now())
		}
		if !errors.Is(err, tt.err) || p.Text != tt.want {
			t.Errorf("%s: %q, %v", name, p.Text, err)
		}
	}
	w = trigger(t, `{{.Header "X-Gitlab-Token"}}{{.Header "Authorization"}}.`, "")
	if p, err := w.Prompt(headers("X-Gitlab-Token", "secret", "Authorization", "secret"), []byte("{}"), time.Now()); strings.Contains(p.Text, "secret") {
		t.Errorf("a prompt has the secret: %q, %v", p.Text, err)
	}
}

func published(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("testdata/issues.labeled.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestALabelledIssue is a delivery of the shape that GitHub publishes, shortened.
func TestALabelledIssue(t *testing.T) {
	t.Parallel()
	w := trigger(t, `Issue {{.JSON.issue.number}} of {{.JSON.repository.full_name}}: {{.JSON.issue.title}} [{{.JSON.issue.body}}] ({{.Header "X-GitHub-Event"}})`, "",
		sources.Condition{Header: "X-Github-Event", Values: []string{"issues"}},
		sources.Condition{Field: []string{"action"}, Values: []string{"opened", "labeled"}},
		sources.Condition{Field: []string{"issue", "labels", "*", "name"}, Values: []string{"agent"}},
		sources.Condition{Field: []string{"repository", "private"}, Values: []string{"true"}},
		sources.Condition{Field: []string{"issue", "id"}, Values: []string{"2938475610"}},
	)
	h := headers("X-GitHub-Event", "issues", "X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	p, err := w.Prompt(h, []byte(published(t)), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if p.Label != "72d3162e-cc78-11e3-81ab-4c9367dc0958" {
		t.Errorf("label %q", p.Label)
	}
	if want := "Issue 17 of octo-org/octo-repo: The door squeaks \x1b[31m\u202e [] (issues)"; p.Text != want {
		t.Errorf("the prompt is %q, want %q", p.Text, want)
	}
	for name, change := range map[string]func(h http.Header, body string) (http.Header, string){
		"another event": func(_ http.Header, b string) (http.Header, string) { return headers("X-GitHub-Event", "push"), b },
		"no event":      func(_ http.Header, b string) (http.Header, string) { return headers(), b },
		"another action": func(h http.Header, b string) (http.Header, string) {
			return h, strings.Replace(b, "labeled", "closed", 1)
		},
		"no such label": func(h http.Header, b string) (http.Header, string) {
			return h, strings.ReplaceAll(b, `"agent"`, `"agents"`)
		},
		"a list, not a field": func(h http.Header, _ string) (http.Header, string) { return h, `[]` },
		"a text":              func(h http.Header, _ string) (http.Header, string) { return h, `"action"` },
	} {
		h, body := change(h, published(t))
		if p, err := w.Prompt(h, []byte(body), time.Now()); !errors.Is(err, ErrUnwanted) {
			t.Errorf("%s: %q, %v", name, p.Text, err)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	label := func(key string, h http.Header, body string) string {
		t.Helper()
		p, err := trigger(t, "x", key).Prompt(h, []byte(body), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return p.Label
	}
	if a, b := label("", headers(), "{}"), label("", headers(), "{}"); a == b {
		t.Errorf("two requests without an id are one: %s", a)
	}
	if l := label("", headers("Idempotency-Key", "k-1", "X-GitHub-Delivery", "d-1"), "{}"); l != "d-1" {
		t.Error(l)
	}
	if l := label("", headers("Idempotency-Key", "k-1"), "{}"); l != "k-1" {
		t.Error(l)
	}
	if l := label("{{.JSON.id}}", headers("Idempotency-Key", "k-1"), `{"id": 12345678901234567890}`); l != "12345678901234567890" {
		t.Error(l)
	}
	seen := map[string]string{}
	for _, key := range []string{"a", "a ", "a@b", "a+trigger-1", "a\nb", "\x1b[31m", "../../x", "key#0", strings.Repeat("x", 65), strings.Repeat("x", 1000), ".", "request#x", "\u202e", "ü"} {
		body, err := json.Marshal(map[string]string{"id": key})
		if err != nil {
			t.Fatal(err)
		}
		l := label("{{.JSON.id}}", headers(), string(body))
		if other, twice := seen[l]; twice {
			t.Errorf("%q and %q are one: %s", key, other, l)
		}
		seen[l] = key
		if len(l) > 80 || strings.ContainsAny(l, "@/+ ") || strings.ContainsFunc(l, unicode.IsControl) {
			t.Errorf("%q makes the label %q", key, l)
		}
	}
}

// TestWhatIsMissingIsEmptyAndNamed: a request is not lost for a field that it lacks.
func TestWhatIsMissingIsEmptyAndNamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ prompt, body, lacking string }{
		{"x{{.JSON.issue.title}}", `{}`, ".JSON.issue.title"},
		{"x{{.JSON.issue.title}}", `{"issue": null}`, ""},
		{"x{{.JSON.issue.title}}", `{"issue": []}`, ".JSON.issue.title"},
		{`x{{.Header "X-Github-Event"}}`, `{}`, "the header X-Github-Event"},
		{`x{{.Header "Authorization"}}`, `{}`, "the header Authorization"},
		{`x{{with .JSON.issue}}{{.title}}{{end}}`, `{}`, ""},
	} {
		p, err := trigger(t, tt.prompt, "").Prompt(headers("Authorization", "Bearer secret"), []byte(tt.body), time.Now())
		if got := strings.Join(p.Lacking, "|"); err != nil || p.Text != "x" || got != tt.lacking {
			t.Errorf("%s of %s: %q lacking %q, %v", tt.prompt, tt.body, p.Text, got, err)
		}
	}
}

// TestWhatMakesNoPromptIsSaid: nor is a key made of less than its template names.
func TestWhatMakesNoPromptIsSaid(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ prompt, key, body, want string }{
		{"x", "ticket {{.JSON.id}}", `{}`, "cannot make the key: there is no .JSON.id"},
		{"x", "{{.JSON.id}}", `{}`, `cannot make the key`},
		{"x", "{{.JSON.id}}", `{"id": "  "}`, `the key: it is blank`},
		{"{{.JSON.text}}", "", `{"text": "\n"}`, `it is blank`},
		{"x", "", ``, ErrUnreadable.Error()},
		{"x", "", `{`, ErrUnreadable.Error()},
		{"x", "", `{} {}`, ErrUnreadable.Error()},
		{"x", "", `payload=%7B%7D`, ErrUnreadable.Error()},
		{"x", "", strings.Repeat("[", 20_000), ErrUnreadable.Error()},
	} {
		_, err := trigger(t, tt.prompt, tt.key).Prompt(headers("Authorization", "Bearer secret"), []byte(tt.body), time.Now())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s of %.40s: %v, want %q", tt.prompt, tt.body, err, tt.want)
		}
	}
}

// FuzzPrompt: whatever a request says, it makes a prompt of text with a label of
// ours, or an error; what its template asks for is not run.
func FuzzPrompt(f *testing.F) {
	f.Add(published(f), "issues", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	f.Add(`{"action": "{{.JSON}}", "id": "a@b"}`, "x\x00y", "a\r\nX-Hub-Signature-256: sha256=00")
	f.Add("{\"action\": \"\xff\x1b]52;c;x\x07\"}", "\u202e", "")
	f.Fuzz(func(t *testing.T, body, event, delivery string) {
		h := http.Header{"X-Github-Event": {event}, "X-Github-Delivery": {delivery}}
		w := trigger(t, `{{.JSON.action}} {{.Header "X-GitHub-Event"}} {{.Body}}`, "", sources.Condition{Field: []string{"issue", "labels", "*", "name"}, Values: []string{"agent", ""}})
		for _, match := range [][]sources.Condition{nil, w.Match} {
			w.Match = match
			p, err := w.Prompt(h, []byte(body), time.Unix(0, 0))
			if err != nil {
				continue
			}
			if !utf8.ValidString(p.Text) || len(p.Label) > 80 || strings.ContainsAny(p.Label, "@/+ ") || strings.ContainsFunc(p.Label, unicode.IsControl) || !utf8.ValidString(p.Label) {
				t.Errorf("label %q, prompt %q", p.Label, p.Text)
			}
			if !strings.HasSuffix(p.Text, strings.ToValidUTF8(body, "\ufffd")) {
				t.Errorf("the prompt is %q", p.Text)
			}
		}
		if Check([]byte("a secret nobody knows"), http.Header{"X-Hub-Signature-256": {event}, "Authorization": {delivery}}, []byte(body), time.Now()) == nil {
			t.Error("it was let in")
		}
	})
}

// TestARefusalSaysWhatToChoose: in words of ours, and where a sender's text ends.
func TestARefusalSaysWhatToChoose(t *testing.T) {
	t.Parallel()
	tr := Trigger{}
	h := http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}}
	if _, err := tr.Prompt(h, []byte("pay=%7B%7D"), time.Now()); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "choose the content type application/json") {
		t.Error(err)
	}
	if _, err := tr.Prompt(http.Header{}, []byte("payload"), time.Now()); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "byte 1") {
		t.Error(err)
	}
}
