package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/person"
	"heartbeat/orchestrator/send"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

type sendCmd struct {
	Agent string `arg:"" optional:"" help:"The agent; --cancel needs none." complete:"agent"`
	Text  string `arg:"" optional:"" help:"The prompt; \"-\", or none with a pipe, reads it from stdin."`
	// ID is nil when none is given.
	ID *string `name:"id" placeholder:"KEY" help:"Accept this prompt once: another send with the same key does nothing, also while the first waits for its time, and fails if its text is another one."`

	Urgent        bool          `help:"Hand it over before the prompts that are not urgent. What is being worked on goes on."`
	ReplyTo       flagText      `name:"reply-to" placeholder:"TARGET" help:"Send the reply to this key of the fleet's notify; also that the prompt was given up, or cannot be worked on for now." complete:"target"`
	At            flagText      `placeholder:"TIME" help:"Queue the prompt at a time: 18:30, 2026-12-01, \"2026-12-01 18:30\" (in the agent's time zone), 2026-12-01T18:30Z."`
	In            time.Duration `placeholder:"DURATION" help:"Queue the prompt after this time."`
	Cancel        flagText      `placeholder:"ID" help:"Instead of sending one, take back a prompt that waits for its time." complete:"later"`
	UntilCheck    flagText      `name:"until-check" placeholder:"COMMAND" help:"The prompt is done when this command, which a shell runs in the agent's directory, ends with 0; until then it is handed over again (heartbeat help proof)."`
	CheckTimeout  time.Duration `name:"check-timeout" placeholder:"DURATION" default:"10m" help:"With --until-check: how long the command may run (${default})."`
	UntilPromise  flagText      `name:"until-promise" placeholder:"TEXT" help:"With --until-check: what the agent has to claim as well, as <promise>TEXT</promise>."`
	UntilApprove  []string      `name:"until-approve" sep:"none" placeholder:"NAME" help:"With --until-check: a person has to say yes after that, by this name (repeatable; heartbeat help approvals)."`
	UntilAside    bool          `name:"until-aside" help:"With --until-approve: work on other prompts while this one waits for approval."`
	MaxIterations int           `name:"max-iterations" placeholder:"N" default:"10" help:"With --until-check: give the prompt up after so many iterations (${default}); 0: never."`
	MaxTime       time.Duration `name:"max-time" placeholder:"DURATION" default:"2h" help:"With --until-check: give the prompt up after so much work (${default}); 0: never."`

	Wait    bool          `help:"Wait for the reply and print it. A scheduler must be running."`
	Timeout time.Duration `placeholder:"DURATION" default:"0" help:"With --wait: give up waiting after this time, with status 124; the prompt stays queued. 0: never."`
}

// Help implements kong's HelpProvider.
func (sendCmd) Help() string {
	return `Queues a prompt. When send exits with 0, the prompt is on disk (file and folder
synced). If nothing works on it now, send says why, and what to type. If the agent's
queue is full (max-queue), nothing is queued, and the exit status is 75.

With --wait a line on the terminal shows the prompt's progress. Ctrl-C stops waiting;
the prompt stays queued.

With --reply-to the reply goes to a target of the fleet's notify, whenever it comes,
with the prompt's id; so does the news that the prompt was given up. An agent with
while-down: refuse takes no prompt while it cannot work: the exit status is then 75.

With --urgent the prompt goes before those that wait and are not urgent, and behind the
urgent ones. It ends no turn.

With --at or --in the prompt is kept, also over restarts, and queued at that time by the
clock of this machine. If no scheduler runs then, the next one queues it at once, and
says how late it is. heartbeat next lists what waits. --reply-to and --until-check go
with them; what was given first counts.

Examples:

    heartbeat send triage "Look at the new mails."
    heartbeat send builder - < task.md
    heartbeat send triage --id ticket-4711 "Answer ticket 4711."
    heartbeat send --wait --timeout 10m triage "How many mails are new?"
    heartbeat send --reply-to phone triage "How many mails are new?"
    heartbeat send builder --until-check "make test" "Mend the tests."
    heartbeat send --urgent triage "The mail server is down."
    heartbeat send triage --at 18:30 "Sum up the day."
    heartbeat send triage --in 2h --reply-to phone "Is the build green now?"
    heartbeat send --cancel ID
    heartbeat send triage -- "- a prompt that begins with a dash"`
}

// sent is an accepted prompt.
type sent struct {
	send.Sent
	// Delivery is the entry's record in the outbox, with --wait.
	Delivery *inbox.Delivery `json:"delivery,omitempty"`
}

