package memory

import (
	"testing"
	"time"

	"heartbeat/config"
)

// TestWhoHasMoved: an agent is known by its name where its directory is another's now.
func TestWhoHasMoved(t *testing.T) {
	t.Parallel()
	gone := time.Now()
	for name, tt := range map[string]struct {
		before Identities
		a      config.Agent
		want   string // from; "" if it has not moved
	}{
		"new":                    {Identities{{Name: "b", Dir: "/1"}}, config.Agent{Name: "a", Dir: "/1"}, ""},
		"the same":               {Identities{{Name: "a", Dir: "/1"}}, config.Agent{Name: "a", Dir: "/1"}, ""},
		"moved":                  {Identities{{Name: "a", Dir: "/1"}, {Name: "b", Dir: "/2"}}, config.Agent{Name: "a", Dir: "/2"}, "/1"},
		"comes elsewhere":        {Identities{{Name: "a", Dir: "/1", Gone: gone}}, config.Agent{Name: "a", Dir: "/2"}, "/1"},
		"the declared one":       {Identities{{Name: "a", Dir: "/1", Gone: gone}, {Name: "a", Dir: "/3"}}, config.Agent{Name: "a", Dir: "/2"}, "/3"},
		"it was there before":    {Identities{{Name: "a", Dir: "/1"}, {Name: "a", Dir: "/2", Gone: gone}}, config.Agent{Name: "a", Dir: "/2"}, ""},
		"the one that went last": {Identities{{Name: "a", Dir: "/3", Gone: gone}, {Name: "a", Dir: "/1", Gone: gone.Add(-time.Hour)}}, config.Agent{Name: "a", Dir: "/2"}, "/3"},
	} {
		moves := tt.before.Moves([]*config.Agent{&tt.a})
		if (len(moves) == 1) != (tt.want != "") || len(moves) == 1 && (moves[0].From != tt.want || moves[0].Agent != &tt.a) {
			t.Errorf("%s: %+v, want %q", name, moves, tt.want)
		}
	}
	all := Identities{{Dir: "/1"}, {Dir: "/1/sub"}, {Dir: "/10"}}
	for path, want := range map[string]string{"/1/.heartbeat/inbox.jsonl": "/1", "/1/sub/x": "/1/sub", "/10/x": "/10", "/2/x": "", "/1": ""} {
		if got := all.Owns(path); got != want {
			t.Errorf("%s is in %q, want %q", path, got, want)
		}
	}
}
