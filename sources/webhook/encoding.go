package webhook

import (
	"bytes"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Encoded returns ErrEncoded if a body is compressed: what a megabyte makes when it is
// unpacked has no bound.
func Encoded(h http.Header) error {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return fault(Compressed, ErrEncoded, "it is compressed; send it without Content-Encoding")
		}
	}
	return nil
}

// plainBody returns the JSON of a body: that of the field payload of a form, as GitHub sends
// it unless it is told otherwise. What is said to be a form may be JSON, as curl -d sends it.
// A byte order mark, which senders on .NET write first, is none of it.
func plainBody(h http.Header, body []byte) ([]byte, error) {
	if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		return nil, fault(Compressed, ErrEncoded, "it is compressed; send it as it is")
	}
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	ascii := !slices.ContainsFunc(body, func(b byte) bool { return b >= utf8.RuneSelf || b == 0 })
	if charset := params["charset"]; err == nil && charset != "" && !strings.EqualFold(charset, "utf-8") && !ascii {
		return nil, fault(NotUTF8, ErrEncoded, "it is not in UTF-8")
	}
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if err != nil || kind != "application/x-www-form-urlencoded" || bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return body, nil
	}
	form, err := url.ParseQuery(string(body))
	if payload := form["payload"]; err == nil && len(payload) == 1 {
		return []byte(payload[0]), nil
	}
	if _, wrong := decode(body); wrong == nil {
		return body, nil
	}
	return nil, fault(NotJSON, ErrUnreadable, "it is a form without a payload; choose the content type application/json where the hook is set up")
}
