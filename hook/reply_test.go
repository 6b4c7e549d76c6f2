package hook

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"

	"heartbeat/hook/inbox"
)

func agentLine(text string) string {
	return strings.Replace(clienttest.UserLine(text), `"type":"user","message":{"role":"user"`, `"type":"assistant","message":{"role":"assistant"`, 1)
}

// The reply of an entry that the model answered with nothing was the one of the
// entry before, which the client names again.
// The reply of an entry that was done some time after its Stop, when its
// background tasks or other Stop hooks had ended, was cut without a word.
func TestAKeptReplyIsSaidToBeCut(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"x", "ü", "你", "👩"} {
		if kept := KeepReply(strings.Repeat(c, 200_000)); len(kept) <= inbox.MaxReply {
			t.Errorf("%s: the outbox cannot tell it from a whole one: %d bytes", c, len(kept))
		}
		if whole := strings.Repeat(c, 1000); KeepReply(whole) != whole {
			t.Errorf("%s: a short one is cut", c)
		}
	}
}

func TestAnEmptyAnswersReplyIsEmpty(t *testing.T) {
	t.Parallel()
	handed := clienttest.UserLine(clienttest.Feedback + "[x hook]: two")
	for name, c := range map[string]struct {
		second string // what the Stop of the second entry tells
		behind string // what the transcript holds by then
		late   string // and a while later
		want   string
	}{
		"nothing was said":                    {"first", handed, "", ""},
		"nothing but a tool":                  {"first", handed + clienttest.UserLine("a tool's result"), "", ""},
		"only white space":                    {"first", handed + agentLine(" \n"), "", ""},
		"a subagent spoke":                    {"first", handed + strings.Replace(agentLine("first"), "{", `{"isSidechain":true,`, 1), "", ""},
		"it was said before":                  {"first", agentLine("first") + handed, "", ""},
		"the same was said again":             {"first", handed + agentLine("first"), "", "first"},
		"the same, written late":              {"first", handed, agentLine("first"), "first"},
		"all of it is written late":           {"first", "", handed + agentLine("first"), "first"},
		"the file is made late":               {"first", "", handed, ""},
		"something before a tool":             {"first", handed + agentLine("first") + clienttest.UserLine("a tool's result"), "", "first"},
		"there is no transcript to look into": {"first", "", "", "first"},
		"something else":                      {"second", handed, "", "second"},
	} {
		write := func(l *lab) {
			if c.behind != "" {
				clienttest.Append(t, l.transcript, c.behind)
			}
			if c.late == "" {
				l.soon()
			} else {
				timer := time.AfterFunc(300*time.Millisecond, func() { clienttest.Append(t, l.transcript, c.late) })
				t.Cleanup(func() { timer.Stop() })
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", "two", "three"})
			l.handsOver("two", fields{"last_assistant_message": "first"})
			write(l)
			l.handsOver("three", fields{"stop_hook_active": true, "last_assistant_message": c.second})
			if got := l.replies(); !slices.Equal(got, []string{"first", c.want}) {
				t.Errorf("replies %q, want %q second", got, c.want)
			}
		})
		t.Run("hand-wired: "+name, func(t *testing.T) {
			t.Parallel()
			o := newOld(t, "one\ntwo\nthree\n")
			o.transcript = filepath.Join(o.home, "t.jsonl")
			blocks(t, o.stopWith(o.payload(client.Stop, nil)), "one")
			blocks(t, o.stopWith(o.payload(client.Stop, fields{"stop_hook_active": true, "last_assistant_message": "first"})), "two")
			write(o.lab)
			blocks(t, o.stopWith(o.payload(client.Stop, fields{"stop_hook_active": true, "last_assistant_message": c.second})), "three")
			if got := o.replies(); !slices.Equal(got, []string{"first", c.want}) {
				t.Errorf("replies %q, want %q second", got, c.want)
			}
		})
	}
}
