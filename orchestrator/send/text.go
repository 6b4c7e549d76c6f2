package send

import (
	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/owner"
)

// remembers keeps what a prompt says that may have to be proven, where the agent cannot
// write. It is queued either way: what could not be kept is read in the inbox when the
// scheduler looks into it.
func remembers(f *config.Fleet, a *config.Agent, l inbox.Letter) {
	if a.Until == nil && !l.Checked {
		return
	}
	if dir, err := owner.StateDir(f); err == nil {
		_ = ledger.KeepText(dir, ledger.Text{ID: l.ID, Inbox: a.Inbox, Text: l.Prompt})
	}
}
