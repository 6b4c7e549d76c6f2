package deliver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"heartbeat/config"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
)

// From says whose messages are sent.
type From struct{ Fleet, Host string }

// How much text each service takes at once.
const (
	mostSlack    = 3500      // characters; Slack cuts longer texts ("about 4,000 characters")
	mostNtfy     = 3500      // bytes; ntfy makes an attachment of what is over 4,096
	mostTelegram = 3500      // characters; Telegram refuses what is over 4,096
	mostText     = 128 << 10 // bytes; a reply is at most 64 KiB
)

// request is what is sent to an address.
type request struct {
	url    string
	body   []byte
	bearer string
}

// document is the body of the form json.
type document struct {
	// Key is the same at each attempt: who has seen it before may pass over it.
	Key    string `json:"key"`
	Fleet  string `json:"fleet"`
	Host   string `json:"host"`
	Urgent bool   `json:"urgent"`
	Title  string `json:"title"`
	Text   string `json:"text"`
	// Notices are what the text is made of.
	Notices []notice.Notice `json:"notices"`
}

func documentOf(from From, m *outbox.Message) document {
	d := document{
		Key: m.Key, Fleet: from.Fleet, Host: from.Host, Notices: m.Notices,
		Title: notice.Title(from.Fleet, m.Notices), Text: notice.Text(m.Notices, mostText),
	}
	for _, n := range m.Notices {
		d.Urgent = d.Urgent || n.Urgent
	}
	return d
}

// whole is the text with the title, where nothing else shows that: of one notice, the
// text begins with it.
func (d document) whole(most int) string {
	if len(d.Notices) == 1 {
		return "[" + d.Fleet + "] " + notice.Text(d.Notices, most)
	}
	return d.Title + "\n" + notice.Text(d.Notices, most)
}

// compose returns the request that brings a message to an address.
func compose(form config.Body, address, token, chat string, from From, m *outbox.Message) (request, error) {
	d := documentOf(from, m)
	r := request{url: address, bearer: token}
	var body any
	switch form {
	case config.BodySlack:
		body = slackBody(d)
	case config.BodyNtfy:
		base, topic, err := ntfyTopic(address)
		if err != nil {
			return r, err
		}
		r.url, body = base, ntfyBody(d, topic)
	case config.BodyTelegram:
		// The token is a part of the address, not a header.
		r.url, r.bearer = strings.TrimSuffix(address, "/")+"/bot"+token+"/sendMessage", ""
		body = telegramBody(d, chat)
	case config.BodyJSON:
		body = d
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(body)
	r.body = b.Bytes()
	return r, err
}

// slackText is what incoming webhooks take. &, < and > are the characters by which a
// text could call everybody (<!channel>) or hide where a link leads; mrkdwn: false
// leaves all others as they are.
type slackText struct {
	Text        string `json:"text"`
	Markdown    bool   `json:"mrkdwn"`
	UnfurlLinks bool   `json:"unfurl_links"`
}

var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func slackBody(d document) slackText {
	return slackText{Text: slackEscapes.Replace(d.whole(mostSlack) + signature(d))}
}

// ntfyMessage is ntfy's publication as JSON, which is sent to the server's root: as
// headers, titles would have to be ASCII, and a line break would make another one.
type ntfyMessage struct {
	Topic    string   `json:"topic"`
	Title    string   `json:"title"`
	Message  string   `json:"message"`
	Priority int      `json:"priority"` // 1 to 5
	Tags     []string `json:"tags"`
	Click    string   `json:"click,omitempty"` // what a tap on it opens
}

func ntfyBody(d document, topic string) ntfyMessage {
	n := ntfyMessage{Topic: topic, Title: d.Title, Message: notice.Text(d.Notices, mostNtfy) + signature(d), Priority: 3, Tags: []string{"information_source"}}
	last := d.Notices[len(d.Notices)-1]
	n.Click = last.Link
	switch {
	case last.Event == notice.Ended:
		n.Tags = []string{"white_check_mark"}
	case last.Kind == notice.Reply:
		n.Tags = []string{"speech_balloon"}
	case d.Urgent:
		n.Priority, n.Tags = 4, []string{"warning"}
	}
	return n
}

var errNoTopic = errors.New("the address of ntfy has no topic: it is https://SERVER/TOPIC")

// ntfyTopic takes the topic, the last part of the path, off an address.
func ntfyTopic(address string) (base, topic string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", errNoTopic // the parser's message quotes the address
	}
	path := strings.TrimSuffix(u.Path, "/")
	at := strings.LastIndexByte(path, '/')
	if at < 0 || at == len(path)-1 {
		return "", "", errNoTopic
	}
	u.Path, u.RawPath, topic = path[:at+1], "", path[at+1:]
	return u.String(), topic, nil
}

// telegramMessage is the Bot API's sendMessage. Without parse_mode the text is plain.
type telegramMessage struct {
	ChatID string        `json:"chat_id"`
	Text   string        `json:"text"`
	Links  telegramLinks `json:"link_preview_options"`
	Silent bool          `json:"disable_notification"`
}

type telegramLinks struct {
	Disabled bool `json:"is_disabled"`
}

func telegramBody(d document, chat string) telegramMessage {
	return telegramMessage{ChatID: chat, Text: d.whole(mostTelegram) + signature(d), Links: telegramLinks{true}, Silent: !d.Urgent}
}

// signature ends a text for people: where it comes from, and by what they know a
// message that they get twice.
func signature(d document) string { return "\n— heartbeat on " + d.Host + ", " + d.Key }
