package proving

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/status"
)

// unanswered are approvals that an agent has asked and nobody has answered.
type unanswered struct{}

func (unanswered) Of(Ask) (Say, error)                 { return Say{}, nil }
func (unanswered) Asked(string, string) (Asked, error) { return Asked{Waits: true}, nil }
func (unanswered) Told([]string) error                 { return nil }

// TestWhatAnAgentHasAskedIsNoPassedCheck: status said that its check had passed, and none
// had run.
func TestWhatAnAgentHasAskedIsNoPassedCheck(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		ctx, cancel := context.WithTimeout(l.t.Context(), time.Hour)
		defer cancel()
		desk := New(Options{StateDir: l.state, Log: slog.New(slog.DiscardHandler), Note: func(journal.Event) {}, Approvals: unanswered{}})
		desk.Prove(ctx, Case{
			Key: "a-1", Agent: func() *config.Agent { return l.agent }, Wake: make(chan struct{}),
			Tell: func(p status.Proof) { l.told = append(l.told, p.State) },
		})
		if len(l.told) == 0 || l.told[0] != status.CheckAsked {
			t.Errorf("told %q", l.told)
		}
	})
}
