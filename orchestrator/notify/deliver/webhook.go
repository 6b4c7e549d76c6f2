package deliver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/notify/outbox"
)

const (
	// mostAnswer is how much of an answer is read, mostQuoted how much of it is told.
	mostAnswer  = 8 << 10
	mostQuoted  = 200
	mostHeaders = 64 << 10
)

// client follows no redirect, which could lead secrets to another server, and keeps
// no connection: notices are rare, and the transport would send a request again by
// itself where a kept one turns out to be closed.
var client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: mostHeaders,
		TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
	},
}

// webhook sends a message to an address.
func webhook(ctx context.Context, to *config.Target, from From, m *outbox.Message) outbox.Verdict {
	address, err := to.Webhook.Read()
	if err != nil {
		return outbox.Verdict{Why: err.Error()}
	}
	token := ""
	if to.Token != (config.Secret{}) {
		if token, err = to.Token.Read(); err != nil {
			return outbox.Verdict{Why: err.Error()}
		}
	}
	if err := usable(address); err != nil {
		return outbox.Verdict{Why: err.Error()}
	}
	r, err := compose(to.Body, address, token, to.Chat, from, m)
	if err != nil {
		return outbox.Verdict{Why: err.Error()}
	}
	header := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Idempotency-Key": {headerText(m.Key)}}
	if r.bearer != "" {
		header.Set("Authorization", "Bearer "+r.bearer)
	}
	return hush(post(ctx, http.MethodPost, r.url, r.body, header), address, token)
}

// usable checks an address that was read from a secret place. No message repeats it.
func usable(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return errors.New("the address does not begin with https://SERVER")
	}
	return nil
}

// headerText leaves of a text what a header may hold.
func headerText(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '_'
		}
		return r
	}, text)
}

var errClosed = errors.New("the connection was closed without an answer")

// post makes one request, within the time of ctx.
func post(ctx context.Context, method, address string, body []byte, header http.Header) outbox.Verdict {
	q, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return outbox.Verdict{Why: "cannot make the request"} // the error quotes the address
	}
	q.Header = header
	q.Header.Set("User-Agent", "heartbeat")
	a, err := client.Do(q)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the address
		}
		switch {
		case ctx.Err() != nil:
			err = cmp.Or(context.Cause(ctx), err)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			err = errClosed
		}
		return outbox.Verdict{Why: err.Error()}
	}
	defer a.Body.Close()
	// What is not read does not matter: the status has come.
	text, _ := io.ReadAll(io.LimitReader(a.Body, mostAnswer))
	return judge(a, text)
}

// judge says what an answer means.
func judge(a *http.Response, text []byte) outbox.Verdict {
	switch {
	case a.StatusCode/100 == 2:
		no, is := declined(text)
		if is {
			no.Why, no.After = fmt.Sprintf("the server answers %d and says that it has not taken it%s", a.StatusCode, no.Why), retryAfter(a, text)
		}
		return no
	case a.StatusCode/100 == 3:
		return outbox.Verdict{Why: fmt.Sprintf("the server answers %d and sends us to %s, which is not followed: write that address yourself if it is right", a.StatusCode, destination(a))}
	}
	v := outbox.Verdict{
		Why: fmt.Sprintf("the server answers %d %s", a.StatusCode, http.StatusText(a.StatusCode)), After: retryAfter(a, text),
		// The message itself is at fault, as far as the server tells.
		Refused: a.StatusCode == http.StatusBadRequest || a.StatusCode == http.StatusRequestEntityTooLarge || a.StatusCode == http.StatusUnprocessableEntity,
	}
	if said := strings.TrimSpace(string(text)); said != "" {
		v.Why += ": " + foreign.Short(said, mostQuoted)
	}
	return v
}

// declined reports whether an answer, or what a command that has sent something has printed,
// says that it was not taken, although the status is that of success: APIs such as Slack's
// and Telegram's answer {"ok":false,"error":"channel_not_found"}, others {"success":false},
// Healthchecks "OK (not found)" for a check that was deleted. Why begins with a separator, or is "" where no reason is given.
func declined(text []byte) (v outbox.Verdict, is bool) {
	if why, is := bytes.CutPrefix(bytes.TrimSpace(text), []byte("OK (")); is {
		return outbox.Verdict{Why: ": " + foreign.Short(string(bytes.TrimSuffix(why, []byte(")"))), mostQuoted)}, true
	}
	var a map[string]any
	if json.Unmarshal(text, &a) != nil || a["ok"] != false && a["success"] != false {
		return outbox.Verdict{}, false
	}
	code, _ := a["error_code"].(float64) // Telegram's, as in the statuses of HTTP
	v.Refused = code == http.StatusBadRequest
	if inner, ok := a["error"].(map[string]any); ok {
		a = inner
	}
	for _, key := range []string{"error", "description", "message", "msg", "reason", "detail"} {
		if said, _ := a[key].(string); strings.TrimSpace(said) != "" {
			v.Why = ": " + foreign.Short(strings.TrimSpace(said), mostQuoted)
			break
		}
	}
	return v, true
}

// destination is the server that a redirect names: the rest of it may be a secret.
func destination(a *http.Response) string {
	to, err := a.Location()
	if err != nil {
		return "nowhere"
	}
	return foreign.Short(to.Scheme+"://"+to.Host, mostQuoted)
}

// retryAfter is how long the server wants to be left alone: in the header
// (RFC 9110, 10.2.3), or as Telegram says it in its answer.
func retryAfter(a *http.Response, text []byte) time.Duration {
	var telegram struct {
		Parameters struct {
			RetryAfter int `json:"retry_after"`
		} `json:"parameters"`
	}
	header := a.Header.Get("Retry-After")
	seconds, err := strconv.Atoi(header)
	if at, parsed := http.ParseTime(header); err != nil && parsed == nil {
		seconds = int(time.Until(at).Seconds())
	}
	if json.Unmarshal(text, &telegram) == nil {
		seconds = max(seconds, telegram.Parameters.RetryAfter)
	}
	return time.Duration(min(max(seconds, 0), 24*60*60)) * time.Second
}

// hush takes secrets out of what is said about an attempt: a server may repeat them.
func hush(v outbox.Verdict, secrets ...string) outbox.Verdict {
	for _, s := range secrets {
		if s == "" {
			continue
		}
		v.Why = strings.ReplaceAll(v.Why, s, "…")
		if u, err := url.Parse(s); err == nil && len(u.Path) > 1 {
			v.Why = strings.ReplaceAll(v.Why, u.Path, "/…")
		}
	}
	return v
}
