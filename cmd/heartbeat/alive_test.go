package main

import (
	"slices"
	"strings"
	"testing"
)

// What follows alive is text, whatever it looks like: sessions may run it with any
// words, and a flag that acted would be another command.
func TestAllThatFollowsAliveIsText(t *testing.T) {
	t.Parallel()
	for _, tt := range [][2]string{
		{"alive", "alive"},
		{"alive half", "alive -- half"},
		{"alive --host evil", "alive -- --host evil"},
		{"alive -f other.yaml -o json", "alive -- -f other.yaml -o json"},
		{"alive -- --host evil", "alive -- --host evil"},
		{"alive --help", "alive --help"},
		{"send alive --host x", "send alive --host x"},
	} {
		if got := strings.Join(asText(strings.Fields(tt[0])), " "); got != tt[1] {
			t.Errorf("%s: %s, want %s", tt[0], got, tt[1])
		}
	}
	w := newWorld(t)
	for _, args := range [][]string{{"alive"}, {"alive", "--host", "-oProxyCommand=false"}, {"alive", "-o", "json"}} {
		o := w.run(args...)
		if o.status != exitNotRunning || o.stdout != "" || !strings.Contains(o.stderr, "not inside a live session") {
			t.Errorf("%q outside of a session: %+v", args, o)
		}
	}
	if o := w.run("-o", "json", "alive", "x"); o.status != exitNotRunning || !strings.Contains(o.stdout, `"code":"not-running"`) && !strings.Contains(o.stdout, `"code": "not-running"`) {
		t.Errorf("as JSON: %+v", o)
	}
	if o := w.run("alive", "--help"); o.status != 0 || !slices.ContainsFunc(strings.Split(o.stdout, "\n"), func(l string) bool { return strings.Contains(l, "Examples") }) {
		t.Errorf("--help: %+v", o)
	}
}
