package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/ask"
	"heartbeat/hook/durable"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/person"
	"heartbeat/orchestrator/store"
)

type approvalCmd struct {
	Action   string   `arg:"" optional:"" enum:"list,show,approve,reject,ask," default:"list" help:"list, show, approve, reject or ask (list)."`
	Words    []string `arg:"" optional:"" name:"id" help:"The requests; with ask, the question." complete:"approval"`
	Note     string   `placeholder:"TEXT" help:"With approve or reject: what the agent is told beside it, 4,000 bytes at most."`
	Category string   `placeholder:"KIND" help:"With ask: read, write, execute, destroy, network or auth." complete:"read,write,execute,destroy,network,auth"`
	Payload  string   `placeholder:"FILE" help:"With ask: a text that the person is shown, such as a diff." complete:"file"`
	All      bool     `help:"With list: also those that have an answer."`
	tokenFlag
}

// Help implements kong's HelpProvider.
func (approvalCmd) Help() string {
	return `Requests of agents that wait for a person's yes or no. ask is for an agent's
session: it files the question and returns at once, and the answer is the agent's
next prompt. Until then the agent gets no other prompt, and has no session. Only an
explicit yes is one; what nobody answers within 7 days is rejected.

An agent's session can ask and look; only a person can answer. A rule of
approvals: in the file may answer by itself, and with by: page a person needs a
token: heartbeat help approvals.

Examples:

    heartbeat approval
    heartbeat approval show 4f1c02d3
    heartbeat approval approve 4f1c02d3
    heartbeat approval reject 4f1c02d3 --note "not before Monday"
    pass show heartbeat | heartbeat approval approve 4f1c02d3 --token-file -
    heartbeat approval list --all
    heartbeat approval ask "Deploy to production?" --category execute
    heartbeat approval ask "Drop table t?" --category destroy --payload p.sql`
}

// act implements personal.
func (c approvalCmd) act() string {
	if c.Action == "approve" || c.Action == "reject" {
		return c.Action + " a request"
	}
	return ""
}

