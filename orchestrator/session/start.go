package session

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"heartbeat/hook/durable"
	"heartbeat/ptyrun"
)

// start launches the client. What may be killed is on disk before it runs. An error
// means that it did not run: after that nothing here may fail.
func (s *shim) start(ctx context.Context, prompt string) error {
	s.term.group = ptyrun.PlanGroup()
	if err := errors.Join(s.keepLeftover(), s.dropOutcome(), s.keepSettings()); err != nil {
		return err
	}
	s.listen()
	if err := s.answer(ctx); err != nil {
		return err
	}
	s.openBill()
	s.wasHooked = s.spec.HooksIn != "" && s.hooked()
	var err error
	s.term.child, err = ptyrun.Start(context.WithoutCancel(ctx), ptyrun.Config{
		Argv: s.spec.argv(prompt), Dir: s.spec.Dir, Env: s.spec.environ(),
		Cookie: s.spec.Token, Group: s.term.group, Output: s.outputs(), Grace: s.spec.Grace, Limits: s.spec.Limits,
	})
	if err != nil {
		s.closeOutputs("the session could not be started")
		s.answered()
		return err
	}
	if err := s.term.child.Unlimited(); err != nil {
		s.log.Warn("the session runs without its resources: "+err.Error(), "hint", ptyrun.Cure(err))
	}
	if s.term.desk != nil {
		s.term.desk.Serve(s.term.child)
	}
	return nil
}

// outputs are where the terminal's output goes.
func (s *shim) outputs() io.Writer {
	s.term.output = newTail(256 << 10)
	s.openDesk()
	logs, err := durable.MakeBelow(s.spec.Dir, filepath.Join(s.spec.Home, "sessions"))
	if err == nil {
		s.term.file, err = ptyrun.NewLog(logs, s.spec.Session, maxLog, s.spec.KeepLogs)
	}
	if err != nil {
		s.log.Warn("cannot log the terminal", "err", err)
		s.term.file = nil
	}
	outputs := []io.Writer{s.term.output}
	if s.term.file != nil {
		outputs = append(outputs, s.term.file)
	}
	if s.term.desk != nil {
		outputs = append(outputs, s.term.desk)
	}
	return io.MultiWriter(outputs...)
}

// closeOutputs closes what outputs opened; those who have joined are told why.
func (s *shim) closeOutputs(why string) {
	if s.term.desk != nil {
		if err := s.term.desk.Close(why); err != nil {
			s.log.Debug("cannot close the session's socket", "err", err)
		}
	}
	if s.term.file != nil {
		if n, err := s.term.file.Missing(); n > 0 {
			s.log.Warn("not all of the terminal's output is in its log", "bytes", n, "err", err)
		}
		_ = s.term.file.Close() // what could not be written was counted
	}
}

// maxLog limits the size of sessions/ID.log.
const maxLog = 16 << 20
