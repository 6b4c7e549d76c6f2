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
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
	"heartbeat/ptyrun"
	"heartbeat/ptyrun/attach"
)

// lockWait is how long the shim waits for the hook lock, and for the session lock:
// hooks probe it, and a shim whose scheduler was killed holds it until its session
// is gone, which takes the grace longer.
const lockWait = 5 * time.Second

// lockAgain is how long it waits for the hook lock after it failed to get it.
const lockAgain = 100 * time.Millisecond

// maxOrder limits an Order's line: of an answer to a wish, what that holds of a prompt.
const maxOrder = 16 << 20

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
		out:    json.NewEncoder(stdout),
		orders: make(chan Order, 8),
		wishes: newWishes(),
		bill:   bill{written: make(chan Billed, 1)},
	}
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
	out    *json.Encoder
	orders chan Order // closed when the orchestrator is gone

	queue *inbox.Queue
	term  terminal

	deaf deaf // to our hooks
	// wasHooked is true if our hooks were in the agent's settings at the start.
	wasHooked bool
	stops     handover.Stops // how far they were read
	live      *hook.Live
	hooks     hooks
	record    *hook.Record         // of live, with what is owed; it is replaced, not changed
	saved     *hook.Record         // of live, as it was taken last
	owed      []func(*hook.Record) // changes that could not be saved yet
	mended    time.Time            // when it was last tried to
	unshown   bool                 // session.json was not as it should be then
	seen      sight                // since when things are as they are
	asked     time.Time            // when it was asked to yield; zero: it was not
	people    people               // those who have joined
	ground    ground               // what the session depends on
	adrift    bool                 // the ground is gone: nothing is written there
	// shut is true while the last attempt to get the hook lock failed.
	shut       bool
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
		default:
			s.orders <- o
		}
	}
}

