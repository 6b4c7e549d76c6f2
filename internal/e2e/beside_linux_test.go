package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	hookclient "heartbeat/hook/client"
	"heartbeat/hook/settings"
	"heartbeat/internal/fakeapi"
)

// TestWhatActsBesideThePromptIsShut: none of the client's tools that need no rule and act
// beside the queue is there for a session whose rules do not name it, and what follows in
// its turn works. Whoever names them has them.
func TestWhatActsBesideThePromptIsShut(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	for _, allowed := range []bool{false, true} {
		t.Run(map[bool]string{false: "by default", true: "allowed"}[allowed], func(t *testing.T) {
			t.Parallel()
			var does []fakeapi.Answer
			names := []string{"Bash"}
			for _, b := range hookclient.Claude.Beside {
				if allowed && b.Tool == "EnterPlanMode" {
					continue // what follows would not work
				}
				names = append(names, b.Tool)
				does = append(does, fakeapi.Answer{Tools: []fakeapi.ToolUse{{Name: b.Tool, Input: b.Input}}})
			}
			does = append(does, fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.Bash("touch worked")}}, fakeapi.Answer{Text: "done"})
			f := newFleet(t, c, nil, fakeapi.Rule{Match: "use them", Answer: does[0], Then: does[1:]})
			if allowed {
				text, err := os.ReadFile(f.file)
				if err != nil {
					t.Fatal(err)
				}
				f.write(f.file, strings.Replace(string(text), "allow: [Bash]", "allow: ["+strings.Join(names, ", ")+"]", 1))
			}
			f.send("use them")
			f.must("", "run", "--once")
			if done := f.outbox(); len(done) != 1 || done[0].Reply != "done" {
				t.Errorf("done: %+v", done)
			}
			if _, err := os.Stat(filepath.Join(f.Work, "worked")); err != nil {
				t.Errorf("what follows did not work: %v", err)
			}
			said := f.toolResults()
			for _, name := range names[1:] {
				if shut := strings.Contains(said[name], "No such tool available: "+name); shut == allowed {
					t.Errorf("%s: the model was told %.200q", name, said[name])
				}
			}
		})
	}
}

// toolResults are what the model was told of each tool that it called, by its name; of two
// calls the last one.
func (l *Lab) toolResults() map[string]string {
	names, said := map[string]string{}, map[string]string{}
	for _, r := range l.asked() {
		var body struct {
			Messages []struct{ Content json.RawMessage }
		}
		if err := json.Unmarshal(r.Body, &body); err != nil {
			l.t.Fatal(err)
		}
		for _, m := range body.Messages {
			var blocks []struct {
				Type, Name, ID string
				Tool           string `json:"tool_use_id"`
				Content        json.RawMessage
			}
			_ = json.Unmarshal(m.Content, &blocks) // a text alone is none
			for _, b := range blocks {
				switch b.Type {
				case "tool_use":
					names[b.ID] = b.Name
				case "tool_result":
					said[names[b.Tool]] = string(b.Content)
				}
			}
		}
	}
	return said
}

// TestADirectorysTimetableIsShut: a repository's scheduled prompts reach a session as a
// person's would, also where its settings turn the timetable on again, unless the session
// is given what ours are. It watches another one that they reach.
func TestADirectorysTimetableIsShut(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	const theirs = "a prompt of the directory"
	start := func(shut bool) *Lab {
		l := newLab(t, c, nil, fakeapi.Rule{Answer: fakeapi.Answer{Text: "ok"}})
		l.ProjectSettings(map[string]any{"env": map[string]any{"CLAUDE_CODE_DISABLE_CRON": "0"}, "hooks": l.Hooks("Stop")["hooks"]})
		l.WriteJSON(filepath.Join(l.Work, ".claude", hookclient.Claude.Settings.Timed), map[string]any{"tasks": []any{map[string]any{
			"id": "abcdef01", "cron": "* * * * *", "prompt": theirs, "createdAt": 1764400000000, "recurring": true,
		}}})
		args := []string{"--permission-mode", "dontAsk"}
		if shut {
			var more settings.Session
			more.Deny, more.Env = hookclient.Claude.Shut(nil)
			data, err := settings.ForSession(nil, more)
			if err != nil {
				t.Fatal(err)
			}
			l.WriteJSON(filepath.Join(l.Dir, "flag.json"), json.RawMessage(data))
			l.Setenv(more.Env...)
			args = append(args, "--settings", filepath.Join(l.Dir, "flag.json"))
		}
		l.Start(append(args, "--", "hello")...)
		l.UntilCalls("Stop", 1)
		return l
	}
	asked := func(l *Lab) (n int) {
		for _, texts := range l.ModelCalls() {
			if strings.Contains(strings.Join(texts, "\n"), theirs) {
				n++
			}
		}
		return n
	}
	shut, open := start(true), start(false)
	open.Until("its prompt", func() bool { return asked(open) > 0 })
	if n := asked(shut); n > 0 {
		t.Errorf("%d prompts of the directory reached a session that is shut", n)
	}
}