func (c sendCmd) run(ctx context.Context, a *app) (result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Cancel != "" {
		return c.cancel(ctx, a)
	}
	agent, err := a.agent(c.Agent)
	if err != nil {
		return nil, err
	}
	inZoneOfRun(a.known, time.Now()) // a time that is given means the scheduler's day
	prompt, err := c.prompt(a, agent.MaxEntry)
	if err != nil {
		return nil, err
	}
	a.warnOfElsewhere(a.known, []*config.Agent{agent}, a.warn)
	a.step("appending to " + agent.Inbox)
	asked := c.asked(prompt)
	asked.Await = a.await
	if c.timed() {
		return c.later(ctx, a, agent, asked)
	}
	accepted, err := c.accept(a, &asked, agent.Name,
		func() (send.Sent, error) { return send.Prompt(ctx, a.known, agent, asked, a.ours()) },
		func(s *send.Sent) { a.whileStopping(ctx, s) })
	if err != nil {
		return nil, refusedNow(a, agent, err)
	}
	accepted.At = inZone(accepted.At, cmp.Or(agent.Zone, time.Local))
	if accepted.Unrecorded != "" {
		a.warn(unnoticed(accepted))
	}
	switch {
	case accepted.Differs:
		return sent{Sent: accepted}, otherText(a, accepted)
	case c.Wait && !accepted.At.IsZero():
		return sent{Sent: accepted}, waitsForItsTime(a, accepted)
	case !c.Wait:
		return sent{Sent: accepted}, nil
	}
	a.step("waiting for the reply")
	if o := accepted.Obstacle; o != nil {
		a.out.warnNow(fmt.Sprintf("the prompt is queued for %s, and waits: %s; %s", agent.Name, strings.TrimPrefix(o.Text, "waiting: "), o.Do))
	}
	delivery, err := c.await(ctx, a, agent, accepted)
	return sent{accepted, delivery}, err
}

