package session

import (
	"cmp"
	"errors"
	"io/fs"
	"os"

	"heartbeat/hook/client"
	"heartbeat/hook/settings"
)

// Question is what a client asks a person at its start, and what to do so that it
// does not.
type Question struct {
	What string `json:"what"`
	Do   string `json:"do"`
}

// question returns what a dialog of the agent's client asks. What a person is to type
// has the session's own home in it, where that is another one; our command for trust
// needs the client's own file, and is not named where there is none.
func (s *Spec) question(d *client.Dialog) *Question {
	of, known := client.In(s.Env), client.Claude
	typed := known.Typed(known.Program, of, os.Getenv, settings.Quote)
	_, err := os.Stat(known.Settings.Own(of))
	first := d.First != "" && errors.Is(err, fs.ErrNotExist) && !s.StandsIn // which makes its own file when it needs one
	if d.Type != "" && !first {
		return &Question{d.What, cmp.Or(s.Ours, "heartbeat") + " " + d.Type + " " + s.Agent}
	}
	return &Question{d.What, d.Cure(first, typed)}
}
