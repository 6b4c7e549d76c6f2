// Package webhook makes prompts of requests: whether a request comes from who knows
// the secret, whether it is one that is wanted, which earlier one it repeats, and
// what its prompt says. It works on headers and bytes, opens nothing, and knows no
// server. What a request says is foreign: none of it becomes more than a value.
package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"

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
	// ErrRefused: the sender did not prove that it knows the secret.
	ErrRefused = errors.New("the secret is missing or wrong: send X-Hub-Signature-256, or Authorization: Bearer SECRET")
	// ErrUnreadable: the body is not JSON.
	ErrUnreadable = errors.New("the body is not JSON")
	// ErrUnwanted: a condition does not hold. This is neither success nor failure.
	ErrUnwanted = errors.New("it is not one of those that are wanted")
)

// The headers with a proof, and those that name a delivery.
const (
	signature = "X-Hub-Signature-256" // GitHub: sha256=HEX of the HMAC of the body
	bearer    = "Bearer "
)

var deliveryIDs = []string{"X-Github-Delivery", "Idempotency-Key"}

// Proves reports whether a request with these headers may prove that its sender
// knows the secret, once its body is read: before that, a body is not worth reading.
func Proves(secret []byte, h http.Header) bool {
	return len(secret) == 0 || h.Get(signature) != "" || Knows(secret, h)
}

// Knows reports whether the secret itself is among the headers: Authorization: Bearer
// SECRET, in any case of the word (RFC 9110, section 11.1).
func Knows(secret []byte, h http.Header) bool {
	given, ok := cutPrefixFold(h.Get("Authorization"), bearer)
	return ok && subtle.ConstantTimeCompare(digest([]byte(given)), digest(secret)) == 1
}

// digest makes two secrets of one length, so that a comparison takes one time.
func digest(secret []byte) []byte {
	sum := sha256.Sum256(secret)
	return sum[:]
}

func cutPrefixFold(text, prefix string) (rest string, ok bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return strings.TrimSpace(text[len(prefix):]), true
}

// Check returns ErrRefused unless a request proves that its sender knows the
// secret. A signature that is there must be right, whatever else is there.
func Check(secret []byte, h http.Header, body []byte) error {
	if len(secret) == 0 {
		return nil
	}
	if given := h.Get(signature); given != "" {
		sum, err := hex.DecodeString(strings.TrimPrefix(given, "sha256="))
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		if err != nil || !strings.HasPrefix(given, "sha256=") || !hmac.Equal(sum, mac.Sum(nil)) {
			return ErrRefused
		}
		return nil
	}
	if !Knows(secret, h) {
		return ErrRefused
	}
	return nil
}

// Prompt makes the prompt of a request that was received at a time. The error
// matches ErrUnreadable or ErrUnwanted, or says what the template lacks.
func (t *Trigger) Prompt(h http.Header, body []byte, at time.Time) (sources.Prompt, error) {
	value, err := decode(body)
	if errors.Is(err, ErrUnreadable) && isForm(h) {
		err = fmt.Errorf("%w, but a form: choose the content type application/json where the hook is set up", ErrUnreadable)
	}
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
		if strings.EqualFold(name, "Authorization") {
			values = nil // a secret is no text for a prompt
		}
		return strings.ToValidUTF8(strings.Join(values, ", "), "\ufffd"), len(values) > 0
	})
	key, err := t.key(h, data)
	if err != nil {
		return sources.Prompt{}, err
	}
	text, err := t.Template.Render(data)
	if err == nil && strings.TrimSpace(text) == "" {
		err = errors.New("cannot make the prompt: it is blank")
	}
	return sources.Prompt{Label: Label(key), Text: text, At: at}, err
}

// decode reads a body: one JSON value. A null is "": what somebody has left out is
// no text in a prompt.
func decode(body []byte) (any, error) {
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	var value any
	if err := in.Decode(&value); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrUnreadable, plain(err))
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows its value", ErrUnreadable)
	}
	return filled(value), nil
}

// isForm reports whether a body is said to be that of a form, as GitHub sends it unless it
// is told otherwise.
func isForm(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == "application/x-www-form-urlencoded"
}

// plain keeps what a sender may have written out of a message about it.
func plain(err error) string {
	if at, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("byte %d", at.Offset)
	}
	return "it ends too early"
}

// filled replaces each null by "".
func filled(value any) any {
	switch v := value.(type) {
	case nil:
		return ""
	case map[string]any:
		for k, element := range v {
			v[k] = filled(element)
		}
	case []any:
		for i, element := range v {
			v[i] = filled(element)
		}
	}
	return value
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
		text, is := scalar(value)
		return is && text == want
	}
	switch v := value.(type) {
	case map[string]any:
		below, ok := v[path[0]]
		return ok && holds(below, path[1:], want)
	case []any:
		for _, element := range v {
			if path[0] == "*" && holds(element, path[1:], want) {
				return true
			}
		}
	}
	return false
}

func scalar(value any) (text string, is bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return fmt.Sprint(v), true
	}
	return "", false
}

// key returns what makes two requests the same: the trigger's own key, or the id
// that the sender gave the delivery; otherwise each request is new.
func (t *Trigger) key(h http.Header, data sources.WebhookData) (string, error) {
	if t.Key != nil {
		key, err := t.Key.Render(data)
		switch {
		case err != nil:
			return "", fmt.Errorf("cannot make the key: %w", err)
		case strings.TrimSpace(key) == "":
			return "", errors.New("cannot make the key: it is blank")
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
