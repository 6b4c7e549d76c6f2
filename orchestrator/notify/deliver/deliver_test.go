package deliver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/notify/outbox"
)

// secretFile writes a secret and returns where it is.
func secretFile(t *testing.T, text string) config.Secret {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Secret{File: path}
}

func target(t *testing.T, address string) *config.Target {
	t.Helper()
	return &config.Target{Name: "x", Webhook: secretFile(t, address), Token: secretFile(t, "tk_hush"), Body: config.BodyJSON, Timeout: 10 * time.Second}
}

func TestAServerThatTakesIt(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	t.Cleanup(s.Close)
	m := message(held("x"))
	m.Key = "a/held@ä\r\nX-Evil: 1"
	if v := To(t.Context(), target(t, s.URL+"/hook"), office, m); v != (outbox.Verdict{}) {
		t.Fatalf("%+v", v)
	}
	if got.Method != http.MethodPost || got.URL.Path != "/hook" || got.Header.Get("Authorization") != "Bearer tk_hush" || got.Header.Get("X-Evil") != "" ||
		got.Header.Get("Idempotency-Key") != "a/held@___X-Evil: 1" || !json.Valid(body) {
		t.Errorf("%+v\n%s", got, body)
	}
}

// Each server that does not take a message is done with in time; what is said of it
// holds no secret, and says whether the message is at fault.
func TestServersThatDoNot(t *testing.T) {
	t.Parallel()
	answers := func(status int, header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if name, value, ok := strings.Cut(header, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body, " tk_hush ", r.URL.Path, r.Host)
		}
	}
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, tt := range map[string]struct {
		serve   http.HandlerFunc
		timeout time.Duration
		why     string
		refused bool
		after   time.Duration
	}{
		"500":         {serve: answers(500, "", "oops\x1b[31m"), why: "the server answers 500 Internal Server Error: oops\uFFFD[31m … "},
		"503":         {serve: answers(503, "Retry-After: 120", ""), why: "the server answers 503", after: 2 * time.Minute},
		"429":         {serve: answers(429, "", `{"ok":false,"parameters":{"retry_after":35}}`), why: "429"},
		"400":         {serve: answers(400, "", "invalid_payload"), why: "invalid_payload", refused: true},
		"401":         {serve: answers(401, "", ""), why: "401 Unauthorized"},
		"404":         {serve: answers(404, "", "no_service"), why: "no_service"},
		"hangs":       {serve: hang, timeout: 200 * time.Millisecond, why: "no answer within 200ms"},
		"is slow":     {serve: drip, timeout: 300 * time.Millisecond},
		"closes":      {serve: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, why: "the connection was closed without an answer"},
		"talks on":    {serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); _, _ = io.Copy(w, endless{}) }, why: "500"},
		"header bomb": {serve: answers(200, "X: "+strings.Repeat("x", 1<<20), ""), why: "headers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // from then on it learns that we have gone
				tt.serve(w, r)
			}))
			s.Config.ErrorLog = nil
			s.Start()
			t.Cleanup(s.Close)
			to := target(t, s.URL+"/hush/x")
			if tt.timeout > 0 {
				to.Timeout = tt.timeout
			}
			v := To(t.Context(), to, office, message(held("x")))
			for tt.why == "" && v.Why != "" && to.Timeout < testbed.Patience { // the machine may be slower
				to.Timeout *= 5
				v = To(t.Context(), to, office, message(held("x")))
			}
			if tt.why != "" && !strings.Contains(v.Why, tt.why) || tt.why == "" && v.Why != "" || v.Refused != tt.refused || tt.after > 0 && v.After != tt.after {
				t.Errorf("%+v", v)
			}
			if strings.Contains(v.Why, "hush") {
				t.Errorf("it says a secret: %s", v.Why)
			}
		})
	}
}