// run holds the session lock for the life of the session.
func (s *shim) run(ctx context.Context) (*Outcome, error) {
	waiting, cancel := context.WithTimeout(ctx, lockWait+s.spec.Grace)
	defer cancel()
	var err error
	s.queue, err = inbox.Open(s.place())
	if err != nil {
		return nil, err
	}
	defer s.queue.Close()
	unlock, err := s.queue.LockSession(waiting)
	if err != nil {
		return nil, fmt.Errorf("cannot start a session in %q: another one holds it: %w", s.spec.Dir, err)
	}
	defer unlock()
	s.failed.log = s.log
	s.sweepFormer(ctx)
	s.ground.Ground, err = StandOn(append(Grounds(s.spec.Dir, s.spec.Home, s.spec.Inbox), inbox.Beside(s.spec.Inbox, inbox.SessionLock))...)
	if err != nil {
		return nil, fmt.Errorf("cannot start a session in %q: %w", s.spec.Dir, err)
	}

	prompt, err := s.prepare(ctx)
	if errors.Is(err, inbox.ErrEmpty) {
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

// place is where the session's queue is.
func (s *shim) place() inbox.Place {
	return inbox.Place{Inbox: s.spec.Inbox, Home: s.spec.Home, Dir: s.spec.Dir, MaxEntry: s.spec.Policy.MaxEntry}
}

// lastTold is what the client has told our status line last, or nil.
func (s *shim) lastTold() *client.StatusLine {
	if s.live == nil {
		return nil
	}
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

// prepare writes the session's record and offers the first entry. It returns the
// prompt argument.
func (s *shim) prepare(ctx context.Context) (string, error) {
	held, err := s.lockHooks(ctx)
	if err != nil {
		return "", err
	}
	defer held.Unlock()
	f, err := held.InFlight()
	if err != nil {
		return "", err
	}
	s.live = hook.NewLive(s.newRecord(time.Now()), s.spec.Home, s.spec.Token, s.place())
	s.live.Grant = s.wishes.grant
	if s.spec.Resume != "" {
		s.stops.Path, s.stops.Offset = s.conversation(s.spec.Resume)
		s.meters.course.Path, s.meters.course.Offset = s.stops.Path, s.stops.Offset
	}
	session := s.live.Under(held)
	prompt, err := s.begin(session, f)
	if err != nil {
		return "", err
	}
	err = session.Save()
	s.reload()
	if err != nil {
		return "", errors.Join(err, withdraw(session))
	}
	s.keepTalk(time.Now())
	return prompt, nil
}

// begin gives the session what it begins with, and returns the prompt argument.
func (s *shim) begin(session *hook.Session, f *inbox.InFlight) (string, error) {
	switch {
	case f == nil:
	case f.State == inbox.Unproven:
		return s.iterate(session, f)
	case f.DeliveryID == s.spec.GoOn:
		return handover.GoOnPrompt, s.goOn(session)
	default:
		return "", fmt.Errorf("cannot start a session in %q: entry %s is in flight and was not recovered", s.spec.Dir, f.DeliveryID)
	}
	entry, err := session.Next()
	if err != nil {
		return "", err
	}
	if s.spec.KickoffText != "" {
		return s.spec.KickoffText, nil
	}
	return s.offerFirst(session, entry)
}

// goOn takes over the entry in flight in which another session was interrupted.
func (s *shim) goOn(session *hook.Session) error {
	o := inbox.Offering{Session: s.spec.Session}
	o.Transcript, o.TranscriptOffset = s.conversation(s.spec.Resume)
	_, err := session.Rebind(s.spec.GoOn, o)
	return err
}

// withdraw takes back the offer that the session was to start with: an entry that
// it was to continue stays in flight.
func withdraw(session *hook.Session) error {
	if f, err := session.Peek(); err == nil && f != nil && (f.Via == inbox.ViaResume || f.State == inbox.Unproven) {
		return nil
	}
	err := session.Withdraw()
	if errors.Is(err, inbox.ErrNothingInFlight) {
		return nil
	}
	return err
}

// offerFirst offers the first entry with the prompt argument, if it fits.
func (s *shim) offerFirst(session *hook.Session, entry *inbox.Entry) (string, error) {
	if !client.Claude.Carries(entry.Prompt) {
		return laterText, nil
	}
	flight, err := session.Offer(entry, s.atStart())
	if err != nil {
		return "", err
	}
	return handover.KickoffPrompt(handover.PromptFor(flight.Given())), nil
}

// iterate offers the entry in flight, whose check has not passed, with the prompt
// argument, if it fits. Otherwise the first Stop hands it over.
func (s *shim) iterate(session *hook.Session, f *inbox.InFlight) (string, error) {
	if s.spec.KickoffText != "" {
		return s.spec.KickoffText, nil
	}
	if !handover.FitsArgument(f.Given()) {
		return laterText, nil
	}
	_, flight, err := session.Reoffer(s.atStart())
	if err != nil {
		return "", err
	}
	return handover.KickoffPrompt(handover.PromptFor(flight.Given())), nil
}

// atStart is how an entry is offered with the prompt argument.
func (s *shim) atStart() inbox.Offering {
	offering := inbox.Offering{Via: inbox.ViaKickoff, Session: s.spec.Session}
	if s.spec.Resume != "" {
		// What it contains already is no sign of what follows.
		offering.Transcript, offering.TranscriptOffset = s.conversation(s.spec.Resume)
	}
	return offering
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
	held, err := s.lockHooks(ctx)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	defer held.Unlock()
	session := s.live.Under(held)
	err = withdraw(session)
	session.Record.End(hook.EndExited, cause.Error(), time.Now())
	session.Record.Phase, session.Record.EndedAt, session.Record.ExitCode = hook.Ended, time.Now(), 127
	err = errors.Join(err, session.Save(), s.dropLeftover())
	return neverRan(cause), err
}

// neverRan returns the outcome of a session whose client could not be started.
func neverRan(cause error) *Outcome {
	return &Outcome{Why: hook.EndExited, ExitCode: 127, Detail: cause.Error(), NoRoom: NoRoom(cause), DiskFull: DiskFull(cause)}
}
