package session

import (
	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/ptyrun"
	"heartbeat/queue"
)

// conversation returns the transcript of a conversation and its present size; "" if
// there is none.
func (s *shim) conversation(id string) (path string, size int64) {
	path, err := handover.FindTranscript(client.Claude.ConfigDir(client.In(s.spec.Env)), id)
	if err != nil {
		s.log.Debug("cannot look for the transcript", "err", err)
	}
	return path, handover.TranscriptSize(path)
}

// untaken reports whether the entry that the session was to begin with demonstrably
// never reached the client: it is still offered, the client ended in order, so that
// everything it wrote is there, and its transcript does not contain the prompt.
// Hooks alone are no proof, because they may not have run.
func (s *shim) untaken(exit ptyrun.Exit) bool {
	if exit.Signal != "" && exit.Signal != "SIGTERM" {
		return false
	}
	g := s.live.InFlight()
	if g == nil || g.State != queue.Offered || g.Handover.Via != queue.ViaKickoff {
		return false
	}
	if g.Handover.Transcript == "" {
		path, err := handover.FindTranscript(client.Claude.ConfigDir(client.In(s.spec.Env)), s.spec.Session)
		if err != nil || path == "" {
			return err == nil
		}
		g.Handover.Transcript = path
	}
	return handover.Arrived(g) == queue.Unseen
}
