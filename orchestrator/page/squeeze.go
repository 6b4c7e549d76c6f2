package page

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// leastSqueezed is the length in bytes from which on an answer is compressed.
//
// Pages and assets are compressed; the pages of a large fleet shrink to a tenth. The length of
// a compressed answer reveals something about its contents to anybody who can put a text into
// it (BREACH). The only secret in a compressed page, in its forms, is masked differently each
// time (access.Who). The page of a link, which has the link's secret in it, is not compressed;
// nor are live changes, which are small.
const leastSqueezed = 2 << 10

// squeezes reports whether the client of a request accepts gzip.
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

// send writes a body. squeeze is true if it may be compressed.
func send(w http.ResponseWriter, code int, body []byte, squeeze bool) {
	sendAs(w, code, body, squeeze, func() []byte { return squeezed(body) })
}

// sendAs is send for a body whose compressed form small returns.
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
