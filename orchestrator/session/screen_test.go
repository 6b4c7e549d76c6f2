package session

import (
	"strings"
	"testing"
)

// tidy is a client that shows a dialog and, told to end, clears its screen.
const tidy = `trap 'printf "\033[2J\033[Hgoodbye"; exit 143' TERM
printf 'Do you trust the files in this folder?'; ` + wrote + `
while :; do sleep 0.05; done`

// TestTheReportShowsTheScreenFromBeforeTheEnd: a client cleans its screen up
// when it is told to end, and the report of a start-up dialog showed that.
func TestTheReportShowsTheScreenFromBeforeTheEnd(t *testing.T) {
	t.Parallel()
	_, o := expire(func() *lab { return newLab(t, "one") }, tidy)
	if o.Why != "start-timeout" || !strings.Contains(o.Screen, "Do you trust") || strings.Contains(o.Screen, "goodbye") {
		t.Errorf("outcome: %+v", o)
	}
	// Of one that ends by itself the last words are what tells why.
	o = newLab(t, "one").run(`printf 'working'; sleep 0.2; printf '\033[2J\033[Hcannot log in'; exit 3`)
	if o.Why != "exited" || o.ExitCode != 3 || !strings.Contains(o.Screen, "cannot log in") || o.Detail != "cannot log in" {
		t.Errorf("outcome: %+v", o)
	}
	// Of one that shows nothing, that is what there is to say.
	_, o = expire(func() *lab { return newLab(t, "one") }, stays)
	if o.Why != "start-timeout" || !strings.HasSuffix(o.Detail, "; its screen is empty: start it there by hand to see why") {
		t.Errorf("outcome: %+v", o)
	}
}
