package main

import "testing"

func TestWhatGoRunHasBuilt(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/tmp/go-build3201791031/b001/exe/heartbeat": true, "/usr/local/bin/heartbeat": false, "/home/exe/heartbeat": false, "/tmp/go-build32/b001/heartbeat.test": false,
	} {
		if isGoRun(path) != want {
			t.Errorf("%s: %t", path, !want)
		}
	}
}

// TestCommandLinesNameTheirFleet: each command that is about a fleet gets the -f of the
// one that names it; those that were new did not, and asked another fleet.
func TestCommandLinesNameTheirFleet(t *testing.T) {
	t.Parallel()
	for _, s := range subcommands {
		if s.group != "fleet" && s.group != "queue" || s.name == "init" { // which makes one
			continue
		}
		if got := withOurs("heartbeat -f other.yaml", "see heartbeat "+s.name+"."); got != "see heartbeat -f other.yaml "+s.name+"." {
			t.Errorf("%s: %q", s.name, got)
		}
	}
}