// whileStopping says of a prompt which nothing else keeps from its agent, but for what is before
// it, that the scheduler is stopping: the next run works on it; or that its process is stopped,
// and works on nothing.
func (a *app) whileStopping(ctx context.Context, s *send.Sent) {
	if !s.Running || s.Obstacle != nil && s.Obstacle.What != status.Behind {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	live, err := askStatus(ctx, a.known)
	if err == nil && live.Stopping != nil {
		s.Obstacle = &status.Trouble{Agent: s.Agent, What: status.NobodyRuns, Text: "the scheduler is stopping", Do: a.ours() + " run   # when it has ended"}
		return
	}
	a.whileStopped(s, err)
}

// whileStopped says of a prompt that the process of the scheduler is stopped, if that is why
// it has not answered.
func (a *app) whileStopped(s *send.Sent, err error) {
	if m := control.MuteOf(err, time.Time{}); m != nil && m.Stopped() {
		s.Obstacle = &status.Trouble{Agent: s.Agent, What: status.NoAnswer, Text: m.Text(time.Now()), Do: m.Do(a.ours()), Then: m.Then()}
	}
}

// awaits changes who waits for the reply to a prompt of a fleet, and reports whether somebody did.
func awaits(ctx context.Context, s *store.Store, o awaited.Order) (known bool, err error) {
	err = s.Write(ctx, func(c *store.Change) error {
		known, err = o.Ask(c)
		return err
	})
	return known, err
}

// await has the fleet's run change who waits for the reply to a prompt, or does it without one.
func (a *app) await(ctx context.Context, o awaited.Order) (known bool, err error) {
	client, err := a.clientOf(a.known)
	if err != nil {
		return false, err
	}
	ask := func(ctx context.Context) (bool, error) { return client.Await(ctx, o) }
	return toRunOrNext(ctx, a, ask, func() (known bool, err error) {
		dir, err := owner.Claim(a.known)
		if err != nil {
			return false, err
		}
		o.By = waiter(dir)
		err = adopt.Use(ctx, dir, func(s *store.Store) error {
			known, err = awaits(ctx, s, o)
			return err
		})
		return known, err
	})
}

// waiter is who this process asks for, as awaited.Order.By says it.
func waiter(stateDir string) string {
	err := person.Check(os.Getpid(), stateDir)
	if nobody, is := errors.AsType[*person.NobodyError](err); is && nobody.Agent != "" {
		return nobody.Agent
	}
	if err != nil {
		return awaited.Nobody
	}
	return ""
}

// unnoticed is what is said of a prompt that is not recorded.
func unnoticed(s send.Sent) string {
	return "the prompt is queued, but its agent could change it unnoticed: " + s.Unrecorded
}

// asked is the prompt with what its flags say of it.
func (c sendCmd) asked(prompt string) send.Asked {
	letter := inbox.Letter{Source: "send", Prompt: prompt, Urgent: c.Urgent}
	if c.ID != nil {
		letter.ID, letter.Idempotent = *c.ID, true
	}
	return send.Asked{Letter: letter, ReplyTo: string(c.ReplyTo), Until: c.until()}
}

// refusedNow gives the status for "try again later" to what is refused only for now: the
// agent cannot work, or its queue is full.
func refusedNow(a *app, agent *config.Agent, err error) error {
	if down, is := errors.AsType[*send.DownError](err); is {
		return &failure{status: exitLater, err: down, hint: down.Hint()}
	}
	if errors.Is(err, inbox.ErrFull) {
		return &failure{
			status: exitLater, hint: fmt.Sprintf("send it again later; %s status %s says why the queue does not get shorter, max-queue in the file is its bound", a.ours(), agent.Name),
			err: fmt.Errorf("agent %q: %w", agent.Name, err),
		}
	}
	return err
}

// until is what the prompt has to pass; nil: nothing of its own.
func (c sendCmd) until() *config.Until {
	if c.UntilCheck == "" {
		return nil
	}
	u := config.NewUntil("sh", "-c", string(c.UntilCheck))
	u.CheckTimeout, u.Promise, u.MaxIterations, u.MaxTime = c.CheckTimeout, string(c.UntilPromise), c.MaxIterations, c.MaxTime
	u.Approve, u.Aside = c.UntilApprove, c.UntilAside
	return u
}

// otherText refuses a prompt whose id was accepted before.
func otherText(a *app, before send.Sent) error {
	hint := fmt.Sprintf("another --id queues it; %s replies %s and %[1]s inbox %[2]s show what became of the first", a.ours(), before.Agent)
	if !before.At.IsZero() {
		hint = fmt.Sprintf("another --id queues it; the first is sent at %s, %s send %s --cancel %s takes it back", before.At.Format(whenForm), a.ours(), before.Agent, settings.Quote(before.ID))
	}
	return &failure{
		status: exitError, hint: hint,
		err: fmt.Errorf("cannot queue the prompt: %q was accepted before, with another text", before.ID),
	}
}

// waitsForItsTime says that there is no reply to wait for yet.
func waitsForItsTime(a *app, before send.Sent) error {
	return &failure{
		status: exitError, hint: fmt.Sprintf("%s next lists it; %[1]s send %s --cancel %s takes it back", a.ours(), before.Agent, settings.Quote(before.ID)),
		err: fmt.Errorf("cannot wait for the reply to %q: it was accepted before, and is sent at %s", before.ID, before.At.Format(whenForm)),
	}
}

// check refuses flags that would have no effect.
func (c sendCmd) check() error {
	switch {
	case c.Timeout != 0 && !c.Wait:
		return usagef("heartbeat send --wait --timeout DURATION AGENT TEXT", "--timeout says how long to wait, without --wait")
	case c.timed() && c.Wait:
		return usagef("heartbeat send --at TIME --reply-to TARGET AGENT TEXT", "--at and --in do not go with --wait")
	case c.At != "" && c.In != 0:
		return usagef("heartbeat send --at TIME AGENT TEXT", "--at and --in are both given")
	case c.UntilCheck == "" && (c.UntilPromise != "" || len(c.UntilApprove) > 0 || c.UntilAside || c.CheckTimeout != config.DefaultCheckTimeout || c.MaxIterations != config.DefaultMaxIterations || c.MaxTime != config.DefaultMaxTime):
		return usagef("heartbeat send --until-check COMMAND AGENT TEXT", "--until-promise, --until-approve, --until-aside, --check-timeout, --max-iterations and --max-time go with --until-check")
	case c.UntilAside && len(c.UntilApprove) == 0:
		return usagef("heartbeat send --until-check COMMAND --until-approve release --until-aside AGENT TEXT", "--until-aside is for what waits for a person: it goes with --until-approve")
	case !config.ApproverNames(c.UntilApprove):
		return usagef("heartbeat send --until-check COMMAND --until-approve release AGENT TEXT", "--until-approve takes names like release, each once")
	case c.CheckTimeout <= 0 || c.CheckTimeout > 24*time.Hour || c.MaxIterations < 0 || c.MaxTime < 0:
		return usagef("heartbeat send --until-check COMMAND --check-timeout 10m AGENT TEXT", "--check-timeout is from above 0 to 24h; --max-iterations and --max-time are not below 0")
	case c.Cancel != "" && (c.Text != "" || c.timed() || c.Wait || c.ID != nil || c.ReplyTo != "" || c.Urgent || c.UntilCheck != ""):
		return usagef("heartbeat send --cancel ID", "--cancel stands alone: it sends nothing")
	case c.Cancel == "" && c.Agent == "":
		return usagef("heartbeat send AGENT TEXT", "no agent is named")
	case c.ID != nil && *c.ID == "":
		return usagef("heartbeat send --id KEY AGENT TEXT", "--id is empty: the prompt would be accepted each time")
	}
	return nil
}

// flagText is a flag's text that is not empty: an empty variable of a shell is a mistake,
// not a wish to send without the flag.
type flagText string

// UnmarshalText implements encoding.TextUnmarshaler.
func (g *flagText) UnmarshalText(text []byte) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return errors.New("it is empty; leave the flag out to send without it")
	}
	*g = flagText(text)
	return nil
}