func (c approvalCmd) run(ctx context.Context, a *app) (result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Action == "ask" {
		return c.ask()
	}
	f, client, err := a.running()
	if err != nil {
		return nil, err
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	if c.act() != "" && adopt.Waits(dir) { // what was asked under an earlier version stands in files
		if err := adopt.Use(ctx, dir, func(*store.Store) error { return nil }); err != nil {
			return nil, err
		}
	}
	if err := settleStopped(ctx, f, dir); err != nil {
		a.warn(err.Error())
	}
	switch c.Action {
	case "approve", "reject":
		return c.answer(ctx, a, f, client, dir)
	case "show":
		return c.show(ctx, dir, a.ours())
	}
	return c.list(ctx, dir, a.ours())
}

// settleStopped withdraws what nobody needs where no scheduler does: its requests would wait
// for days. It does so for people, and by the file whose fleet it is.
func settleStopped(ctx context.Context, f *config.Fleet, stateDir string) error {
	run, err := runtimeDir(f)
	if err != nil || control.Answers(run) || owner.CheckName(f) != nil || person.Check(os.Getpid(), "") != nil {
		return err
	}
	err = consent.Settle(ctx, f, stateDir, nil)
	if _, held := errors.AsType[*store.HeldError](err); held {
		return nil // the run that has begun does it
	}
	return err
}

// withdraw withdraws what nobody needs since a person has acted: here, or by the run that has the
// fleet, but not those agents.
func (a *app) withdraw(ctx context.Context, f *config.Fleet, stateDir string, w consent.Withdrawal) error {
	if owner.CheckName(f) != nil || person.Check(os.Getpid(), "") != nil {
		return nil
	}
	err := consent.Settle(ctx, f, stateDir, w.Gone)
	if _, held := errors.AsType[*store.HeldError](err); !held {
		return err
	}
	client, err := a.clientOf(f)
	if err != nil {
		return err
	}
	_, err = toRunOrNext(ctx, a, func(ctx context.Context) (done struct{}, err error) {
		return done, client.Withdraw(ctx, w)
	}, func() (done struct{}, err error) {
		return done, consent.Settle(ctx, f, stateDir, w.Gone)
	})
	return err
}

// check refuses flags that do not belong to the action.
func (c approvalCmd) check() error {
	answers, asks := c.Action == "approve" || c.Action == "reject", c.Action == "ask"
	usage := "heartbeat approval --help"
	switch {
	case c.Note != "" && !answers:
		return usagef(usage, "--note goes with approve or reject")
	case asks && approval.Length(strings.Join(c.Words, " ")) > approval.MaxQuestion:
		return usagef("put the rest into a file, and give it with --payload", "the question has %d bytes, and a person is shown %d at most", approval.Length(strings.Join(c.Words, " ")), approval.MaxQuestion)
	case (c.Category != "" || c.Payload != "") && !asks:
		return usagef(usage, "--category and --payload go with ask")
	case c.TokenFile != "" && !answers:
		return usagef(usage, "--token-file goes with approve or reject")
	case c.All && c.Action != "list":
		return usagef(usage, "--all goes with list")
	case asks && strings.TrimSpace(strings.Join(c.Words, " ")) == "":
		return usagef(`heartbeat approval ask "Deploy?"`, "ask needs a question")
	case c.Category != "" && !slices.Contains(config.ApprovalCategories, c.Category):
		return usagef(usage, "%q is not a category: it must be one of %s", c.Category, strings.Join(config.ApprovalCategories, ", "))
	case (answers || c.Action == "show") && len(c.Words) == 0:
		return usagef("heartbeat approval "+c.Action+" ID", "%s needs an id", c.Action)
	case c.Action == "list" && len(c.Words) > 0:
		return usagef(usage, "list takes no ids")
	}
	return nil
}

// requests are some that agents have made.
type requests struct {
	Approvals []approval.Request `json:"approvals"`
	whole     bool
	ours      string
}

func (c approvalCmd) list(ctx context.Context, stateDir, ours string) (result, error) {
	all, err := store.Ask(ctx, stateDir, func(v *store.View) (all []approval.Request, err error) {
		if c.All {
			all, err = approval.Done(v)
		}
		if err != nil {
			return nil, err
		}
		waiting, err := approval.Waiting(v)
		return append(all, waiting...), err
	})
	if err != nil {
		return nil, err
	}
	return requests{Approvals: all, ours: ours}, nil
}

func (c approvalCmd) show(ctx context.Context, stateDir, ours string) (result, error) {
	found := requests{whole: true, ours: ours}
	for _, id := range c.Words {
		r, err := findRequest(ctx, stateDir, id)
		if err != nil {
			return nil, unknownRequest("show", id, err)
		}
		found.Approvals = append(found.Approvals, r)
	}
	return found, nil
}

// findRequest returns a request; the error matches approval.ErrNone, also where the fleet has no store.
func findRequest(ctx context.Context, stateDir, id string) (approval.Request, error) {
	r, err := store.Ask(ctx, stateDir, func(v *store.View) (approval.Request, error) { return approval.Find(v, id) })
	if err == nil && r.ID == "" {
		err = approval.ErrNone
	}
	return r, err
}

func unknownRequest(what, id string, err error) error {
	if errors.Is(err, approval.ErrNone) {
		return &failure{exitError, "heartbeat approval lists those that wait, with --all also the others", fmt.Errorf("cannot %s %q: %w", what, id, approval.ErrNone)}
	}
	return err
}

// answered are requests that have their answer now.
type answeredRequests struct {
	Approvals []approval.Request `json:"approvals"`
	// Running is false where no scheduler runs the fleet: the next run tells the agent.
	Running bool `json:"running"`
}

func (c approvalCmd) answer(ctx context.Context, a *app, f *config.Fleet, client *control.Client, stateDir string) (result, error) {
	done, said, token := answeredRequests{Approvals: []approval.Request{}, Running: true}, approval.Rejected, ""
	if c.Action == "approve" {
		said = approval.Approved
	}
	for _, id := range c.Words {
		asked, err := findRequest(ctx, stateDir, id)
		if err != nil {
			return done, unknownRequest(c.Action, id, err)
		}
		if token == "" && (c.TokenFile != "" || consent.NeedsToken(f, asked)) {
			if token, err = c.token(a); err != nil {
				return done, fmt.Errorf("cannot %s %q: %w", c.Action, id, err)
			}
		}
		ask := func(ctx context.Context) (approval.Request, error) {
			return client.Answer(ctx, id, said == approval.Approved, c.Note, token)
		}
		r, err := toRunOrNext(ctx, a, ask, func() (approval.Request, error) {
			r, err := answerStopped(ctx, f, stateDir, asked, approval.ByPerson(said, c.Note), token)
			done.Running = done.Running && err != nil
			return r, err
		})
		if err != nil {
			return done, err
		}
		done.Approvals = append(done.Approvals, r)
	}
	return done, nil
}

// answerStopped answers a request of a fleet that no run has.
func answerStopped(ctx context.Context, f *config.Fleet, stateDir string, asked approval.Request, says approval.Answer, token string) (r approval.Request, err error) {
	err = adopt.Use(ctx, stateDir, func(s *store.Store) error {
		if consent.NeedsToken(f, asked) {
			by := ""
			k, err := access.Open(ctx, s, nil)
			if err == nil {
				by, err = provenBy(ctx, k, token)
			}
			if err != nil {
				return fmt.Errorf("cannot answer %q: %w", asked.ID, err)
			}
			says = says.Named(by)
		}
		return s.Write(ctx, func(c *store.Change) error {
			r, err = consent.Answer(c, asked.ID, says, time.Now())
			return err
		})
	})
	return r, err
}

func (d answeredRequests) text(p *page) {
	for _, r := range d.Approvals {
		p.saidf("%s of %s: %s", r.ID, r.Agent, r.Answered())
	}
	if !d.Running && len(d.Approvals) > 0 {
		p.saidf("No scheduler runs the fleet; the next run tells the agent.")
	}
}

// asked is what has become of an agent's own request.
type askedRequest struct {
	approval.Request
}

func (c approvalCmd) ask() (result, error) {
	r := approval.Request{Question: foreign.Text(strings.Join(c.Words, " ")), Category: c.Category}
	if c.Payload != "" {
		data, err := durable.Read(c.Payload, approval.MaxPayload)
		switch {
		case errors.Is(err, durable.ErrTooLarge):
			return nil, usagef("give the part of it that the person has to see", "--payload %s: it is larger than %d KiB", c.Payload, approval.MaxPayload>>10)
		case err != nil:
			return nil, fmt.Errorf("cannot read --payload: %w", err)
		}
		r.Payload = foreign.Text(data)
	}
	var asked approval.Request
	err := want(wish{Ask: &r}, &asked)
	if errors.Is(err, ask.ErrNoSession) {
		return nil, &failure{
			status: exitNotRunning, err: fmt.Errorf("cannot ask for an approval: %w", err),
			hint: "it is for the tools and scripts of an agent's session: heartbeat approval --help",
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot ask for an approval: %w", err)
	}
	return askedRequest{asked}, nil
}

func (r askedRequest) text(p *page) {
	if r.Waits() {
		p.saidf("asked (%s). End your turn now: the answer is your next prompt. It is a no until a person says yes.", r.ID)
		return
	}
	p.saidf("%s", r.Answered())
}

func (r requests) text(p *page) {
	switch {
	case len(r.Approvals) == 0:
		p.printf("nothing waits for approval\n")
	case r.whole:
		for i, q := range r.Approvals {
			if i > 0 {
				p.printf("\n")
			}
			wholeRequest(p, q, r.ours)
		}
	default:
		var rows [][]cell
		for _, q := range r.Approvals {
			rows = append(rows, []cell{{text: q.ID}, {text: q.Agent}, stateOfRequest(p, q), {text: q.At.Local().Format("2006-01-02 15:04")}, {text: strings.Join(q.Words(), ", ")}, {text: q.Question.String()}})
		}
		p.listing([]string{"ID", "AGENT", "STATE", "ASKED", "FOR", "QUESTION"}, rows)
		p.printf("\n")
		p.lines("", r.ours+" approval show ID shows it whole; approve ID and reject ID --note WHY answer it.")
	}
}

func stateOfRequest(p *page, r approval.Request) cell {
	if r.Waits() {
		return cell{string(r.State), p.yellow}
	}
	return cell{text: string(r.State)}
}

// wholeRequest prints a request in full, and what to type.
func wholeRequest(p *page, r approval.Request, ours string) {
	p.printf("id:       %s\nagent:    %s\nasked:    %s\n", r.ID, r.Agent, r.At.Local().Format(time.RFC3339))
	if words := r.Words(); len(words) > 0 {
		p.printf("for:      %s\n", strings.Join(words, ", "))
	}
	if r.Entry != "" {
		p.printf("entry:    %s\n", r.Entry)
	}
	if r.Waits() {
		p.printf("answer:   none yet; rejected automatically on %s\n", r.Until.Local().Format(time.RFC3339))
	} else {
		p.printf("answer:   %s, %s\n", r.Answered(), r.AnsweredAt.Local().Format(time.RFC3339))
	}
	p.printf("\n")
	p.whole("    ", r.Question.Raw())
	if r.Payload != "" {
		p.printf("\npayload:\n\n")
		p.whole("    ", r.Payload.Raw())
	}
	if r.Cut {
		p.printf("\n    (the rest was cut off)\n")
	}
	if r.Waits() {
		p.printf("\n    %s approval approve %s\n    %s approval reject %s --note WHY\n", ours, r.ID, ours, r.ID)
	}
}
