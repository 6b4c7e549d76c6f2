package client

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStatusLine reads what 2.1.329 told a status line, with a subscription, and
// what no client would tell.
func TestStatusLine(t *testing.T) {
	t.Parallel()
	now := time.Unix(1795361000, 0)
	recorded, err := os.ReadFile(filepath.Join("testdata", "status-line.json"))
	if err != nil {
		t.Fatal(err)
	}
	whole := StatusLine{
		SessionID: "11111111-2222-4333-8444-555555555555", Transcript: "/home/.claude/projects/-work/11111111-2222-4333-8444-555555555555.jsonl",
		Version: "2.1.329", Model: "claude-opus-5-5", Cost: 0.03004, Context: ContextWindow{Size: 1000000, Used: 7},
		Limits: Limits{
			FiveHour: Limit{Used: 82, Resets: time.Unix(1795370000, 0)}, SevenDay: Limit{Used: 31.5, Resets: time.Unix(1795900000, 0)},
		},
	}
	only := func(change func(*StatusLine)) StatusLine {
		s := StatusLine{SessionID: "s"}
		change(&s)
		return s
	}
	for name, tt := range map[string]struct {
		told string
		want StatusLine
	}{
		"recorded":              {string(recorded), whole},
		"before the first turn": {`{"session_id":"s","cost":{"total_cost_usd":0},"context_window":{"current_usage":null,"used_percentage":null}}`, StatusLine{SessionID: "s"}},
		"a figure is a text":    {`{"session_id":"s","cost":{"total_cost_usd":"many"},"context_window":{"used_percentage":3}}`, only(func(s *StatusLine) { s.Context.Used = 3 })},
		"negative":              {`{"session_id":"s","cost":{"total_cost_usd":-1},"context_window":{"used_percentage":-3,"context_window_size":-1}}`, StatusLine{SessionID: "s"}},
		"beyond reason":         {`{"session_id":"s","cost":{"total_cost_usd":1e300},"context_window":{"used_percentage":101,"context_window_size":1e18}}`, StatusLine{SessionID: "s"}},
		"the limit has fallen":  {`{"session_id":"s","rate_limits":{"five_hour":{"used_percentage":100,"resets_at":1795361001}}}`, only(func(s *StatusLine) { s.Limits.FiveHour = Limit{Used: 100, Resets: now.Add(time.Second)} })},
		"it resets in a year":   {`{"session_id":"s","rate_limits":{"five_hour":{"used_percentage":100,"resets_at":1826897000}}}`, only(func(s *StatusLine) { s.Limits.FiveHour = Limit{Used: 100} })},
		"five hours, by a week": {`{"session_id":"s","rate_limits":{"five_hour":{"used_percentage":100,"resets_at":1795900000}}}`, only(func(s *StatusLine) { s.Limits.FiveHour = Limit{Used: 100} })},
		"it has reset":          {`{"session_id":"s","rate_limits":{"seven_day":{"used_percentage":99,"resets_at":1795360999}}}`, only(func(s *StatusLine) { s.Limits.SevenDay = Limit{Used: 99} })},
		"milliseconds":          {`{"session_id":"s","rate_limits":{"seven_day":{"used_percentage":99,"resets_at":1795361001000}}}`, only(func(s *StatusLine) { s.Limits.SevenDay = Limit{Used: 99} })},
	} {
		got, err := Claude.StatusLine([]byte(tt.told), now)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, none := range []string{"", "null", "[]", "{}", `{"session_id":""}`, `{"session_id":"s"`, `{"session_id":3}`} {
		if _, err := Claude.StatusLine([]byte(none), now); !errors.Is(err, ErrNoStatusLine) {
			t.Errorf("%q: %v", none, err)
		}
	}
}

func FuzzStatusLine(f *testing.F) {
	now := time.Unix(1795361000, 0)
	f.Add([]byte(`{"session_id":"s","cost":{"total_cost_usd":0.1},"rate_limits":{"five_hour":{"used_percentage":1,"resets_at":1795361001}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Claude.StatusLine(data, now)
		if err != nil {
			return
		}
		if s.Cost < 0 || s.Cost > maxCost || s.Context.Used < 0 || s.Context.Used > 100 ||
			s.Limits.FiveHour.Resets.After(now.Add(FiveHours+time.Minute)) || s.Limits.SevenDay.Resets.After(now.Add(SevenDays+time.Minute)) {
			t.Errorf("beyond reason: %+v", s)
		}
	})
}