// errNoReply is the cause with which --timeout ends the wait.
var errNoReply = errors.New("no reply in time")

func (c sendCmd) await(ctx context.Context, a *app, agent *config.Agent, sent send.Sent) (*inbox.Delivery, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, errNoReply)
		defer cancel()
	}
	line := newProgressLine(a)
	d, err := send.Await(ctx, a.known, agent, sent, func(p send.Progress) {
		line.show(progressText(p, a.ours()))
	})
	line.end()
	switch {
	case errors.Is(err, errNoReply):
		return nil, &failure{
			status: exitTimeout, hint: "the prompt stays queued: " + a.ours() + " status " + agent.Name,
			err: fmt.Errorf("cannot get a reply from agent %q within %s", agent.Name, hook.Lasting(c.Timeout)),
		}
	case err != nil && ctx.Err() != nil:
		return nil, &failure{
			status: exitError, hint: fmt.Sprintf("the prompt stays queued: %s status %s; %[1]s inbox %[2]s drop %s takes it out", a.ours(), agent.Name, settings.Quote(sent.ID)),
			err: fmt.Errorf("cannot get a reply from agent %q: interrupted", agent.Name),
		}
	}
	return d, err
}

// progressText says where an awaited prompt is.
func progressText(p send.Progress, ours string) string {
	if p.InFlight {
		return fmt.Sprintf("%s works on it for %s", p.Agent.Agent, status.Span(p.Working()))
	}
	if p.Aside {
		return "set aside, it waits for a person: " + ours + " approval"
	}
	text := fmt.Sprintf("queued, %d before it", p.Ahead)
	if p.Ahead == 0 {
		text = "queued, the next one"
	}
	if o, there := p.Obstacle(ours); there {
		text += "; " + o.Text
	} else {
		text += fmt.Sprintf("; %s is %s", p.Agent.Agent, p.Agent.State)
	}
	return text
}

// prompt returns the text to send. It never waits for a person to type one.
func (c sendCmd) prompt(a *app, limit int64) (string, error) {
	text := c.Text
	if text == "-" || text == "" {
		if text == "" && term.IsTerminal(int(a.in.Fd())) {
			return "", usagef(`heartbeat send AGENT "TEXT", or heartbeat send AGENT - < FILE`, "there is no prompt")
		}
		data, err := io.ReadAll(io.LimitReader(a.in, limit+1))
		if err != nil {
			return "", fmt.Errorf("cannot read the prompt from stdin: %w", err)
		}
		text = strings.TrimRight(string(config.Decoded(data)), "\r\n")
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", usagef(`heartbeat send AGENT "TEXT", or heartbeat send AGENT - < FILE`, "the prompt is blank")
	case int64(len(text)) > limit:
		return "", &failure{
			status: exitError, hint: "put the text into a file and send its name, or raise max-entry",
			err: fmt.Errorf("cannot queue the prompt: %w: over max-entry (%d bytes)", inbox.ErrTooLarge, limit),
		}
	case !utf8.ValidString(text):
		return "", errors.New("cannot queue the prompt: it is not valid UTF-8")
	}
	return text, nil
}

// waitsText says why a prompt waits.
func waitsText(p *page, t status.Trouble) {
	lead := "It waits: "
	t.Text = strings.TrimPrefix(t.Text, "waiting: ")
	if rest, twice := strings.CutPrefix(t.Text, "waits "); twice {
		lead, t.Text = "It waits ", rest
	}
	troubleText(p, 0, lead, t)
}

func (s sent) text(p *page) {
	if s.Delivery != nil {
		p.whole("", s.Delivery.Reply)
		return
	}
	if s.Differs {
		return // the error says it
	}
	if s.Duplicate {
		when := ""
		if !s.At.IsZero() {
			when = "; it is sent at " + s.At.Format(whenForm)
		}
		p.saidf("already accepted: %s%s", s.ID, when)
		return
	}
	if !s.At.IsZero() {
		s.laterText(p)
		return
	}
	if s.Urgent {
		p.printf("queued as urgent for %s: %s\n", s.Agent, s.ID)
	} else {
		p.printf("queued for %s: %s\n", s.Agent, s.ID)
	}
	if s.ReplyTo != "" {
		p.printf("the reply goes to %s\n", s.ReplyTo)
	}
	if o := s.Obstacle; o != nil {
		waitsText(p, *o)
	}
}