// TestWhatIsDeclinedHasNotArrived: a service answers with success and says in the answer that
// it has not taken the message, or the ping; so does what curl prints, which exits with 0. It
// counted as sent.
func TestWhatIsDeclinedHasNotArrived(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]struct {
		why     string
		refused bool
	}{
		`ok`:          {},
		`OK`:          {},
		`{"ok":true}`: {},
		`{"ok":true,"error":"none","result":{"ok":false}}`: {},
		`{"ok":"no"}`:    {},
		`[{"ok":false}]`: {},
		`{"ok":false,"error":"channel_not_found"}`:                      {why: ": channel_not_found"},
		` {"ok": false}` + "\n":                                         {why: "not take"},
		`{"ok":false,"error_code":400,"description":"chat not found"}`:  {why: ": chat not found", refused: true},
		`{"ok":false,"error_code":403,"description":"bot was blocked"}`: {why: ": bot was blocked"},
		`{"success":false,"message":"no such room"}`:                    {why: ": no such room"},
		`{"ok":false,"error":{"message":"of tk_hush\u001b[31m"}}`:       {why: ": of "},
		"OK (not found)":    {why: ": not found"},
		"OK (rate limited)": {why: ": rate limited"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
		t.Cleanup(s.Close)
		printf := []string{"printf", "%s", answer}
		for how, v := range map[string]outbox.Verdict{
			"webhook": To(t.Context(), target(t, s.URL+"/hush"), office, message(held("x"))),
			"command": To(t.Context(), &config.Target{Command: printf, Dir: t.TempDir(), Timeout: time.Minute}, office, message(held("x"))),
		} {
			if (want.why == "") != (v.Why == "") || !strings.Contains(strings.ReplaceAll(v.Why, "not taken", "not take"), want.why) || v.Refused != want.refused || how == "webhook" && strings.Contains(v.Why, "hush") || strings.Contains(v.Why, "\x1b") {
				t.Errorf("%s: %s: %+v", how, answer, v)
			}
		}
		for how, p := range map[string]*config.Ping{
			"ping": {URL: secretFile(t, s.URL+"/hush")}, "plain ping": {URL: secretFile(t, s.URL+"/hush"), Plain: true}, "ping command": {Command: printf, Dir: t.TempDir()},
		} {
			if err := Ping(t.Context(), p, OK, "text"); (err == nil) != (want.why == "") {
				t.Errorf("%s: %s: %v", how, answer, err)
			}
		}
	}
}

// drip answers at once and then sends its body for ever: the answer has come.
func drip(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		fmt.Fprint(w, "x")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// No redirect is followed: neither the message nor a secret gets to another server.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := httptest.NewServer(http.RedirectHandler(other.URL+"/hush", status))
		t.Cleanup(s.Close)
		v := To(t.Context(), target(t, s.URL+"/x"), office, message(held("x")))
		if !strings.Contains(v.Why, "sends us to "+other.URL+", which is not followed") || strings.Contains(v.Why, "hush") {
			t.Errorf("%d: %+v", status, v)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("the other server was asked %d times", asked.Load())
	}
}

// What is no HTTP, nobody's port, or no address is an error, without the address.
func TestNoServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(c).ReadString('\n')
			_, _ = io.WriteString(c, "220 mail.example hush\r\n")
			_ = c.Close()
		}
	}()
	for address, why := range map[string]string{
		"http://" + l.Addr().String() + "/hush": "malformed HTTP", "http://127.0.0.1:1/hush": "refused", "ftp://hush": "does not begin with https://",
		"hush": "does not begin with https://", "http://%zz/hush": "does not begin with https://",
	} {
		v := To(t.Context(), target(t, address), office, message(held("x")))
		if !strings.Contains(v.Why, why) || strings.Contains(strings.ReplaceAll(v.Why, "mail.example hush", ""), "hush") {
			t.Errorf("%s: %+v", address, v)
		}
	}
	if v := To(t.Context(), &config.Target{Webhook: config.Secret{Variable: "HEARTBEAT_TEST_NOTHING"}, Timeout: time.Second}, office, message(held("x"))); !strings.Contains(v.Why, "is not set") {
		t.Errorf("%+v", v)
	}
}

