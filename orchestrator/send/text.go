package send

import (
	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/owner"
)

// remembers keeps what a prompt says that may have to be proven, where the agent cannot
// write (ledger.Queued). It is queued either way.
func remembers(f *config.Fleet, a *config.Agent, l inbox.Letter) {
	if dir, err := owner.StateDir(f); err == nil {
		_ = ledger.Queued(dir, a, l)
	}
}
