package doors

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"heartbeat/config"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for addr, loopback := range map[string]bool{"0": true, "localhost:0": true, "[::1]:0": true, "0.0.0.0:0": false, "[::]:0": false} {
		s, err := OpenFlag(addr)
		if err != nil {
			t.Logf("%s: %v", addr, err) // no IPv6 here
			continue
		}
		if s.Loopback() != loopback {
			t.Errorf("%s listens on %s", addr, s.Addr())
		}
		if _, err := OpenFlag(s.Addr()); err == nil || !strings.Contains(err.Error(), "cannot serve metrics on") {
			t.Errorf("an address that is taken: %v", err)
		}
		s.l.Close()
	}
	for _, addr := range []string{"", "nonsense", "1.2.3.4", ":99999", "1.2.3.4.5:1"} {
		if _, err := OpenFlag(addr); err == nil {
			t.Errorf("%q is taken for an address", addr)
		}
	}
}

// TestAForeignNameIsRefused: a web page can make its own name point at this
// machine, and would read what is served here.
func TestAForeignNameIsRefused(t *testing.T) {
	t.Parallel()
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for _, listens := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		o := door{Listen: config.Listen{Network: "tcp", Address: listens, Serves: []config.Service{config.ServesMetrics}}}
		for host, served := range map[string]bool{
			"127.0.0.1:9464": true, "127.0.0.1": true, "[::1]:9464": true, "localhost": true, "LOCALHOST.:9464": true, "a.localhost:1": true, "": true,
			"evil.example": false, "evil.example:9464": false, "localhost.evil.example": false, "127.0.0.1.evil.example:9464": false,
		} {
			r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
			r.Host = host
			w := httptest.NewRecorder()
			o.guarded(ok).ServeHTTP(w, r)
			if served = served || listens[0] == '0'; (w.Code == http.StatusOK) != served {
				t.Errorf("%s, asked by %q: %d", listens, host, w.Code)
			}
		}
	}
}
