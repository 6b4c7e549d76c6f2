package doors

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/ptyrun/lobby"
	"heartbeat/sources"
)

const secret = "a secret of tests alone"

// lab is a fleet of one agent with two webhooks, and its doors.
type lab struct {
	t     *testing.T
	dir   string
	cfg   *config.Agent
	fires *firing.Firing
	hooks *firing.Triggers
	doors *Doors
	store *store.Store
	log   *slog.Logger

	mu      sync.Mutex
	letters []inbox.Letter
	broken  error
	down    string
	failing []firing.Failing
}

// newLab declares /open, which needs no secret, and /github, which does and wants
// labelled issues.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir(), log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	file := filepath.Join(l.dir, "secret")
	l.must(os.WriteFile(file, []byte(secret+"\n"), 0o600))
	l.cfg = &config.Agent{Name: "a", Dir: l.dir, Triggers: []config.Trigger{
		{Name: "open", Webhook: &config.WebhookTrigger{Path: "/open", Prompt: "{{.JSON.text}}"}},
		{Name: "github", Webhook: &config.WebhookTrigger{
			Path: "/github", SecretFile: file, Prompt: "Issue {{.JSON.issue.number}}",
			Match: []sources.Condition{{Field: []string{"label", "name"}, Values: []string{"agent"}}},
		}},
		{Name: "gated", Gate: []string{"false"}, Webhook: &config.WebhookTrigger{Path: "/gated", Prompt: "x"}},
	}}
	l.store = storetest.New(t, t.TempDir())
	var around sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	l.fires = firing.New(firing.Options{
		StateDir: t.TempDir(), Store: l.store, Log: l.log, Note: func(journal.Event) {}, Go: around.Go,
		Environment: func(a *config.Agent) ([]string, error) { return a.Environ(os.Environ()) },
	})
	l.fires.Start(ctx)
	l.hooks = l.fires.Of("a", memory.Identity{Key: "a"}, l)
	l.hooks.Set(ctx, l.cfg)
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") })
	l.doors = New(Options{Webhooks: Webhooks(l.fires.Webhook), Metrics: metrics, Log: l.log})
	l.doors.limits.again = 20 * time.Millisecond
	around.Go(func() { l.doors.Run(ctx) })
	t.Cleanup(func() { cancel(); around.Wait() })
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) InTurn(time.Time) bool                     { return false }
func (l *lab) TriggersFail(f []firing.Failing)           { l.failing = f }
func (l *lab) RequestsRefused()                          {}
func (l *lab) Holds(*config.Agent, string) (bool, error) { return false, nil }

func (l *lab) Down() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

func (l *lab) goesDown(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = why
}

// Append refuses what is over 1,000 bytes, and what it has.
func (l *lab) Append(_ context.Context, _ *config.Agent, _ *config.Trigger, m inbox.Letter) (func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.broken != nil:
		return nil, l.broken
	case len(m.Prompt) > 1000:
		return nil, inbox.ErrTooLarge
	case slices.ContainsFunc(l.letters, func(o inbox.Letter) bool { return o.ID == m.ID }):
		return nil, inbox.ErrDuplicate
	case m.Most < 0:
		return nil, inbox.ErrFull
	}
	l.letters = append(l.letters, m)
	return func() {}, nil
}

// socket returns an address of its own that serves everything.
func (l *lab) socket(name string) config.Listen {
	return config.Listen{Network: "unix", Address: filepath.Join(l.dir, name), Mode: 0o600, Serves: []config.Service{config.ServesWebhooks, config.ServesMetrics}}
}

// state waits until the only door is open, or has a problem with these words.
func (l *lab) state(problem string) {
	l.t.Helper()
	var all []status.Door
	if !testbed.Await(testbed.Patience, func() bool {
		all = l.doors.State()
		return len(all) == 1 && (problem == "") == (all[0].Problem == "") && strings.Contains(all[0].Problem, problem)
	}) {
		l.t.Fatalf("the doors are %+v, want %q", all, problem)
	}
}

