package status

import (
	"cmp"
	"strings"
	"time"

	"heartbeat/orchestrator/store"
)

// Run identifies the scheduler that runs a fleet.
type Run struct {
	PID     int       `json:"pid"`
	Fleet   string    `json:"fleet"`
	File    string    `json:"file"`
	Started time.Time `json:"started"`
	// Program is the version of heartbeat that it is, "" of one that did not say so yet.
	Program string `json:"program,omitempty"`
	// Unloaded is set while the fleet's file does not say what runs.
	Unloaded *Unloaded `json:"unloaded,omitempty"`
	// Stopping is set once the run was asked to end.
	Stopping *Stopping `json:"stopping,omitempty"`
}

// Unloaded says what loading a fleet's file again would change, or why it cannot be
// used.
type Unloaded struct {
	Changes string `json:"changes,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Stopping says how far a run is with its end.
type Stopping struct {
	Since time.Time `json:"since"`
	// Until is when turns are ended that have not finished by then; zero: they are
	// ended now.
	Until time.Time `json:"until,omitzero"`
}

// Live is a running scheduler's answer to a request for its state.
type Live struct {
	Run
	Doors []Door `json:"doors,omitempty"`
	// Store is what is wrong with the fleet's store.
	Store  []store.Trouble `json:"store,omitempty"`
	Agents []AgentState    `json:"agents"`
}

// Door is an address that a run serves, or is to serve.
type Door struct {
	Address string   `json:"address"`
	Serves  []string `json:"serves"`
	// Since is since when it is open, or since when Problem keeps it from that.
	Since   time.Time `json:"since,omitzero"`
	Problem string    `json:"problem,omitempty"`
	// Fix is what to type against it, where that is known.
	Fix string `json:"fix,omitempty"`
}

// Mend is what to do about its problem; ours is how a command line for the fleet begins.
func (d Door) Mend(ours string) string {
	return cmp.Or(d.Fix, "free the address (ss -lxtp shows what has it), or write another one below listen: in the file, then "+ours+" reload")
}

// down says what nobody can reach while the address is not open.
func (d Door) down() string {
	if len(d.Serves) == 1 && d.Serves[0] == "page" {
		return "the page has been down"
	}
	return strings.ReplaceAll(strings.Join(d.Serves, " and "), "page", "the page") + " have been down"
}
