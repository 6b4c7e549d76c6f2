package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"heartbeat/hook/durable"
)

// aliveName is the file in home that has what a session has last said of itself. It
// is not synced: the next one replaces it.
const aliveName = ".alive.json"

// MaxSaid bounds what a session may say of itself, in bytes, and maxSign the file.
const (
	MaxSaid = 200
	maxSign = 16 << 10
)

// Sign is a sign of life that something in a session gives by itself, with words for
// people. The agent can write the file: it tells that somebody says so, and no more.
type Sign struct {
	Session string `json:"session"`
	Text    string `json:"text,omitempty"`
}

// ErrNoSession means that a process does not belong to a live session of ours.
var ErrNoSession = errors.New("this is not inside a live session of heartbeat's")

// SayAlive gives a sign of life of the session that a process belongs to, by its
// environment: what its client runs, or what that has started. A client inside of the
// session's own is none of ours.
func SayAlive(getenv func(string) string, text string) (session string, err error) {
	var f fence
	record, ok := f.passes(getenv)
	if !ok {
		return "", ErrNoSession
	}
	data, err := json.Marshal(Sign{record.Session, Cut(text, MaxSaid)})
	if err == nil {
		err = inHome(f.home, func(home *durable.Folder) error { return home.Put(aliveName, append(data, '\n')) })
	}
	if err != nil {
		return "", fmt.Errorf("cannot give a sign of life: %w", err)
	}
	return record.Session, nil
}

// SignAt is when the last sign of life was given in home, by the file's time; zero:
// none was.
func SignAt(home string) (at time.Time) { return writtenAt(home, aliveName) }

// ReadSign reads the last sign of life in home, or nil, nil.
func ReadSign(home string) (*Sign, error) {
	var data []byte
	err := inHome(home, func(f *durable.Folder) (err error) {
		data, err = f.Read(aliveName, maxSign)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s := new(Sign)
	if err == nil {
		err = json.Unmarshal(data, s)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the sign of life: %w", err)
	}
	s.Text = Cut(s.Text, MaxSaid)
	return s, nil
}

// writtenAt is when a file in home was written last; zero: there is none.
func writtenAt(home, name string) (at time.Time) {
	at, _ = written(home, name)
	return at
}

func written(home, name string) (at time.Time, s durable.Stamp) {
	_ = inHome(home, func(f *durable.Folder) error {
		info, err := f.Stat(name)
		if err == nil {
			at = info.ModTime()
		}
		s = durable.StampOf(info, err)
		return err
	})
	return at, s
}