func client(path string) *http.Client {
	return &http.Client{Timeout: testbed.Patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}
}

// ask makes a request and returns the answer.
func (l *lab) ask(method, path, body string, pairs ...string) (code int, answer reply, h http.Header) {
	l.t.Helper()
	r, err := http.NewRequestWithContext(l.t.Context(), method, "http://heartbeat"+path, strings.NewReader(body))
	l.must(err)
	for i := 0; i < len(pairs); i += 2 {
		r.Header.Set(pairs[i], pairs[i+1])
	}
	res, err := client(filepath.Join(l.dir, "s")).Do(r)
	l.must(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	l.must(err)
	if err := json.Unmarshal(text, &answer); err != nil {
		l.t.Errorf("%s %s: %d %s", method, path, res.StatusCode, text)
	}
	if len(text) > 300 {
		l.t.Errorf("the answer is long: %s", text)
	}
	return res.StatusCode, answer, res.Header
}

func macOf(text string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func signed(body string) string { return "sha256=" + hex.EncodeToString(macOf(body)) }

func TestAnswers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.doors.Set([]config.Listen{l.socket("s")})
	l.state("")
	const issue = `{"issue": {"number": 17}, "label": {"name": "agent"}}`
	const hub, id = "X-Hub-Signature-256", "X-GitHub-Delivery"
	for _, tt := range []struct {
		name, method, path, body string
		headers                  []string
		code                     int
		outcome                  firing.Outcome
	}{
		{name: "signed", path: "/github", body: issue, headers: []string{hub, signed(issue), id, "d-1"}, code: 202, outcome: firing.Queued},
		{name: "sent again", path: "/github", body: issue, headers: []string{hub, signed(issue), id, "d-1"}, code: 200, outcome: firing.Known},
		{name: "sent again to itself elsewhere", path: "/open", body: `{"text": "x"}`, headers: []string{id, "d-1"}, code: 202, outcome: firing.Queued},
		{name: "bearer", path: "/github", body: issue, headers: []string{"Authorization", "Bearer " + secret, id, "d-2"}, code: 202, outcome: firing.Queued},
		{name: "a query", path: "/github?a=b", body: issue, headers: []string{hub, signed(issue), id, "d-2"}, code: 200, outcome: firing.Known},
		{name: "no secret", path: "/github", body: issue, code: 401, outcome: firing.Refused},
		{name: "a wrong signature", path: "/github", body: issue, headers: []string{hub, signed("x")}, code: 401, outcome: firing.Refused},
		{name: "a wrong secret", path: "/github", body: strings.Repeat("x", 100_000), headers: []string{"Authorization", "Bearer x"}, code: 401, outcome: firing.Refused},
		{name: "not wanted", path: "/github", body: `{}`, headers: []string{hub, signed(`{}`)}, code: 200, outcome: firing.Declined},
		{name: "the gate says no", path: "/gated", body: `{}`, code: 200, outcome: firing.Declined},
		{name: "no JSON", path: "/github", body: `x`, headers: []string{hub, signed(`x`)}, code: 400, outcome: firing.Unreadable},
		{name: "compressed", path: "/github", body: "\x1f\x8b", headers: []string{"Authorization", "Bearer " + secret, "Content-Encoding", "gzip"}, code: 415, outcome: firing.Encoded},
		{name: "compressed, of a stranger", path: "/github", body: "\x1f\x8b", headers: []string{"Content-Encoding", "gzip"}, code: 401, outcome: firing.Refused},
		{name: "another charset", path: "/open", body: "{\"text\":\"\xe9\"}", headers: []string{"Content-Type", "application/json; charset=latin1"}, code: 415, outcome: firing.Encoded},
		{name: "a form", path: "/open", body: "payload=%7B%22text%22%3A%22x%22%7D", headers: []string{"Content-Type", "application/x-www-form-urlencoded", id, "d-form"}, code: 202, outcome: firing.Queued},
		{name: "a field is missing", path: "/open", body: `{"texts": "x"}`, code: 422, outcome: firing.Unfit},
		{name: "no such path", path: "/nowhere", body: `{}`, code: 404, outcome: firing.Refused},
		{name: "no such path, for a long body", path: "/nowhere", body: strings.Repeat("x", 200_000), code: 404, outcome: firing.Refused},
		{name: "PUT of a long body", method: "PUT", path: "/open", body: strings.Repeat("x", 200_000), code: 405, outcome: firing.Refused},
		{name: "a path below", path: "/open/x", body: `{}`, code: 404, outcome: firing.Refused},
		{name: "the root", path: "/", body: `{}`, code: 404, outcome: firing.Refused},
		{name: "GET", method: "GET", path: "/open", code: 405, outcome: firing.Refused},
		{name: "PUT", method: "PUT", path: "/open", code: 405, outcome: firing.Refused},
		{name: "a prompt that is too large", path: "/open", body: `{"text": "` + strings.Repeat("x", 1001) + `"}`, code: 413, outcome: firing.TooLarge},
		{name: "a page", path: "/open", body: `{"text":"x"}`, headers: []string{"Origin", "https://evil.example"}, code: 403, outcome: firing.Refused},
		{name: "a page, as it is told", path: "/open", body: `{"text":"x"}`, headers: []string{"Sec-Fetch-Site", "cross-site"}, code: 403, outcome: firing.Refused},
	} {
		if tt.method == "" {
			tt.method = http.MethodPost
		}
		code, answer, h := l.ask(tt.method, tt.path, tt.body, tt.headers...)
		if code != tt.code || answer.Status != tt.outcome || (answer.ID == "") != (code != 202 && answer.Status != firing.Known) {
			t.Errorf("%s: %d %+v, want %d %s", tt.name, code, answer, tt.code, tt.outcome)
		}
		if (h.Get("Allow") == "POST") != (code == 405) {
			t.Errorf("%s: allows %q", tt.name, h.Get("Allow"))
		}
	}
	for name, rest := range map[string]string{
		"said at once":     "Content-Length: 1048577\r\n\r\n",
		"found on the way": "Transfer-Encoding: chunked\r\n\r\n100001\r\n" + strings.Repeat(" ", 1<<20+1) + "\r\n0\r\n\r\n",
	} {
		conn, err := net.Dial("unix", filepath.Join(l.dir, "s"))
		l.must(err)
		l.must(conn.SetDeadline(time.Now().Add(testbed.Patience)))
		_, err = io.WriteString(conn, "POST /open HTTP/1.1\r\nHost: x\r\n"+rest)
		l.must(err)
		l.must(conn.(*net.UnixConn).CloseWrite()) // or it waits for the rest until its limit
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != 413 {
			t.Errorf("a body that is too large, %s: %v, %v", name, res, err)
		}
		_ = conn.Close()
	}
	if len(l.letters) != 4 || l.letters[0].ID != "a/github@d-1" || l.letters[0].Prompt != "Issue 17" || l.letters[0].Source != "a/github@d-1" {
		t.Errorf("queued %+v", l.letters)
	}
}

// TestWhatCannotBeQueuedIsAskedForAgain: a full disk, a directory that is gone, a
// secret that cannot be read. What was asked for again is queued once.
// TestAnAgentThatIsDownTakesNoRequests where its file says so; what it has it has.
func TestAnAgentThatIsDownTakesNoRequests(t *testing.T) {
	t.Parallel()
	for _, while := range []config.WhileDown{config.DownQueues, config.DownRefuses} {
		l := newLab(t)
		l.cfg.WhileDown, l.cfg.DownText = while, "Ask the desk."
		l.doors.Set([]config.Listen{l.socket("s")})
		l.state("")
		ask := func(id string, want int) (reply, http.Header) {
			t.Helper()
			code, answer, h := l.ask(http.MethodPost, "/open", `{"text": "x"}`, "X-GitHub-Delivery", id)
			if code != want {
				t.Errorf("%s, %s: %d %+v, want %d", while, id, code, answer, want)
			}
			return answer, h
		}
		ask("d-1", 202)
		l.goesDown("it is held")
		ask("d-1", 200)
		if while == config.DownQueues {
			ask("d-2", 202)
			continue
		}
		if a, h := ask("d-2", 503); a.Reason != "it is held; Ask the desk." || h.Get("Retry-After") == "" || len(l.failing) > 0 {
			t.Errorf("%+v, %v, failing %v", a, h, l.failing)
		}
		l.goesDown("")
		ask("d-2", 202)
	}
}

// TestAPausedWebhookIsAskedAgain: it refuses what is new, and has what it has; the agent's
// other webhooks take requests.
func TestAPausedWebhookIsAskedAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.doors.Set([]config.Listen{l.socket("s")})
	l.state("")
	ask := func(id string, want int) (reply, http.Header) {
		t.Helper()
		code, answer, h := l.ask(http.MethodPost, "/open", `{"text": "x"}`, "X-GitHub-Delivery", id)
		if code != want {
			t.Errorf("%s: %d %+v, want %d", id, code, answer, want)
		}
		return answer, h
	}
	ask("d-1", 202)
	l.must(l.hooks.Pause(t.Context(), l.cfg, "open", memory.Paused{Since: time.Now()}))
	if a, h := ask("d-2", 503); a.Reason != "the trigger is paused; ask again later" || h.Get("Retry-After") == "" || len(l.failing) > 0 {
		t.Errorf("%+v, %v, failing %v", a, h, l.failing)
	}
	ask("d-1", 200)
	if code, answer, _ := l.ask(http.MethodPost, "/gated", "{}"); code == 503 {
		t.Errorf("another webhook: %d %+v", code, answer)
	}
	l.must(l.hooks.Resume(t.Context(), l.cfg, "open"))
	ask("d-2", 202)
}

