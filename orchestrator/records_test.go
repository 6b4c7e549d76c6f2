package orchestrator

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/session"
)

// TestTheLogOfAHoldSaysWhatToDo: of a crash loop it had why, and nothing to type.
func TestTheLogOfAHoldSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ends session.Outcome
		want string
	}{
		"a crash loop": {session.Outcome{Why: hook.EndCrashed, Bound: true}, `do="heartbeat -f x logs a --raw" then="heartbeat -f x resume a`},
		"a question":   {session.Outcome{Why: hook.EndStartTimeout, Asks: &session.Question{What: "a thing", Do: "answer it"}}, `do="answer it" then="it continues by itself"`},
		"a login":      {session.Outcome{Why: hook.EndAPIFailure, Detail: "authentication_failed", Bound: true}, `do="run claude, and in it /login`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				var said bytes.Buffer
				r.opt.Log, r.opt.Ours = slog.New(slog.NewTextHandler(&said, nil)), "heartbeat -f x"
				r.agent("a").OnOrphan = "retry"
				r.set("a", ends(c.ends))
				r.send("a", 1)
				stop := r.run()
				r.sleep(time.Hour)
				stop()
				for line := range strings.Lines(said.String()) {
					if strings.Contains(line, `msg="agent held" agent=a`) {
						if !strings.Contains(line, c.want) {
							t.Errorf("%s lacks %s", line, c.want)
						}
						return
					}
				}
				t.Errorf("nothing is said of a hold:\n%s", said.String())
			})
		})
	}
}
