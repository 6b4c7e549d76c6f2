package notify

import (
	"testing"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/status"
	"heartbeat/sources/webhook"
)

// TestEachPartIsANoticeOfItsOwn: of two triggers of an agent that fail, or of two senders whose
// requests are refused, people heard of one; and of none that it was over before both were. What
// a stranger can cause does not ring a phone.
func TestEachPartIsANoticeOfItsOwn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	refused := func(s webhook.Sender, f webhook.Fault) firing.RefusedRequests {
		return firing.RefusedRequests{Trigger: "hook", Refused: memory.Refused{Sender: s, Fault: f, Since: now, Last: now, Times: 1}}
	}
	a := status.Agent{AgentState: status.AgentState{
		Agent: "a", State: status.Idle,
		Failing:         []firing.Failing{{Trigger: "first", Since: now, Why: foreign.Text("x")}, {Trigger: "second", Since: now, Why: foreign.Text("x")}},
		RefusedRequests: []firing.RefusedRequests{refused("GitHub", webhook.NoSecret), refused("curl", webhook.NoSecret), refused("curl", webhook.WrongSecret)},
	}}
	keys := map[string]notice.Fact{}
	for _, f := range troubles(a, "heartbeat", now) {
		keys[f.Key] = f
	}
	if len(keys) != 5 {
		t.Errorf("%d notices: %+v", len(keys), keys)
	}
	for key, urgent := range map[string]bool{
		"a/trigger-fails/first": true, "a/trigger-fails/second": true, "a/requests-refused/hook/GitHub/no-secret": true,
		"a/requests-refused/hook/curl/no-secret": false, "a/requests-refused/hook/curl/wrong-secret": true,
	} {
		if f, told := keys[key]; !told || f.Urgent != urgent {
			t.Errorf("%s is told: %v, urgent: %v", key, told, f.Urgent)
		}
	}
}