// TestAPauseThatCannotBeKeptIsNone: who asked for it is told that it failed. It held until the next
// reload, and was kept with the next fire.
func TestAPauseThatCannotBeKeptIsNone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.must(l.hooks.Pause(t.Context(), l.cfg, "gated", memory.Paused{Since: time.Now()}))
	l.must(l.store.Close())
	if err := l.hooks.Pause(t.Context(), l.cfg, "open", memory.Paused{Since: time.Now()}); err == nil {
		t.Error("a pause is kept in a store that is closed")
	}
	if err := l.hooks.Resume(t.Context(), l.cfg, "gated"); err == nil {
		t.Error("the end of a pause is kept in a store that is closed")
	}
	l.hooks.Set(t.Context(), l.cfg) // as a reload does
	if all := l.hooks.Paused(); len(all) != 1 || all[0].Trigger != "gated" {
		t.Errorf("paused are %+v", all)
	}
}

func TestWhatCannotBeQueuedIsAskedForAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.doors.Set([]config.Listen{l.socket("s")})
	l.state("")
	l.broken = fmt.Errorf("cannot queue a prompt for agent \"a\": %w", syscall.ENOSPC)
	send := func() (int, reply, http.Header) {
		return l.ask(http.MethodPost, "/open", `{"text": "x"}`, "Idempotency-Key", "k")
	}
	code, answer, h := send()
	if code != 503 || answer.Status != firing.Unavailable || !strings.Contains(answer.Reason, "no space left") || h.Get("Retry-After") == "" {
		t.Errorf("a full disk: %d %+v %v", code, answer, h)
	}
	if len(l.failing) != 1 || !l.failing[0].Requested || l.failing[0].Trigger != "open" {
		t.Errorf("nobody is told: %+v", l.failing)
	}
	l.broken = inbox.ErrFull
	if code, answer, h := send(); code != 429 || answer.Status != firing.Full || h.Get("Retry-After") != "30" {
		t.Errorf("a full queue: %d %+v %v", code, answer, h)
	}
	l.broken = nil
	if code, answer, _ := send(); code != 202 || len(l.failing) != 0 {
		t.Errorf("then: %d %+v, failing %+v", code, answer, l.failing)
	}
	file := l.cfg.Triggers[1].Webhook.SecretFile
	l.must(os.Chmod(file, 0o644))
	if code, answer, _ := l.ask(http.MethodPost, "/github", "{}", "Authorization", "Bearer "+secret); code != 503 || len(l.failing) != 1 {
		t.Errorf("a secret that others can read: %d %+v, failing %+v", code, answer, l.failing)
	}
	l.must(os.Chmod(file, 0o600))
	if code, _, _ := l.ask(http.MethodPost, "/github", `{"issue": {"number": 1}, "label": {"name": "agent"}}`, "Authorization", "Bearer "+secret); code != 202 || len(l.failing) != 0 {
		t.Errorf("put right: %d, failing %+v", code, l.failing)
	}
}

