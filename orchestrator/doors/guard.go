package doors

import (
	"net/http"
	"slices"
	"strings"

	"heartbeat/config"
	"heartbeat/ptyrun/lobby"
	"heartbeat/ptyrun/peer"
	"heartbeat/sources/webhook"
)

// metricsPaths are what an address with metrics serves.
var metricsPaths = []string{"/metrics", "/healthz", "/readyz"}

func isMetrics(path string) bool { return slices.Contains(metricsPaths, path) }

// guarded decides who may ask at an address at all.
func (o *door) guarded(next http.Handler) http.Handler {
	if o.SecretFile != "" {
		next = knowing(o.SecretFile, next)
	}
	if o.Network == "tcp" && o.Local() && slices.Contains(o.Serves, config.ServesMetrics) {
		next = byAddress(next)
	}
	return next
}

// byAddress refuses, at an address that only this machine can reach, requests for
// metrics under another name: otherwise a web page whose name was made to point here
// could read the answers. Webhooks come through proxies, which keep the name.
func byAddress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, here := peer.NamesHere(r.Host); isMetrics(r.URL.Path) && !here {
			http.Error(w, "ask by localhost or an address, not by another name", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isPage reports whether a path is the page's, which looks by itself where a request
// comes from.
func isPage(path string) bool { return strings.HasPrefix(path+"/", config.PagePath) }

// fromPage reports whether a page in a browser sends a request that changes something: it
// is refused by all but our own page, because otherwise any page could queue prompts at a
// webhook without a secret. Browsers mark such requests with these headers, and no page can
// leave them out (Fetch Metadata; RFC 6454).
func fromPage(r *http.Request) bool {
	return r.Method != http.MethodGet && (r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != "")
}

// noPages is the answer to a page.
const noPages = "requests of web pages are not served"

// knowing refuses requests for metrics that do not name the secret.
func knowing(file string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isMetrics(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		secret, err := config.ReadSecret(file)
		switch {
		case err != nil:
			refuse(w, http.StatusServiceUnavailable, "the secret cannot be read")
		case !webhook.Knows(secret, r.Header):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "the secret is missing or wrong: send Authorization: Bearer SECRET")
		default:
			if c := lobby.Of(r.Context()); c != nil {
				c.Proves()
			}
			next.ServeHTTP(w, r)
		}
	})
}
