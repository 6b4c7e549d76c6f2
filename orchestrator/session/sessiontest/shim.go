package sessiontest

import (
	"context"
	"errors"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/ask"
	"heartbeat/hook/flock"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
)

// Shim does for a session's hooks what its shim does before the client starts, for tests
// that call the hooks themselves in the place of a client.
type Shim struct {
	Agent, Session, Token string
	Home, Inbox           string // AGENT_DIR/.heartbeat, and the inbox in it
	Transcript            string // of the client
	// Checked is true if each entry is done only once a check has passed, which takes
	// CheckTimeout at most.
	Checked      bool
	CheckTimeout time.Duration
}

// Lock says that a session lives, until release.
func (s Shim) Lock() (release func() error, err error) {
	return flock.TryLock(inbox.Beside(s.Inbox, inbox.SessionLock))
}

// Turn is the path of the program that answers one of the session's hooks as the shim does.
const Turn = "heartbeat/orchestrator/session/sessiontest/turn"

// Env is what a hook, or Turn, finds in its environment beside the client's own.
func (s Shim) Env() []string {
	return []string{ask.EnvSession + "=" + s.Token, ask.EnvHome + "=" + s.Home}
}

// Begin begins the session, which hands over what is queued and then lets the client stop.
func (s Shim) Begin(context.Context) error {
	now := time.Now()
	r := &hook.Record{
		Version: 1,
		Terms: hook.Terms{
			Agent: s.Agent, Session: s.Session, Inbox: s.Inbox, Policy: hook.Policy{
				Mode: hook.Drain, Deliver: hook.DeliverStderr, Background: hook.BackgroundWait, MaxContinuations: 20,
				Checked: s.Checked, CheckTimeout: s.CheckTimeout,
			},
		},
		TokenHash: hook.TokenHash(s.Token), StartedAt: now, Phase: hook.Starting, Since: now,
	}
	return hook.NewLive(r, s.Home, s.Token, nil).ShowAgain()
}

// CarryFirst offers the entry that is next, or the one that goes on after a check, and
// returns its text and the prompt argument with which the client starts then. Both are ""
// where there is none to carry.
func (s Shim) CarryFirst(ctx context.Context) (text, kickoff string, err error) {
	err = s.hold(ctx, func(q *inbox.Held) error {
		offering := inbox.Offering{Via: inbox.ViaKickoff, Session: s.Session, Transcript: s.Transcript, Checked: s.Checked}
		f, err := q.InFlight()
		switch {
		case err != nil:
			return err
		case f != nil && (f.State != inbox.Unproven || f.Interrupted != ""):
			return nil // another session's, which is not recovered
		case f != nil:
			if _, f, err = q.Reoffer(offering); err != nil {
				return err
			}
			text = handover.PromptFor(f.Given())
		default:
			e, err := q.Next()
			if errors.Is(err, inbox.ErrEmpty) {
				return nil
			}
			if err == nil {
				f, err = q.Offer(e, offering)
			}
			if err != nil {
				return err
			}
			text = handover.PromptFor(f.Given())
		}
		kickoff = handover.KickoffPrompt(text)
		return nil
	})
	return text, kickoff, err
}

func (s Shim) hold(ctx context.Context, do func(q *inbox.Held) error) error {
	q, err := inbox.Open(inbox.Place{Inbox: s.Inbox})
	if err != nil {
		return err
	}
	defer q.Close()
	return q.Hold(ctx, do)
}