// TestAnAddressIsOpenedAgain: whatever is in the way of one stops nothing, is told,
// and is over when it is gone.
func TestAnAddressIsOpenedAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.socket("s")
	l.must(os.WriteFile(s.Address, []byte("precious"), 0o600))
	l.doors.Set([]config.Listen{s})
	l.state("a file that is not a socket stands in its place")
	l.must(os.Remove(s.Address))
	l.state("")
	l.must(os.Remove(s.Address)) // as a clean-up does
	l.state("")
	testbed.Await(testbed.Patience, func() bool { _, err := os.Lstat(s.Address); return err == nil })
	info, err := os.Lstat(s.Address)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the socket is %v, %v", info, err)
	}
	other := New(l.doors.opt)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); other.Run(ctx) }()
	other.Set([]config.Listen{s})
	testbed.Await(testbed.Patience, func() bool {
		all := other.State()
		return len(all) == 1 && strings.Contains(all[0].Problem, "another program uses it")
	})
	if all := other.State(); len(all) != 1 || !strings.Contains(all[0].Problem, "another program") {
		t.Errorf("one that is served: %+v", all)
	}
	cancel()
	<-ended
	if code, _, _ := l.ask(http.MethodPost, "/open", `{"text":"x"}`); code != 202 {
		t.Errorf("whose it is does not answer any more: %d", code)
	}
	gone := l.socket("folder/s")
	l.doors.Set([]config.Listen{gone})
	l.state("there is no folder " + filepath.Join(l.dir, "folder"))
	if fix := l.doors.State()[0].Fix; fix != "mkdir -p -m 700 '"+filepath.Join(l.dir, "folder")+"'" {
		t.Errorf("against that it says %q", fix)
	}
	if _, err := os.Lstat(s.Address); err == nil {
		t.Error("a socket that is served no more is left")
	}
	l.must(os.Mkdir(filepath.Join(l.dir, "folder"), 0o700))
	l.state("")
}

