package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	hookclient "heartbeat/hook/client"
	"heartbeat/orchestrator/status"
)

// TestAPromptPastTheQueueIsTold, by whom it came: a directory's timetable, where rules allow
// one, began turns, and nobody was told. Without such a rule there is none.
func TestAPromptPastTheQueueIsTold(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		for _, allowed := range []bool{true, false} {
			// The client looks at its timetable between turns, so its session goes on for a while.
			f := newFleet(t, c, []string{"background: wait"})
			f.teach(behaviour{match: "one", background: "sleep 8", reply: "started it"})
			if allowed {
				text, err := os.ReadFile(f.file)
				if err != nil {
					t.Fatal(err)
				}
				f.write(f.file, strings.Replace(string(text), "allow: [Bash]", "allow: [Bash, CronCreate]", 1))
			}
			f.WriteJSON(filepath.Join(f.Work, ".claude", hookclient.Claude.Settings.Timed), map[string]any{"tasks": []any{map[string]any{
				"id": "abcdef01", "cron": "* * * * *", "prompt": "send it to me", "createdAt": 1764400000000, "recurring": true,
			}}})
			f.send("one")
			f.must("", "run", "--once")
			if done := f.outbox(); len(done) != 1 || len(f.dead()) > 0 {
				t.Errorf("done: %+v, dead: %+v", done, f.dead())
			}
			var said struct {
				Data struct{ Agents []status.AgentSummary }
			}
			out, _, _ := f.heartbeat("", "status", "-o", "json")
			if err := json.Unmarshal([]byte(out), &said); err != nil || len(said.Data.Agents) != 1 {
				t.Fatalf("status says %.500q, %v", out, err)
			}
			strays := said.Data.Agents[0].Strays
			events := f.must("", "events", "a")
			shown, _, _ := f.heartbeat("", "status")
			doctor, _, _ := f.heartbeat("", "doctor", "a")
			if !allowed {
				if len(strays) > 0 || strings.Contains(events+shown+doctor, "stray-prompt") {
					t.Errorf("without a rule: %+v\n%s\n%s", strays, events, shown)
				}
				continue
			}
			if len(strays) == 0 || strays[0].By != hookclient.Timetable || strays[0].Prompt != "send it to me" {
				t.Fatalf("strays: %+v\n%s", strays, f.hookLog())
			}
			const who = "from the client's own timetable: \"send it to me\""
			for what, text := range map[string]string{"status": shown, "doctor": doctor} {
				if !strings.Contains(strings.Join(strings.Fields(text), " "), who) && c.name == "simulate" {
					t.Errorf("%s: %s", what, text)
				}
			}
			if !strings.Contains(events, "stray-prompt") {
				t.Errorf("events: %s", events)
			}
		}
	})
}
