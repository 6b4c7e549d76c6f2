package agent

import (
	"time"

	"heartbeat/config"
)

// Client is what is known about the client that an agent's sessions start.
type Client struct {
	// ID identifies the program and its version; "": nothing is known about it.
	ID string
	// Name is the program with its version, for people.
	Name string
	// Breaks says what it does differently from what heartbeat relies on; "": nothing that
	// is known. Fix is what to do.
	Breaks, Fix string
}

// installed is the client that the agent's last start found, and what follows from it.
type installed struct {
	is Client
	// probed is true while the client is new and is being tried.
	probed bool
	held   bool
	since  time.Time // of held
	// passes is the ID of a client that a person has allowed.
	passes string
}

// Probes undoes the start of a session: its client is new and is tried first.
func (a *Agent) Probes(c Client) {
	if a.life.is == Starting {
		a.NotBegun("its client is new here")
		a.past.client.is, a.past.client.probed = c, true
	}
}

// Probed takes the result of that trial.
func (a *Agent) Probed(c Client, now time.Time) {
	if a.past.client.probed && a.past.client.is.ID == c.ID {
		a.past.client.probed = false
		a.idle, a.queue.stale = "its client was probed", true
		a.Meets(c, now)
	}
}

// Meets says which client a session would start. It returns false if client-drift holds the
// agent because of it.
func (a *Agent) Meets(c Client, now time.Time) bool {
	was := &a.past.client
	was.is, was.probed = c, false
	if was.held = c.Breaks != "" && a.def.ClientDrift == config.DriftHolds && was.passes != c.ID; !was.held {
		a.alarms.set(Meet, time.Time{})
		return true
	}
	a.NotBegun("")
	was.since = now
	a.meetLater(now)
	return false
}

func (a *Agent) meetLater(now time.Time) {
	if !a.wish.removed {
		a.alarms.set(Meet, now.Add(askDelay(now.Sub(a.past.client.since))))
	}
}

// FindsClient says which client is installed now. Another client ends a hold.
func (a *Agent) FindsClient(id string, now time.Time) {
	switch {
	case !a.past.client.held:
	case id == a.past.client.is.ID:
		a.meetLater(now)
	default:
		a.leaveClient("another client is installed")
	}
}

// leaveClient ends a hold because of a client.
func (a *Agent) leaveClient(why string) {
	if a.past.client.held {
		a.past.client.held = false
		a.alarms.set(Meet, time.Time{})
		a.idle, a.queue.stale = why, true
	}
}