// TestAStaleSocketIsReplaced: a run that was killed leaves its sockets.
func TestAStaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.socket("s")
	s.Mode = 0o660
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Address, Net: "unix"})
	l.must(err)
	stale.SetUnlinkOnClose(false)
	l.must(stale.Close())
	l.doors.Set([]config.Listen{s})
	l.state("")
	if code, _, _ := l.ask(http.MethodPost, "/open", `{"text":"x"}`); code != 202 {
		t.Errorf("it answers %d", code)
	}
	if info, err := os.Lstat(s.Address); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket is %v, %v", info, err)
	}
}

// TestAddressesOfAReload: those that stay are not touched, a port that moves from one
// to another is free in time.
func TestAddressesOfAReload(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	l.must(err)
	port := config.Listen{Network: "tcp", Address: free.Addr().String(), Serves: []config.Service{config.ServesWebhooks}}
	l.doors.Set([]config.Listen{port})
	l.state("another program")
	if all := Foresee([]config.Listen{port, l.socket("x")}); len(all) != 2 || !strings.Contains(all[0].Problem, "another program") || all[1].Problem != "" {
		t.Errorf("foreseen: %+v", all)
	}
	l.must(free.Close())
	l.state("")
	since := l.doors.State()[0].Since
	l.doors.Set([]config.Listen{port})
	if now := l.doors.State(); len(now) != 1 || !now[0].Since.Equal(since) {
		t.Errorf("an address that stays was touched: %+v", now)
	}
	port.Serves = []config.Service{config.ServesMetrics}
	l.doors.Set([]config.Listen{port})
	l.state("")
	res, err := http.Get("http://" + port.Address + "/metrics")
	l.must(err)
	l.must(res.Body.Close())
	if res.StatusCode != 200 {
		t.Errorf("metrics: %d", res.StatusCode)
	}
	res, err = http.Post("http://"+port.Address+"/open", "application/json", strings.NewReader(`{"text":"x"}`))
	l.must(err)
	l.must(res.Body.Close())
	if res.StatusCode != 404 {
		t.Errorf("webhooks where none are served: %d", res.StatusCode)
	}
	l.doors.Set(nil)
	if _, err := http.Get("http://" + port.Address + "/metrics"); err == nil {
		t.Error("an address is open that is not declared any more")
	}
}

