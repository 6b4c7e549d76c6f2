package agent

import "slices"

// SetAside says which entries are set aside until a person has answered: they keep
// nothing from being started.
func (a *Agent) SetAside(deliveries []string) { a.wish.aside = slices.Clone(deliveries) }

// WaitAside returns the entries that are set aside, and Asides how many there are.
func (a *Agent) WaitAside() []string { return slices.Clone(a.wish.aside) }

// Asides is the number of WaitAside.
func (a *Agent) Asides() int { return len(a.wish.aside) }

// ProvenAside counts an entry that is done because a person has said yes to it while it
// was set aside, whatever a session does meanwhile.
func (a *Agent) ProvenAside() { a.done.acknowledged++ }

// Returns says that an entry which was set aside is to be handed over again, before all
// that is queued. What is in flight is not interrupted: a live session ends after its
// turn, because that entry goes on in a conversation of its own.
func (a *Agent) Returns() {
	a.queue.stale = true
	a.Finish(FinishReturns)
}

// FinishReturns is why a session ends that makes way for such an entry.
const FinishReturns = "an answered prompt goes on in its own conversation"
