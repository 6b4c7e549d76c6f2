// Package webhook makes prompts of requests: whether a request comes from who knows
// the secret, whether it is one that is wanted, which earlier one it repeats, and
// what its prompt says. It works on headers and bytes, opens nothing, and knows no
// server. What a request says is foreign: none of it becomes more than a value.
package webhook

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/sources"
)

// MaxBody is how large a body may be, in bytes.
const MaxBody = 1 << 20

// Trigger is one webhook trigger.
type Trigger struct {
	Template *sources.Template // of the prompt, see sources.ParseWebhookTemplate
	// Key, if not nil, produces what makes two requests the same.
	Key *sources.Template
	// Match are the conditions that a request has to meet, all of them.
	Match []sources.Condition
}

// Why a request is not a prompt.
var (
	// ErrEncoded: the body is compressed, or no UTF-8.
	ErrEncoded = errors.New("the body cannot be read as it is encoded")
	// ErrUnreadable: the body is not JSON.
	ErrUnreadable = errors.New("the body is not JSON")
	// ErrUnwanted: a condition does not hold. This is neither success nor failure.
	ErrUnwanted = errors.New("it is not one of those that are wanted")
)

// deliveryIDs are the headers that name a delivery, whoever sends it.
var deliveryIDs = []string{
	"X-Github-Delivery", "Idempotency-Key", standardID, "X-Gitea-Delivery", "X-Forgejo-Delivery", "X-Gogs-Delivery",
	"X-Request-Uuid", // Bitbucket
}

// Prompt makes the prompt of a request that was received at a time. The error matches
// ErrEncoded, ErrUnreadable or ErrUnwanted, or says what the template lacks; all but
// ErrUnwanted have a fault.
func (t *Trigger) Prompt(h http.Header, body []byte, at time.Time) (sources.Prompt, error) {
	body, err := plainBody(h, body)
	if err != nil {
		return sources.Prompt{}, err
	}
	value, err := decode(body)
	if err != nil {
		return sources.Prompt{}, err
	}
	for _, c := range t.Match {
		if !meets(c, h, value) {
			return sources.Prompt{}, ErrUnwanted
		}
	}
	data := sources.NewWebhookData(value, strings.ToValidUTF8(string(body), "\ufffd"), func(name string) (string, bool) {
		values := h.Values(name)
		if isSecret(name) {
			values = nil
		}
		return strings.ToValidUTF8(strings.Join(values, ", "), "\ufffd"), len(values) > 0
	})
	key, err := t.key(h, data)
	if err != nil {
		return sources.Prompt{}, &faultError{Unfit, err}
	}
	text, lacking, err := t.Template.RenderLacking(data)
	if err == nil && strings.TrimSpace(text) == "" {
		err = errors.New("cannot make the prompt: it is blank")
	}
	if err != nil {
		return sources.Prompt{}, &faultError{Unfit, err}
	}
	return sources.Prompt{Label: Label(key), Text: text, At: at, Lacking: lacking}, nil
}

// decode reads a body: one JSON value.
func decode(body []byte) (any, error) {
	value, err := sources.DecodeJSON(body)
	if errors.Is(err, foreign.ErrMany) {
		return nil, &faultError{ManyValues, fmt.Errorf("%w: %w", ErrUnreadable, err)}
	}
	if err != nil {
		return nil, fault(NotJSON, ErrUnreadable, plain(err))
	}
	return value, nil
}

// plain keeps what a sender may have written out of a message about it.
func plain(err error) string {
	if at, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("byte %d", at.Offset)
	}
	if errors.Is(err, sources.ErrTrailing) {
		return err.Error()
	}
	return "it ends too early"
}

// meets reports whether a condition holds.
func meets(c sources.Condition, h http.Header, body any) bool {
	for _, want := range c.Values {
		if c.Header != "" && h.Get(c.Header) == want || c.Header == "" && holds(body, c.Field, want) {
			return true
		}
	}
	return false
}

// holds reports whether a value has a text at a path.
func holds(value any, path []string, want string) bool {
	if len(path) == 0 {
		text, is := sources.ScalarText(value)
		return is && text == want
	}
	switch v := value.(type) {
	case sources.Object:
		below, ok := v[path[0]]
		return ok && holds(below, path[1:], want)
	case sources.List:
		for _, element := range v {
			if path[0] == "*" && holds(element, path[1:], want) {
				return true
			}
		}
	}
	return false
}

// key returns what makes two requests the same: the trigger's own key, or the id
// that the sender gave the delivery; otherwise each request is new.
func (t *Trigger) key(h http.Header, data sources.WebhookData) (string, error) {
	if t.Key != nil {
		key, err := t.Key.RenderKey(data)
		if err != nil {
			return "", fmt.Errorf("cannot make the key: %w", err)
		}
		return key, nil
	}
	for _, name := range deliveryIDs {
		if id := h.Get(name); id != "" {
			return id, nil
		}
	}
	return "", nil
}

// readable keys stand in labels as they are: GitHub's are UUIDs.
var readable = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// Label names a request by its key. All keys but the readable ones are hashed, so
// that no key can look like another one, or like what is behind a label. Without a
// key each request has a name of its own.
func Label(key string) string {
	switch {
	case key == "":
		return "request#" + rand.Text()
	case len(key) <= 64 && readable.MatchString(key):
		return key
	}
	return fmt.Sprintf("key#%.32x", sha256.Sum256([]byte(key)))
}
