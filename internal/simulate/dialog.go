package simulate

import "time"

// choice is the line of a dialog that was chosen, from 1.
type choice int

const (
	open    choice = 0
	escaped choice = -1
	line1   choice = 1
	line2   choice = 2
)

// dialog is a question on the screen that waits for a person: Enter takes the
// marked line, which the arrows move, a digit takes its line, Esc takes none.
type dialog struct {
	marked int
	chosen choice
	answer chan choice // buffered: gets the choice once
}

func newDialog() *dialog { return &dialog{marked: 1, answer: make(chan choice, 1)} }

// key is called by the loop only.
func (d *dialog) key(k key) {
	if d.chosen != open {
		return
	}
	switch k.kind {
	case keyDown:
		d.marked++
	case keyUp:
		d.marked = max(1, d.marked-1)
	case keyEscape:
		d.chosen = escaped
	case keyEnter:
		d.chosen = choice(d.marked)
	case keyText:
		if len(k.text) == 1 && k.text >= "1" && k.text <= "9" {
			d.chosen = choice(k.text[0] - '0')
		}
	}
	if d.chosen != open {
		d.answer <- d.chosen
	}
}

// openDialog is the dialog that keys go to, nil without one.
func (s *session) openDialog() *dialog {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dialog
}

// ask opens a dialog in the running job; the loop routes keys to it until
// done is called.
func (s *session) ask(text string) (d *dialog, done func()) {
	d = newDialog()
	s.mu.Lock()
	s.dialog = d
	s.mu.Unlock()
	s.show(text)
	return d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dialog = nil
	}
}

// startDialog asks before the session starts: no hook has run, and none will
// if the client ends here. It returns open when the client is to end.
func (l *loop) startDialog(text string) choice {
	l.s.term.tell(text)
	d := newDialog()
	limit := time.NewTimer(l.s.args.maxTime)
	defer limit.Stop()
	for !l.over {
		select {
		case k := <-l.s.term.keys:
			switch {
			case k.kind == keyGone:
				l.end(0, "")
			case k.kind == keyInterrupt:
				l.end(1, "")
			default:
				d.key(k)
			}
			if d.chosen != open {
				return d.chosen
			}
		case sig := <-l.s.signals:
			l.signal(sig)
		case <-limit.C:
			l.end(1, "")
		}
	}
	return open
}
