package status

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/store"
	"heartbeat/sources/webhook"
)

// TestNoPartsSuccessClearsAnothersTrouble: walks every list of what is known of an agent and of a
// fleet. Of two parts that fail, both are told; when one works again, the other is told as
// before, under the same name, and its name is nobody else's.
func TestNoPartsSuccessClearsAnothersTrouble(t *testing.T) {
	t.Parallel()
	now := time.Now()
	refused := func(sender webhook.Sender, f webhook.Fault) firing.RefusedRequests {
		return firing.RefusedRequests{Trigger: "hook", Refused: memory.Refused{Sender: sender, Fault: f, Since: now, Last: now, Times: 1}}
	}
	parts := map[string][][2]any{ // by field, pairs of parts; their words come after them
		"Failing": {
			{firing.Failing{Trigger: "first", Since: now, Why: "x"}, firing.Failing{Trigger: "second", Since: now, Why: "x"}},
			{firing.Failing{Trigger: "first", Since: now, Why: "x", Requested: true}, firing.Failing{Trigger: "second", Since: now, Why: "x", Requested: true}},
		},
		"RefusedRequests": {
			{refused("GitHub", webhook.WrongSignature), refused("GitLab", webhook.WrongSignature)},
			{refused("GitHub", webhook.WrongSignature), refused("GitHub", webhook.NotJSON)},
		},
		"PausedTriggers": {{memory.PausedTrigger{Trigger: "first", Paused: memory.Paused{Since: now}}, memory.PausedTrigger{Trigger: "second", Paused: memory.Paused{Since: now}}}},
		"Servers":        {{session.Server{Name: "first", Why: "x"}, session.Server{Name: "second", Why: "x"}}},
		"Denied":         {{session.Denied{Rule: "first", Times: 1}, session.Denied{Rule: "second", Times: 1}}},
		"Untold":         {{Untold{Target: "first", Since: now, Why: "x"}, Untold{Target: "second", Since: now, Why: "x"}}},
		"Doors":          {{Door{Address: "first", Since: now, Problem: "x"}, Door{Address: "second", Since: now, Problem: "x"}}},
		"Store":          {{store.Trouble{Kind: store.Full, Since: now, Text: "x"}, store.Trouble{Kind: store.Long, Since: now, Text: "x"}}},
		"Logins":         {{preflight.Ending{File: "/first", At: now, Fix: "log in"}, preflight.Ending{File: "/second", At: now, Fix: "log in"}}},
		"OldQueues":      {{OldQueue{Agent: "a", Dir: "/first", Inbox: "/first/i"}, OldQueue{Agent: "a", Dir: "/second", Inbox: "/second/i"}}},
	}
	none := map[string]string{
		"RefusedFires": "what has found no room is said for an hour, whatever follows",
		"Agents":       "each has its own",
		"Strays":       "what has come is said until a session has done something without one",
	}
	one := map[string]bool{"Servers": true, "Denied": true} // one trouble names all of them
	walked := 0
	fields := reflect.VisibleFields(reflect.TypeFor[Agent]())
	for _, f := range append(fields, reflect.VisibleFields(reflect.TypeFor[Fleet]())...) {
		if f.Type.Kind() != reflect.Slice || none[f.Name] != "" {
			continue
		}
		if parts[f.Name] == nil {
			t.Errorf("what follows when one of %s works again?", f.Name)
		}
		for _, pair := range parts[f.Name] {
			walked++
			troubles := func(of ...any) []Alike {
				fleet := Fleet{Agents: []Agent{{AgentState: AgentState{Agent: "a", State: Idle, Since: now}}}}
				in := reflect.ValueOf(&fleet).Elem()
				if slices.ContainsFunc(fields, func(g reflect.StructField) bool { return g.Name == f.Name }) {
					in = reflect.ValueOf(&fleet.Agents[0]).Elem()
				}
				list := in.FieldByName(f.Name)
				for _, p := range of {
					list.Set(reflect.Append(list, reflect.ValueOf(p)))
				}
				return Together(fleet.Troubles("heartbeat", now))
			}
			both, left := troubles(pair[0], pair[1]), troubles(pair[1])
			if len(left) != 1 || len(both) != 2 && !one[f.Name] {
				t.Fatalf("%s: %+v, then %+v", f.Name, both, left)
			}
			last := both[len(both)-1]
			if one[f.Name] {
				if !strings.Contains(last.Text, "first") || !strings.Contains(last.Text, "second") || !strings.Contains(left[0].Text, "second") {
					t.Errorf("%s: %q, then %q", f.Name, last.Text, left[0].Text)
				}
				continue
			}
			if !reflect.DeepEqual(last, left[0]) {
				t.Errorf("%s: it was %+v, and is %+v", f.Name, last, left[0])
			}
			if both[0].Part == both[1].Part || both[1].Part == "" {
				t.Errorf("%s: both are %q", f.Name, both[0].Part)
			}
		}
	}
	if walked < len(parts) {
		t.Errorf("walked %d", walked)
	}
}
