package agent

import (
	"slices"

	"heartbeat/orchestrator/status"
)

// SetAside says which entries are set aside until a person answers. They do not keep sessions
// from being started.
func (a *Agent) SetAside(deliveries []string) { a.wish.aside = slices.Clone(deliveries) }

// WaitAside returns the entries that are set aside, and Asides how many there are.
func (a *Agent) WaitAside() []string { return slices.Clone(a.wish.aside) }

// Asides is the number of WaitAside.
func (a *Agent) Asides() int { return len(a.wish.aside) }

// AwaitsAside says which approval is waited for while the agent works on; nil: none.
func (a *Agent) AwaitsAside(w *status.Approval) { a.wish.asks = w }

// ProvenAside counts an entry that is done because a person approved it while it was set
// aside. Unlike Proven it also counts while a session lives.
func (a *Agent) ProvenAside() { a.done.acknowledged++ }

// Returns says that an entry which was set aside has to be handed over again, before anything
// that is queued. The entry in flight is not interrupted. A live session ends after its turn,
// because the returning entry continues in another conversation.
func (a *Agent) Returns() {
	a.queue.stale = true
	a.Finish(FinishReturns)
}

// FinishReturns is the reason of a session that ends to make way for such an entry.
const FinishReturns = "an answered prompt goes on in its own conversation"
