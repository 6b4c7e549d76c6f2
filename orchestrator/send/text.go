package send

import (
	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/owner"
)

// remembers keeps what a prompt says that may have to be proven, where the agent cannot
// write (ledger.Queued). It is queued either way, and s says if that failed.
func (s *Sent) remembers(f *config.Fleet, a *config.Agent, l inbox.Letter) {
	dir, err := owner.StateDir(f)
	if err == nil {
		err = ledger.Queued(dir, a, l)
	}
	if err != nil {
		s.Unrecorded = err.Error()
	}
}
