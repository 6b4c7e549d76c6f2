// Package deliver brings messages to their targets: one attempt at a time, bounded in
// time and size. What it says of a failed attempt holds no secret. The formats are
// those that Slack's incoming webhooks, ntfy (publish as JSON), Telegram's Bot API
// (sendMessage) and Healthchecks (pings) publish.
package deliver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/sources/poll"
)

// To tries once to bring a message to a target.
func To(ctx context.Context, to *config.Target, from From, m *outbox.Message) outbox.Verdict {
	late := fmt.Errorf("no answer within %s", to.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, to.Timeout, late)
	defer cancel()
	if len(to.Command) > 0 {
		d := documentOf(from, m)
		return run(ctx, to.Argv(), to.Dir, to.Timeout, d.whole(mostText)+"\n", facts(d))
	}
	return webhook(ctx, to, from, m)
}

// passedOn are the variables of our own environment that commands get.
var passedOn = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"}

// mostVariable bounds a variable: the kernel takes 128 KiB for one (execve(2)).
const mostVariable = 64 << 10

// facts are what a command is told beside the text: of several notices, the first.
func facts(d document) []string {
	n := d.Notices[0]
	env := []string{
		"HEARTBEAT_KEY=" + d.Key, "HEARTBEAT_FLEET=" + d.Fleet, "HEARTBEAT_TITLE=" + d.Title, "HEARTBEAT_TIER=" + tier(d.Urgent),
		"HEARTBEAT_EVENT=" + string(n.Event), "HEARTBEAT_KIND=" + string(n.Kind), "HEARTBEAT_AGENT=" + n.Agent,
		"HEARTBEAT_DO=" + foreign.Line(n.Do), "HEARTBEAT_ENTRY=" + n.Entry, "HEARTBEAT_NOTICES=" + strconv.Itoa(len(d.Notices)),
	}
	if all, err := json.Marshal(d); err == nil && len(all) < mostVariable {
		env = append(env, "HEARTBEAT_JSON="+string(all))
	}
	return env
}

func tier(urgent bool) string {
	if urgent {
		return string(config.TierUrgent)
	}
	return string(config.TierInfo)
}

// run gives a text to a command, which has a process group of its own and ends with
// us.
func run(ctx context.Context, argv []string, dir string, limit time.Duration, text string, facts []string) outbox.Verdict {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains(passedOn, name)
	})
	for _, fact := range facts {
		env = append(env, strings.ReplaceAll(fact, "\x00", "\uFFFD"))
	}
	got, err := poll.Exec(ctx, poll.Command{Argv: argv, Dir: dir, Env: env, Stdin: text, Timeout: limit})
	switch {
	case err != nil:
		return outbox.Verdict{Why: foreign.Short(err.Error(), 2*mostQuoted)}
	case got.Later:
		return outbox.Verdict{Why: "the command asks to be called later (75)"}
	}
	no, is := declined(got.Stdout) // of curl, which exits with 0
	if is {
		no.Why = "the command has printed an answer that says that it was not taken" + no.Why
	}
	return no
}

// Sign is what a ping says.
type Sign string

// The signs, in Healthchecks' words.
const (
	Start Sign = "start"
	OK    Sign = "ok"
	Fail  Sign = "fail"
)

const pingPatience = 10 * time.Second

// Ping gives a sign of life, with a text. A plain address gets none but OK.
func Ping(ctx context.Context, p *config.Ping, s Sign, text string) error {
	late := errors.New("no answer within " + pingPatience.String())
	ctx, cancel := context.WithTimeoutCause(ctx, pingPatience, late)
	defer cancel()
	if len(p.Command) > 0 {
		return failed(run(ctx, p.Argv(), p.Dir, pingPatience, text+"\n", []string{"HEARTBEAT_PING=" + string(s)}))
	}
	address, err := p.URL.Read()
	if err == nil {
		err = usable(address)
	}
	switch {
	case err != nil:
		return err
	case p.Plain && s != OK:
		return nil
	case p.Plain:
		return failed(hush(post(ctx, http.MethodGet, address, nil, http.Header{}), address))
	}
	where := address
	if u, err := url.Parse(address); err == nil && s != OK {
		where = u.JoinPath(string(s)).String()
	}
	return failed(hush(post(ctx, http.MethodPost, where, []byte(text), http.Header{"Content-Type": {"text/plain; charset=utf-8"}}), address))
}

func failed(v outbox.Verdict) error {
	if v.Why == "" {
		return nil
	}
	return errors.New(v.Why)
}

// Trial is a message that shows whether a target gets what it should. Its key is that of no
// other one, however soon after it that is made.
func Trial(target string, now time.Time) *outbox.Message {
	key := fmt.Sprintf("test@%s-%s", now.UTC().Format("20060102T150405.000000000Z"), target)
	return &outbox.Message{Key: key, Made: now, Notices: []notice.Notice{{
		Key: key, Event: notice.Happened, Kind: notice.Test, Urgent: true, At: now, Since: now,
		Text: "if you can read this, notices arrive here",
	}}}
}
