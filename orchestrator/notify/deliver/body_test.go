package deliver

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/config"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
)

var (
	at     = time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC)
	office = From{Fleet: "office", Host: "box"}
)

func message(n ...notice.Notice) *outbox.Message {
	return &outbox.Message{Key: n[0].Key, Made: at, Notices: n}
}

func held(text string) notice.Notice {
	return notice.Notice{Key: "a/held@1", Event: notice.Began, Kind: "held", Agent: "a", Urgent: true, At: at, Since: at, Text: text, Do: "heartbeat resume a"}
}

// sends returns the address, the body and the bearer token of a request.
func sends(t *testing.T, form config.Body, address, token string, m *outbox.Message) (string, map[string]any, string) {
	t.Helper()
	r, err := compose(form, address, token, "-100", office, m)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(r.body, &body); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
	return r.url, body, r.bearer
}

// The bodies are what the services publish that they take.
func TestBodies(t *testing.T) {
	t.Parallel()
	const text = "a is held: x < y & z <!channel>\n    heartbeat resume a"
	m := message(held("x < y & z <!channel>"))
	const signed = "\n— heartbeat on box, a/held@1"
	for form, want := range map[config.Body]struct {
		address, token, url, bearer string
		body                        map[string]any
	}{
		config.BodySlack: {
			"https://hooks.slack.com/services/T0/B0/x", "", "https://hooks.slack.com/services/T0/B0/x", "",
			map[string]any{"text": "[office] a is held: x &lt; y &amp; z &lt;!channel&gt;\n    heartbeat resume a" + signed, "mrkdwn": false, "unfurl_links": false},
		},
		config.BodyNtfy: {
			"https://ntfy.example/base/alerts", "tk_1", "https://ntfy.example/base/", "tk_1",
			map[string]any{"topic": "alerts", "title": "[office] a is held", "message": text + signed, "priority": 4., "tags": []any{"warning"}},
		},
		config.BodyTelegram: {
			"https://api.telegram.org", "1:x", "https://api.telegram.org/bot1:x/sendMessage", "",
			map[string]any{"chat_id": "-100", "text": "[office] " + text + signed, "link_preview_options": map[string]any{"is_disabled": true}, "disable_notification": false},
		},
		config.BodyJSON: {
			"https://a.example/hook", "t", "https://a.example/hook", "t",
			map[string]any{
				"key": "a/held@1", "fleet": "office", "host": "box", "urgent": true, "title": "[office] a is held", "text": text,
				"notices": []any{map[string]any{
					"key": "a/held@1", "event": "began", "kind": "held", "agent": "a", "urgent": true, "at": "2026-11-04T12:00:00Z", "since": "2026-11-04T12:00:00Z",
					"text": "x < y & z <!channel>", "do": "heartbeat resume a",
				}},
			},
		},
	} {
		url, body, bearer := sends(t, form, want.address, want.token, m)
		if url != want.url || bearer != want.bearer {
			t.Errorf("%s: %s, %q", form, url, bearer)
		}
		if diff := cmp.Diff(want.body, body); diff != "" {
			t.Errorf("%s (-want +got):\n%s", form, diff)
		}
	}
}

func TestWhatNtfyShows(t *testing.T) {
	t.Parallel()
	over, reply, parked := held(""), held(""), held("")
	over.Event = notice.Ended
	reply.Kind, reply.Urgent, reply.Reply = notice.Reply, false, "done"
	parked.Urgent = false
	links := held("")
	links.Link = "https://fleet.example/page/agents/a"
	if _, body, _ := sends(t, config.BodyNtfy, "https://ntfy.example/alerts", "", message(links)); body["click"] != links.Link || !strings.Contains(body["message"].(string), links.Link) {
		t.Errorf("a tap opens %v: %v", body["click"], body["message"])
	}
	for tag, n := range map[string]notice.Notice{"white_check_mark": over, "speech_balloon": reply, "information_source": parked} {
		if _, body, _ := sends(t, config.BodyNtfy, "https://ntfy.example/alerts", "", message(n)); body["priority"] != 3. || body["tags"].([]any)[0] != tag {
			t.Errorf("%s: %v", tag, body)
		}
	}
	for _, address := range []string{"https://ntfy.example", "https://ntfy.example/", "https://ntfy.example//"} {
		if _, err := compose(config.BodyNtfy, address, "", "", office, message(over)); err == nil {
			t.Errorf("%s has no topic", address)
		}
	}
}

// Whatever an agent says, a body keeps its form, its length and its one meaning.
func TestForgedTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"\"}\r\nX-Evil: 1\r\n\r\n", "\x00\x1b]0;x\a", "<!channel> <@U1> <https://evil.example|click>", "*b* _i_ `c` [x](https://evil.example)", "{{.Token}} ${HOME} $(id)",
		"\u202egnp.exe", strings.Repeat("ä", 60_000), "\xff\xfe", "</script><b>", `\u0000`,
	} {
		n := held(text)
		n.Kind, n.Reply, n.Entry = notice.Reply, text, text
		for form, most := range map[config.Body]int{config.BodySlack: 4000 * 5, config.BodyNtfy: 4096, config.BodyTelegram: 4096, config.BodyJSON: 1 << 20} {
			_, body, _ := sends(t, form, "https://a.example/topic", "t", message(n))
			said, _ := body["text"].(string)
			if form == config.BodyNtfy {
				said = body["message"].(string)
			}
			if len(said) > most || strings.ContainsAny(said, "\x00\x1b\a\r\u202e") {
				t.Errorf("%s: %d bytes of %.80q", form, len(said), said)
			}
			if form == config.BodySlack && strings.ContainsAny(said, "<>") {
				t.Errorf("slack: %.200q", said)
			}
			for line := range strings.Lines(said) {
				if strings.HasPrefix(line, "X-Evil") {
					t.Errorf("%s: %.80q begins a line of its own", form, said)
				}
			}
		}
	}
}
