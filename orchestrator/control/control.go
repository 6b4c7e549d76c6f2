// Package control is the way into a running scheduler: HTTP over a Unix socket in
// the fleet's runtime directory, which only its owner can reach. The server answers
// for the fleet's run, of which there is one (package store has its lock).
//
// The routes are private and change with the program: programs use `heartbeat` with
// -o json.
package control

import (
	"context"
	"path/filepath"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// Scheduler is what the server needs of a running fleet.
type Scheduler interface {
	Snapshot() []status.AgentState
	// Stopping says how far the run is with its end; nil: nobody asked for it.
	Stopping() *status.Stopping
	// Doors says of each address that the run is to serve whether it is open.
	Doors() []status.Door
	// SessionOf returns the agent whose session a process belongs to, or "".
	SessionOf(pid int) string
	// CheckPerson returns an error if a process is not one of a person's.
	CheckPerson(pid int) error
	PauseBy(agent string, length time.Duration, agents ...string) ([]status.AgentState, error)
	Resume(agents ...string) ([]status.AgentState, error)
	// PauseTrigger and ResumeTrigger are about one trigger of an agent.
	PauseTrigger(by string, length time.Duration, agent, trigger string) ([]status.AgentState, error)
	ResumeTrigger(agent, trigger string) ([]status.AgentState, error)
	Restart(now bool, agents ...string) ([]status.AgentState, error)
	Cancel(ctx context.Context, only string, again bool, agents ...string) ([]orchestrator.Cancelled, error)
	Trigger(ctx context.Context, agent string, triggers ...string) ([]firing.Fired, error)
	// Stop asks the run to end: turns may finish within shutdown-grace or, with
	// now, no longer. It returns at once.
	Stop(now bool)
	// MayAnswer returns an error if a request is answered only by who has a token, and the
	// token is none; with a token, what it is called.
	MayAnswer(id, token string) (by string, err error)
	// AnswerApproval files what a person says to a request.
	AnswerApproval(ctx context.Context, id string, a approval.Answer) (approval.Request, error)
	// Tokens carries out what is to be done to who may see the page, if the token allows it.
	Tokens(ctx context.Context, o access.Order, token string) (access.Done, error)
	// Await changes who waits for the reply to a prompt, and reports whether somebody did.
	Await(ctx context.Context, o awaited.Order) (known bool, err error)
	// WithdrawApprovals ends what agents ask for that nobody needs any more.
	WithdrawApprovals(ctx context.Context, w consent.Withdrawal) error
	// NoteAnswered writes down what the queue of an agent was told.
	NoteAnswered(agent string, text foreign.Text)
	// LookLater looks for prompts that are to be sent at a time.
	LookLater()
	// Reload loads the fleet's file again and returns what that changes.
	Reload() (*orchestrator.Plan, error)
	// StoreTroubles are what is wrong with the fleet's store.
	StoreTroubles() []store.Trouble
	// Unloaded says what a reload would change, or why it would fail; nil: nothing.
	Unloaded() *status.Unloaded
}

// request is the body of a request that changes something.
type request struct {
	Agents  []string `json:"agents,omitempty"` // none: all
	Trigger string   `json:"trigger,omitempty"`
	Now     bool     `json:"now,omitempty"`
	// For is how long a pause takes; 0: it does not end by itself.
	For   time.Duration `json:"for,omitempty"`
	Entry string        `json:"entry,omitempty"` // the one that is meant; "": whichever
	Again bool          `json:"again,omitempty"`
	// Approval is an answer: the id, the state and the note.
	Approval *approval.Request `json:"approval,omitempty"`
	// Withdraw says what nobody needs of what agents ask for.
	Withdraw *consent.Withdrawal `json:"withdraw,omitempty"`
	// Text is what the queue was told.
	Text string `json:"text,omitempty"`
	// Token proves that a person answers.
	Token string `json:"token,omitempty"`
	// Await says who waits for which reply.
	Await *awaited.Order `json:"await,omitempty"`
	// Tokens is what is to be done to who may see the page.
	Tokens *access.Order `json:"tokens,omitempty"`
}

// problem is the answer to a request that failed.
type problem struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
	// Exit is the exit status that the error has in a command, or 0.
	Exit int `json:"exit,omitempty"`
}

func socketPath(dir string) string { return filepath.Join(dir, "control.sock") }

// lockPath is the lock that the socket's server holds: a socket without it is
// stale, left by a run that was killed.
func lockPath(dir string) string { return filepath.Join(dir, "control.lock") }

// maxBody limits an answer: 10,000 agents take 4 MB. maxRequest limits a request,
// which at most names them.
const maxBody, maxRequest = 64 << 20, 4 << 20