// A command gets the text and the facts, and of our own environment what programs
// need: no secrets.
func TestACommand(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hush")
	dir := t.TempDir()
	to := &config.Target{Command: []string{"sh", "-c", "cat > text; env > env; pwd > where"}, Dir: dir, Timeout: time.Minute}
	if v := To(t.Context(), to, office, message(held("x\x00\ny"))); v != (outbox.Verdict{}) {
		t.Fatalf("%+v", v)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if text := read("text"); text != "[office] a is held: x\uFFFD y\n    heartbeat resume a\n" {
		t.Errorf("%q", text)
	}
	env := read("env")
	for _, want := range []string{"HEARTBEAT_KEY=a/held@1\n", "HEARTBEAT_TIER=urgent\n", "HEARTBEAT_KIND=held\n", "HEARTBEAT_AGENT=a\n", `HEARTBEAT_JSON={"key":"a/held@1"`, "PATH="} {
		if !strings.Contains(env, want) {
			t.Errorf("%s is not in its environment:\n%s", want, env)
		}
	}
	if strings.Contains(env, "hush") {
		t.Errorf("our own secrets are:\n%s", env)
	}
}

// A command that fails, hangs, talks on or leaves something behind is done with.
func TestCommandsThatFail(t *testing.T) {
	t.Parallel()
	for script, why := range map[string]string{
		"echo no such user >&2; exit 3":    "exit status 3; it said: no such user",
		"sleep 600":                        "no answer within 500ms",
		"trap '' TERM; sleep 600 & wait":   "no answer within 500ms",
		"yes":                              "it printed over",
		"exit 75":                          "asks to be called later",
		"kill -9 $$":                       "signal: killed",
		"exec <&-; exit 0":                 "",
		"sleep 600 >/dev/null 2>&1 & true": "",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			begin, limit := time.Now(), time.Minute
			if strings.HasPrefix(why, "no answer") {
				limit = 500 * time.Millisecond
			}
			v := To(t.Context(), &config.Target{Command: []string{"sh", "-c", script}, Dir: t.TempDir(), Timeout: limit}, office, message(held(strings.Repeat("x", 1000))))
			if why == "" && v.Why != "" || !strings.Contains(v.Why, why) {
				t.Errorf("%s: %+v", script, v)
			}
			if took := time.Since(begin); took > 2*time.Minute {
				t.Errorf("%s: it took %s", script, took)
			}
		})
	}
	if v := To(t.Context(), &config.Target{Command: []string{"/nonexistent/program"}, Dir: t.TempDir(), Timeout: time.Second}, office, message(held("x"))); v.Why == "" {
		t.Error("a program that is not there has told somebody")
	}
}

// Pings are Healthchecks': /start, the address itself, /fail with the reason. A plain
// address is asked for while all is well, and not at all otherwise.
func TestPings(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- r.Method + " " + r.URL.String() + " " + string(body)
		fmt.Fprint(w, "OK")
	}))
	t.Cleanup(s.Close)
	for _, tt := range []struct {
		path  string
		plain bool
		sign  Sign
		want  string
	}{
		{"/uuid", false, Start, "POST /uuid/start text"},
		{"/uuid", false, OK, "POST /uuid text"},
		{"/uuid", false, Fail, "POST /uuid/fail text"},
		{"/key/slug?create=1", false, Fail, "POST /key/slug/fail?create=1 text"},
		{"/push", true, OK, "GET /push "},
		{"/push", true, Fail, ""},
	} {
		if err := Ping(t.Context(), &config.Ping{URL: secretFile(t, s.URL+tt.path), Plain: tt.plain}, tt.sign, "text"); err != nil {
			t.Errorf("%+v: %v", tt, err)
		}
		got := ""
		select {
		case got = <-asked:
		default:
		}
		if got != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
	dir := t.TempDir()
	if err := Ping(t.Context(), &config.Ping{Command: []string{"sh", "-c", "echo $HEARTBEAT_PING > sign; cat >> sign"}, Dir: dir}, Fail, "why"); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "sign")); string(data) != "fail\nwhy\n" {
		t.Errorf("%q, %v", data, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Ping(ctx, &config.Ping{URL: secretFile(t, s.URL+"/hush")}, OK, ""); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("%v", err)
	}
}

// TestTwoTrialsOfOneSecondHaveTwoKeys: a server that knows the key takes the second one for
// the first.
func TestTwoTrialsOfOneSecondHaveTwoKeys(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	if a, b := Trial("phone", now), Trial("phone", now.Add(time.Microsecond)); a.Key == b.Key || a.Notices[0].Key != a.Key {
		t.Errorf("%q, %q", a.Key, b.Key)
	}
}
