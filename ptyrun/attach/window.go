package attach

import (
	"slices"
	"time"
)

// claimLocked makes a guest's size the one that counts.
func (d *Desk) claimLocked(w *watcher, s Size) {
	if w.guest.ReadOnly || !s.valid() {
		return
	}
	w.guest.Size = s
	d.sizes = append(slices.DeleteFunc(d.sizes, func(o *watcher) bool { return o == w }), w)
}

// resizeLocked gives the window the size that counts now.
func (d *Desk) resizeLocked() {
	want := d.cfg.Size
	if n := len(d.sizes); n > 0 {
		want = d.sizes[n-1].guest.Size
	}
	if want == d.size {
		return
	}
	d.size = want
	d.tellLocked(frameOf(frameSize, want))
	if d.nudge == nil {
		d.applyLocked(want)
	} // else the nudge's end applies it
}

func (d *Desk) applyLocked(s Size) {
	if err := d.term.Resize(s.Rows, s.Cols); err != nil {
		d.cfg.Log.Debug("cannot resize the window", "err", err)
	}
}

// repaint makes the program paint the whole window.
func (d *Desk) repaint() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.repaintLocked()
	}
}

// repaintLocked nudges the window. A nudge in progress starts over, so that a guest
// who has just joined sees all of its effect.
func (d *Desk) repaintLocked() {
	d.resizeLocked()
	if d.nudge != nil {
		d.nudge.Stop()
		d.applyLocked(d.size)
	}
	narrow := d.size
	if narrow.Cols--; narrow.Cols < 1 {
		narrow.Cols = 2
	}
	d.applyLocked(narrow)
	var timer *time.Timer
	timer = time.AfterFunc(nudgeTime, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.nudge == timer && !d.closed {
			d.nudge = nil
			d.applyLocked(d.size)
		}
	})
	d.nudge = timer
}
