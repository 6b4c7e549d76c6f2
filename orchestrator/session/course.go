package session

import (
	"path/filepath"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
)

// readEvery is how often the transcript is read at most.
const readEvery = 200 * time.Millisecond

// course is what the transcript tells of the session's turns, read line by line as
// it grows.
type course struct {
	handover.Tape
	readAt   time.Time
	answered bool            // by the model
	refused  *client.Refusal // the last request, if the API has refused it for good
}

// read reads on. Another conversation (/clear) is read from its beginning.
func (c *course) read(path string, now time.Time) {
	if path == "" || now.Sub(c.readAt) < readEvery {
		return
	}
	c.readAt = now
	if filepath.Base(path) != filepath.Base(c.Path) {
		c.Tape = handover.Tape{Path: path}
	}
	c.Read(func(line []byte) {
		if r := client.Claude.Transcript.Refused(line); r != nil {
			c.refused = r
			return
		}
		if is, _, _ := client.Claude.Transcript.Answered(line); is {
			c.answered, c.refused = true, nil
		}
	})
}