// TestNobodyWaitsForAnAddressThatIsClosed: neither a reload, which may have been asked
// for at that address, nor who asks for the state, nor who opens it again. What was
// asked for is answered.
func TestNobodyWaitsForAnAddressThatIsClosed(t *testing.T) {
	t.Parallel()
	l := &lab{t: t, dir: t.TempDir(), log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	asked, answer := make(chan struct{}), make(chan struct{})
	l.doors = New(Options{
		Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(asked); <-answer }),
		Log:     l.log,
	})
	l.doors.limits.end = time.Hour
	var around sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	around.Go(func() { l.doors.Run(ctx) })
	s := l.socket("s")
	l.doors.Set([]config.Listen{s})
	l.state("")
	around.Go(func() {
		res, err := client(s.Address).Get("http://heartbeat/metrics")
		if err != nil {
			t.Errorf("its request was not answered: %v", err)
			return
		}
		_ = res.Body.Close()
	})
	<-asked
	l.doors.Set(nil) // by the request that is not answered yet, for all that it knows
	if _, err := os.Lstat(s.Address); err == nil {
		t.Error("it is still open")
	}
	if all := l.doors.State(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	l.doors.Set([]config.Listen{s})
	l.state("")
	close(answer)
	cancel()
	around.Wait()
}

func TestMetricsWithASecret(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.socket("s")
	s.SecretFile = filepath.Join(l.dir, "none")
	l.doors.Set([]config.Listen{s})
	l.state("cannot read secret-file")
	s.SecretFile = l.cfg.Triggers[1].Webhook.SecretFile
	l.doors.Set([]config.Listen{s})
	l.state("")
	for path := range map[string]bool{"/metrics": true, "/healthz": true, "/readyz": true} {
		for given, want := range map[string]int{"": 401, "Bearer x": 401, secret: 401, "bearer " + secret: 200, "Bearer " + secret: 200} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://heartbeat"+path, http.NoBody)
			l.must(err)
			if given != "" {
				r.Header.Set("Authorization", given)
			}
			res, err := client(s.Address).Do(r)
			l.must(err)
			l.must(res.Body.Close())
			if res.StatusCode != want {
				t.Errorf("%s, %q: %d", path, given, res.StatusCode)
			}
		}
	}
	if code, _, _ := l.ask(http.MethodPost, "/open", `{"text":"x"}`); code != 202 {
		t.Errorf("a webhook has its own secret, or none: %d", code)
	}
}

