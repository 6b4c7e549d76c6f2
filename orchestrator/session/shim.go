package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/hook/handover"
	"heartbeat/ptyrun"
	"heartbeat/ptyrun/attach"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// lockWait is how long the shim waits for the session lock: others probe it, and a shim whose
// scheduler was killed holds it until its session is gone, which takes the grace longer.
const lockWait = 5 * time.Second

// sessionLock is the lock beside the inbox that a live session's shim holds.
const sessionLock = ".session-lock"

// maxOrder limits an Order's line: a prompt of 10 MiB may take six times as much as JSON.
const maxOrder = 64 << 20

// maxSpec limits the Spec's line: an environment is at most 2 MiB (execve(2)).
const maxSpec = 8 << 20

// RunShim runs one session: it reads a Spec and then Orders from stdin, one JSON
// line each, writes Reports to stdout, and returns when the session's whole process
// tree is gone. The error is about the protocol with the caller; how the session
// ended is in the last report. person returns an error for a process that is not a
// person's, by the state directory of the session's fleet.
func RunShim(ctx context.Context, stdin io.Reader, stdout io.Writer, person func(pid int, stateDir string) error, log *slog.Logger) error {
	in := bufio.NewReaderSize(stdin, 64<<10)
	spec, err := readSpec(in)
	if err != nil {
		return err
	}
	s := &shim{
		spec:   spec,
		person: func(pid int) error { return person(pid, spec.StateDir) },
		log:    log.With("agent", spec.Agent, "session", spec.Session),
		out:    &outlet{enc: json.NewEncoder(stdout)},
		orders: make(chan Order, 64),
		wishes: newWishes(),
		bill:   bill{written: make(chan Billed, 1)},
	}
	s.live = hook.NewLive(s.newRecord(time.Now()), spec.Home, spec.Token, s.out.ask)
	go s.readOrders(in)
	outcome, err := s.run(ctx)
	if err != nil {
		outcome = neverRan(err)
	}
	return s.out.Encode(Report{
		At: time.Now(), Phase: hook.Ended, Acknowledged: outcome.Acknowledged, Outcome: outcome, Told: s.lastTold(),
		Spent: s.bill.counter.All(), Answers: s.freshAnswers(),
	})
}

func readSpec(in *bufio.Reader) (Spec, error) {
	var spec Spec
	line, err := readLine(in, maxSpec)
	if err != nil {
		return spec, fmt.Errorf("cannot read the session's specification: %w", err)
	}
	if err := json.Unmarshal(line, &spec); err != nil {
		return spec, fmt.Errorf("cannot read the session's specification: %w", err)
	}
	return spec, nil
}

