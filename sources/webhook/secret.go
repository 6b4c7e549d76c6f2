package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrRefused: the sender did not prove that it knows the secret.
var ErrRefused = errors.New("the secret is missing or wrong")

// noProof is what a sender is told that has no signature.
const noProof = "send X-Hub-Signature-256, or Authorization: Bearer SECRET (heartbeat help webhook)"

// signatures are headers with the HMAC of the body, in hexadecimal digits behind a word.
var signatures = []struct{ header, word string }{
	{"X-Hub-Signature-256", "sha256="}, // GitHub; Gitea and Forgejo, too
	{"X-Hub-Signature", "sha256="},     // Bitbucket; GitHub's has sha1=, which proves nothing
	{"X-Gitea-Signature", ""},
	{"X-Forgejo-Signature", ""},
	{"X-Gogs-Signature", ""},
}

// bodyAlone are the services that send those signatures, by what their headers, and paths and
// triggers that people make for them, have in their names.
var bodyAlone = []struct{ word, service string }{
	{"github", "GitHub"},
	{"bitbucket", "Bitbucket"},
	{"x-event-key", "Bitbucket"},
	{"x-hub-signature", "GitHub"},
	{"forgejo", "Forgejo"},
	{"gitea", "Gitea"},
	{"gogs", "Gogs"},
}

// SignsBodyAlone returns the service that a text names, such as a header, a path, or a
// template that has a header, if its signature covers the body of a request and neither its
// id nor its time: whoever has seen one can send it again, at any time, with another id. "":
// it names none.
func SignsBodyAlone(text string) (service string) {
	for _, s := range bodyAlone {
		if strings.Contains(strings.ToLower(text), s.word) {
			return s.service
		}
	}
	return ""
}

// What the specification of Standard Webhooks calls them; GitLab signs so, too. The signature
// covers the id and the time beside the body.
const (
	standardSignature = "Webhook-Signature"
	standardID        = "Webhook-Id"
	standardTime      = "Webhook-Timestamp"
	standardSecret    = "whsec_"
	// standardAge is how old or new a signature may be.
	standardAge = 5 * time.Minute
)

// The headers with the secret itself.
const (
	authorization = "Authorization"
	bearer        = "Bearer "
	gitlabToken   = "X-Gitlab-Token"
)

// isSecret reports whether a header has the secret, which is no text for a prompt.
func isSecret(header string) bool {
	return strings.EqualFold(header, authorization) || strings.EqualFold(header, gitlabToken)
}

// Proves reports whether a request with these headers may prove that its sender
// knows the secret, once its body is read: before that, a body is not worth reading.
func Proves(secret []byte, h http.Header) bool {
	return len(secret) == 0 || signed(h) || Knows(secret, h)
}

func signed(h http.Header) bool {
	for _, s := range signatures {
		if slices.ContainsFunc(h.Values(s.header), func(given string) bool { return given != "" && !isSHA1(given) }) {
			return true
		}
	}
	return h.Get(standardSignature) != ""
}

// isSHA1 reports whether a signature is the one that GitHub still sends beside the real one.
func isSHA1(given string) bool { return strings.HasPrefix(given, "sha1=") }

// Knows reports whether the secret itself is among the headers: Authorization: Bearer
// SECRET, in any case of the word (RFC 9110, section 11.1), or GitLab's X-Gitlab-Token.
func Knows(secret []byte, h http.Header) bool {
	given, ok := cutPrefixFold(h.Get(authorization), bearer)
	if token := h.Get(gitlabToken); !ok && token != "" {
		given, ok = token, true
	}
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

// Check returns ErrRefused unless a request that comes at a time proves that its sender
// knows the secret. Each signature that is there must be right, whatever else is there.
func Check(secret []byte, h http.Header, body []byte, now time.Time) error {
	switch {
	case len(secret) == 0:
		return nil
	case !signed(h) && !Knows(secret, h) && h.Get(authorization)+h.Get(gitlabToken) != "":
		return fault(WrongSecret, ErrRefused, "neither Authorization: Bearer SECRET nor X-Gitlab-Token has the secret here")
	case !signed(h) && !Knows(secret, h):
		return fault(NoSecret, ErrRefused, noProof)
	}
	for _, s := range signatures {
		for _, given := range h.Values(s.header) {
			sum, err := hex.DecodeString(strings.TrimPrefix(given, s.word))
			is := func(body []byte) bool {
				return err == nil && strings.HasPrefix(given, s.word) && hmac.Equal(sum, mac(secret, body))
			}
			if given != "" && !isSHA1(given) && !is(body) {
				return fault(wrongSignature(body, is), ErrRefused, s.header+" is not that of this body and the secret here")
			}
		}
	}
	if h.Get(standardSignature) != "" {
		return checkStandard(secret, h, body, now)
	}
	return nil
}

// wrongSignature is the fault of a signature that is not that of a body: the body was changed
// if it is that of the body as it often was before something on the way has written it again.
func wrongSignature(body []byte, is func(body []byte) bool) Fault {
	var compact bytes.Buffer
	_ = json.Compact(&compact, body) // empty where it is no JSON
	if slices.ContainsFunc([][]byte{nil, bytes.TrimRight(body, "\r\n"), append(slices.Clip(body), '\n'), compact.Bytes()}, is) {
		return ChangedBody
	}
	return WrongSignature
}

func mac(key []byte, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// checkStandard checks a signature as the specification of Standard Webhooks has it: one of
// several, while a secret is replaced.
func checkStandard(secret []byte, h http.Header, body []byte, now time.Time) error {
	id, at := h.Get(standardID), h.Get(standardTime)
	seconds, err := strconv.ParseInt(at, 10, 64)
	if id == "" || err != nil {
		return fault(NoTimestamp, ErrRefused, "webhook-signature needs webhook-id and webhook-timestamp beside it")
	}
	keys := [][]byte{secret}
	if text, ok := strings.CutPrefix(string(secret), standardSecret); ok {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil {
			keys = append(keys, key)
		}
	}
	var given [][]byte // thousands fit into a header: the body is read once for each key, not for each of them
	for text := range strings.FieldsSeq(strings.Join(h.Values(standardSignature), " ")) {
		if text, is := strings.CutPrefix(text, "v1,"); is {
			if sum, err := base64.StdEncoding.DecodeString(text); err == nil {
				given = append(given, sum)
			}
		}
	}
	is := func(body []byte) bool {
		return slices.ContainsFunc(keys, func(key []byte) bool {
			want := mac(key, []byte(id+"."+at+"."), body)
			return slices.ContainsFunc(given, func(sum []byte) bool { return hmac.Equal(sum, want) })
		})
	}
	switch age := now.Sub(time.Unix(seconds, 0)); {
	case !is(body):
		return fault(wrongSignature(body, is), ErrRefused, "webhook-signature is not that of this body and the secret here")
	case age.Abs() > standardAge:
		return fault(OldSignature, ErrRefused, fmt.Sprintf("webhook-timestamp is more than %v from the clock here", standardAge))
	}
	return nil
}