// TestClientsAreBounded: clients that are slow, endless or broken are ended, and the
// next one is heard.
func TestClientsAreBounded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	few := limits{header: 700 * time.Millisecond, read: 1400 * time.Millisecond, write: 5 * time.Second, idle: 300 * time.Millisecond, end: 5 * time.Second, room: lobby.Room{Served: 3, OfOne: 3, Waiting: 3, WaitingOfOne: 3}}
	// each client has a server of its own: they take their time beside each other
	t.Run("beside each other", func(t *testing.T) {
		for name, begins := range badClients {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				isEnded(t, name, begins, l.serve(t, few))
			})
		}
		t.Run("who waits behind them", func(t *testing.T) {
			t.Parallel()
			waitsBehind(t, l.serve(t, few))
		})
	})
	if !slices.ContainsFunc(l.letters, func(m inbox.Letter) bool { return m.Prompt == "yes" }) || bytes.Contains(fmt.Append(nil, l.letters), []byte("\r")) {
		t.Errorf("queued %+v", l.letters)
	}
}

const post = "POST /open HTTP/1.1\r\nHost: x\r\n"

// badClients are clients by what they begin with.
var badClients = map[string]string{
	"says nothing":          "",
	"never ends its header": post + "X-A: ",
	"never sends its body":  post + "Content-Length: 100\r\n\r\n{",
	"sends no more":         post + "Content-Length: 13\r\n\r\n{\"text\":\"yes\"}",
	"no HTTP":               "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"a header without end":  post + "X-A: " + strings.Repeat("x", 32<<10) + "\r\n\r\n",
	"a forged header":       post + "X-GitHub-Delivery: a\r\n b\r\nContent-Length: 0\r\n\r\n",
	"two lengths":           post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
	"a chunk without end":   post + "Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
}

// serve serves webhooks until t ends, and returns how to connect.
func (l *lab) serve(t *testing.T, b limits) (dial func() net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- b.serve(ctx, listener, l.doors.opt.Webhooks, l.log) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return func() net.Conn {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(testbed.Patience))
		}
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
}

func isEnded(t *testing.T, name, begins string, dial func() net.Conn) {
	conn := dial()
	defer conn.Close()
	_, _ = io.WriteString(conn, begins)
	var answer strings.Builder
	if _, err := io.Copy(&answer, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("who %s is never ended", name)
	}
	if name == "never sends its body" && !strings.HasPrefix(answer.String(), "HTTP/1.1 408 ") {
		t.Errorf("a body that does not come is answered with %q", answer.String())
	}
	if !isHeard(dial) {
		t.Error("the next one is not heard")
	}
}

func waitsBehind(t *testing.T, dial func() net.Conn) {
	for range 12 { // more than there is room for
		held := dial()
		defer held.Close()
	}
	if !isHeard(dial) {
		t.Error("who waits behind them is not heard")
	}
}

// isHeard reports whether a client is that sends what it should.
func isHeard(dial func() net.Conn) bool {
	for range 5 { // a machine that is busy may keep one waiting beyond the limits
		conn := dial()
		_, _ = io.WriteString(conn, post+"Content-Length: 14\r\n\r\n"+`{"text":"yes"}`)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		_ = conn.Close()
		if err == nil && res.StatusCode == 202 {
			return true
		}
	}
	return false
}

// TestPagesReachNoWebhook, nor anything else that our own page does not answer.
func TestPagesReachNoWebhook(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for name, tt := range map[string]struct {
		serves config.Service
		path   string
		want   int
	}{
		"a webhook":         {config.ServesWebhooks, "/open", http.StatusForbidden},
		"metrics":           {config.ServesMetrics, "/metrics", http.StatusForbidden},
		"where nothing is":  {config.ServesMetrics, "/page/hook", http.StatusForbidden},
		"no webhook's path": {config.ServesWebhooks, "/page/hook", http.StatusForbidden},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, tt.path, http.NoBody)
		r.Header.Set("Origin", "https://evil.example")
		w := httptest.NewRecorder()
		l.doors.handler(config.Listen{Serves: []config.Service{tt.serves}}).ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s: answered with %d, want %d", name, w.Code, tt.want)
		}
	}
}
