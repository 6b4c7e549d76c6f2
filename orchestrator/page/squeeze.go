package page

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// leastSqueezed is from how many bytes on an answer is compressed.
//
// Pages, and what is loaded with them, are compressed: those of a large fleet come to a
// tenth. How long an answer is says something of what is in it to who can
// have a text in it (BREACH); the only secret in a page that is compressed, what its forms
// carry, is masked anew each time (access.Who). A link's page, which has the link's secret
// in it, is not compressed, nor is what is sent as it changes, in small pieces.
const leastSqueezed = 2 << 10

// squeezes reports whether who asks takes gzip.
func squeezes(r *http.Request) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(one, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, is := strings.CutPrefix(strings.TrimSpace(weight), "q=")
			value, err := strconv.ParseFloat(q, 64)
			return !is || err == nil && value > 0
		}
	}
	return false
}

var squeezers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func squeezed(body []byte) []byte {
	var b bytes.Buffer
	w := squeezers.Get().(*gzip.Writer) //nolint:forcetypeassert // New makes no other
	defer squeezers.Put(w)
	w.Reset(&b)
	_, _ = w.Write(body) // a buffer takes all
	_ = w.Close()
	return b.Bytes()
}

// send writes a body, compressed if it may be and who asks takes it.
func send(w http.ResponseWriter, code int, body []byte, squeeze bool) {
	sendAs(w, code, body, squeeze, func() []byte { return squeezed(body) })
}

// sendAs is send for a body whose compressed form is known, or made by small.
func sendAs(w http.ResponseWriter, code int, body []byte, squeeze bool, small func() []byte) {
	if len(body) >= leastSqueezed {
		w.Header().Add("Vary", "Accept-Encoding")
		if squeeze {
			body = small()
			w.Header().Set("Content-Encoding", "gzip")
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may have gone
}
