package attach

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"heartbeat/ptyrun/screen"
)

// Picture is what a session's terminal shows.
type Picture struct {
	Agent   string   `json:"agent"`
	Session string   `json:"session"`
	Size    Size     `json:"size"`
	Lines   []string `json:"lines"` // from the top, without blank ones at the end
	// Spans are the same rows, with how they look.
	Spans [][]screen.Span `json:"-"`
}

const (
	// settled is how long no output must have arrived before a picture is taken,
	// and unsettled how long output may keep arriving.
	settled   = 150 * time.Millisecond
	unsettled = 1200 * time.Millisecond
	// pace is how often a changing picture is shown.
	pace = 250 * time.Millisecond
)

// Look takes one picture.
func (v *Viewer) Look(ctx context.Context) (Picture, error) {
	var taken Picture
	enough := errors.New("enough")
	err := v.Watch(ctx, func(p Picture) error {
		taken = p
		return enough
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return taken, err
}

// Watch shows a picture once the window has been painted, and then whenever it has
// changed, about four times a second. It ends with show's error, with ctx's, or
// with io.EOF when the session has ended.
func (v *Viewer) Watch(ctx context.Context, show func(Picture) error) error {
	s := screen.New(v.Session.Size.Rows, v.Session.Size.Cols)
	defer s.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := v.events(ctx)
	began, last := time.Now(), time.Now()
	tick := time.NewTicker(settled / 3)
	defer tick.Stop()
	p := Picture{Agent: v.Session.Agent, Session: v.Session.Session, Size: v.Session.Size}
	shown := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e, open := <-events:
			if !open {
				return io.EOF
			}
			last = time.Now()
			if e.Size.valid() {
				p.Size = e.Size
				_ = s.Resize(e.Size.Rows, e.Size.Cols) // a defect of the emulator: the picture stays
			}
			// Garbage that takes too long is skipped, as is a defect of the
			// emulator.
			_ = s.Show(append(e.Past, e.Output...), unsettled)
		case now := <-tick.C:
			painted := now.Sub(began) > nudgeTime+settled && now.Sub(last) > settled || now.Sub(began) > unsettled
			if !painted || now.Sub(shown) < pace || last.Before(shown) {
				continue
			}
			lines := s.Lines()
			if same := !shown.IsZero() && slices.Equal(lines, p.Lines); same {
				continue
			}
			p.Lines, p.Spans, shown = lines, s.Spans(), now
			if err := show(p); err != nil {
				return err
			}
		}
	}
}

// events passes on what Next returns until ctx ends or nothing more comes.
func (v *Viewer) events(ctx context.Context) <-chan Event {
	events := make(chan Event)
	go func() {
		defer close(events)
		for {
			e, err := v.Next()
			if err != nil {
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events
}