func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit {
			return nil, errors.New("the line is too long")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// shim is one running session.
type shim struct {
	spec   Spec
	person func(pid int) error
	log    *slog.Logger
	out    *outlet
	orders chan Order // closed when the orchestrator is gone

	term terminal

	deaf deaf // to our hooks
	// wasHooked is true if our hooks were in the agent's settings at the start.
	wasHooked  bool
	stops      handover.Stops // how far they were read
	live       *hook.Live
	hooks      hooks
	record     *hook.Record         // of live, with what is owed; it is replaced, not changed
	saved      *hook.Record         // of live, as it was taken last
	owed       []func(*hook.Record) // changes that could not be saved yet
	mended     time.Time            // when it was last tried to
	unshown    bool                 // session.json was not as it should be then
	seen       sight                // since when things are as they are
	asked      time.Time            // when it was asked to yield; zero: it was not
	people     people               // those who have joined
	ground     ground               // what the session depends on
	adrift     bool                 // the ground is gone: nothing is written there
	failed     complaints
	lastAnswer hook.Answered // that was reported
	bill       bill          // what the session costs
	meters     meters
	servers    servers
	said       Report // the last report
	wishes     *wishes
	talk       Talk // as it was noted last
}

// terminal is where the client runs, and who joins it there.
type terminal struct {
	child  *ptyrun.Child
	output *tail
	file   *ptyrun.Log  // of its output; nil: none
	desk   *attach.Desk // where others join; nil: nowhere
	group  string       // the client's control group, as planned; "": none
}

// meters measure whether the session lives, and what it is at.
type meters struct {
	quiet  quietMeter
	silent time.Time // since when the turn shows no sign of life
	life   lifeMeter
	signs  signs
	course course // of the conversation, by the transcript
	check  checkMeter
}

// readOrders passes on what the orchestrator says; the end of stdin means that it
// died, and closes the channel.
func (s *shim) readOrders(in *bufio.Reader) {
	defer close(s.orders)
	defer s.live.Unanswered()
	for {
		line, err := readLine(in, maxOrder)
		if err != nil {
			return
		}
		var o Order
		switch {
		case json.Unmarshal(line, &o) != nil:
		case o.Granted != nil:
			s.wishes.granted(*o.Granted)
		case o.Billed != nil:
			s.bill.answered(*o.Billed)
		case o.Answer != nil:
			s.live.Answered(*o.Answer)
		case o.Moved:
			s.live.Moved()
		case o.Queued:
			s.live.Queued()
		default:
			s.orders <- o
		}
	}
}

// run holds the session lock for the life of the session.
func (s *shim) run(ctx context.Context) (*Outcome, error) {
	waiting, cancel := context.WithTimeout(ctx, lockWait+s.spec.Grace)
	defer cancel()
	beside, err := durable.OpenBelow(s.spec.Dir, filepath.Dir(s.spec.Inbox))
	if err != nil {
		return nil, err
	}
	defer beside.Close()
	unlock, err := flock.LockIn(waiting, beside, sessionLock)
	if err != nil {
		return nil, fmt.Errorf("cannot start a session in %q: another one holds it: %w", s.spec.Dir, err)
	}
	defer unlock()
	s.failed.log = s.log
	s.sweepFormer(ctx)
	s.ground.Ground, err = StandOn(append(Grounds(s.spec.Dir, s.spec.Home, s.spec.Inbox), filepath.Join(filepath.Dir(s.spec.Inbox), sessionLock))...)
	if err != nil {
		return nil, fmt.Errorf("cannot start a session in %q: %w", s.spec.Dir, err)
	}

	prompt, err := s.prepare(ctx)
	if errors.Is(err, errEmpty) {
		return &Outcome{Why: hook.EndDrained, Detail: "nothing was queued any more"}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx, prompt); err != nil {
		return s.notStarted(ctx, err)
	}
	why := s.follow(ctx)
	return s.finish(ctx, why), nil
}

// lastTold is what the client has told our status line last, or nil.
func (s *shim) lastTold() *client.StatusLine {
	line, _ := s.live.Told()
	return line
}

// sweepFormer ends what is left of a former session of the agent whose shim was
// killed. The scheduler has done so too, but a shim that was just ending then may
// have been killed since; now that we hold the lock, there is none.
func (s *shim) sweepFormer(ctx context.Context) {
	swept, err := SweepLeftovers(ctx, nil, s.spec.StateDir, s.spec.Agent, s.spec.Grace)
	for _, l := range swept {
		s.log.Warn("ended what a former session had left", "former", l.Session)
	}
	if err != nil {
		s.log.Warn("cannot end all that former sessions left", "err", err)
	}
}

// errEmpty means that nothing is queued.
var errEmpty = errors.New("nothing is queued")

// prepare writes the session's record and has the first entry handed over. It returns the prompt
// argument.
func (s *shim) prepare(ctx context.Context) (prompt string, err error) {
	s.live.Grant = s.wishes.grant
	if s.spec.Resume != "" {
		s.stops.Path, s.stops.Offset = s.conversation(s.spec.Resume)
		s.meters.course.Path, s.meters.course.Offset = s.stops.Path, s.stops.Offset
	}
	err = s.hold(ctx, true, func(session *hook.Session) error {
		if prompt, err = s.begin(ctx, session); err != nil {
			return err
		}
		if err := session.Save(); err != nil {
			return errors.Join(err, withdraw(ctx, session))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	s.keepTalk(time.Now())
	return prompt, nil
}

// begin gives the session what it begins with, and returns the prompt argument.
func (s *shim) begin(ctx context.Context, session *hook.Session) (string, error) {
	look := session.Look()
	look.Next = true
	answer, err := request(ctx, session, look)
	g := session.InFlight()
	switch {
	case err != nil && g == nil:
		return "", err
	case g == nil:
	case g.State == queue.Unproven:
		return s.iterate(ctx, session, g)
	case g.Delivery == s.spec.GoOn:
		return handover.GoOnPrompt, s.goOn(ctx, session, g)
	default:
		return "", fmt.Errorf("cannot start a session in %q: entry %s is in flight and was not recovered", s.spec.Dir, g.Delivery)
	}
	switch {
	case !answer.Queued:
		return "", errEmpty
	case s.spec.KickoffText != "":
		return s.spec.KickoffText, nil
	}
	return s.offerFirst(ctx, session)
}

// goOn takes over the entry in flight in which another session was interrupted.
func (s *shim) goOn(ctx context.Context, session *hook.Session, g *queue.Given) error {
	to := queue.Handover{Session: s.spec.Session, Via: queue.ViaResume, At: time.Now()}
	to.Transcript, to.Offset = s.conversation(s.spec.Resume)
	_, err := request(ctx, session, wire.Step{Do: wire.Rebind, At: wire.RefOf(&g.Entry), To: to})
	if g = session.Own(); g != nil {
		session.Works(g)
	}
	return err
}

// withdraw takes back the offer that the session was to start with: an entry that
// it was to continue stays in flight.
func withdraw(ctx context.Context, session *hook.Session) error {
	g := session.Own()
	if g == nil || g.Handover.Via == queue.ViaResume || g.State == queue.Unproven {
		return nil
	}
	_, err := request(ctx, session, wire.Step{Do: wire.Withdraw, At: wire.RefOf(&g.Entry)})
	if err == nil {
		session.Rests()
	}
	return err
}

// offerFirst has the first entry handed over with the prompt argument, if it fits.
func (s *shim) offerFirst(ctx context.Context, session *hook.Session) (string, error) {
	if _, err := request(ctx, session, wire.Step{Do: wire.Offer, To: s.atStart(), Checked: s.spec.Policy.Checked}); err != nil {
		return "", err
	}
	g := session.Own()
	if g == nil {
		return "", errEmpty
	}
	if !client.Claude.Carries(g.Prompt) {
		return laterText, withdraw(ctx, session)
	}
	session.Works(g)
	return handover.KickoffPrompt(handover.PromptFor(g)), nil
}

// iterate has the entry in flight, whose check has not passed, handed over with the prompt argument,
// if it fits. Otherwise the first Stop hands it over.
func (s *shim) iterate(ctx context.Context, session *hook.Session, g *queue.Given) (string, error) {
	if s.spec.KickoffText != "" {
		return s.spec.KickoffText, nil
	}
	if !handover.FitsArgument(g) {
		return laterText, nil
	}
	if _, err := request(ctx, session, wire.Step{Do: wire.Again, At: wire.RefOf(&g.Entry), To: s.atStart(), Checked: s.spec.Policy.Checked}); err != nil {
		return "", err
	}
	if g = session.Own(); g == nil {
		return "", errors.New("its entry is not in flight any more")
	}
	session.Works(g)
	return handover.KickoffPrompt(handover.PromptFor(g)), nil
}

// atStart is how an entry is handed over with the prompt argument.
func (s *shim) atStart() queue.Handover {
	to := queue.Handover{Via: queue.ViaKickoff, Session: s.spec.Session, At: time.Now()}
	if s.spec.Resume != "" {
		// What it contains already is no sign of what follows.
		to.Transcript, to.Offset = s.conversation(s.spec.Resume)
	}
	return to
}

func (s *shim) newRecord(now time.Time) *hook.Record {
	pid := os.Getpid()
	start, _ := ptyrun.StartTimeOf(pid)
	return &hook.Record{
		Version: 1, Terms: s.spec.terms(), TokenHash: hook.TokenHash(s.spec.Token),
		Shim: hook.Process{PID: pid, Start: start}, StartedAt: now, Phase: hook.Starting, Since: now,
	}
}

// notStarted takes the offer back: the client never ran.
func (s *shim) notStarted(ctx context.Context, cause error) (*Outcome, error) {
	err := s.hold(ctx, true, func(session *hook.Session) error {
		err := withdraw(ctx, session)
		session.Record.End(hook.EndExited, cause.Error(), time.Now())
		session.Record.Phase, session.Record.EndedAt, session.Record.ExitCode = hook.Ended, time.Now(), 127
		return errors.Join(err, session.Save(), s.dropLeftover())
	})
	return neverRan(cause), err
}

// neverRan returns the outcome of a session whose client could not be started.
func neverRan(cause error) *Outcome {
	return &Outcome{Why: hook.EndExited, ExitCode: 127, Detail: cause.Error(), NoRoom: NoRoom(cause), DiskFull: DiskFull(cause)}
}
