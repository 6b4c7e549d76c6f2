package main

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestCommandLinesNameTheirFleet: each command that is about a fleet gets the -f of the
// one that names it; those that were new did not, and asked another fleet.
func TestCommandLinesNameTheirFleet(t *testing.T) {
	t.Parallel()
	words := regexp.MustCompile(`([a-z])([A-Z])`)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[cli]()) {
		if group := f.Tag.Get("group"); group != "fleet" && group != "queue" || f.Name == "Init" { // which makes one
			continue
		}
		name := strings.ToLower(words.ReplaceAllString(f.Name, "$1-$2"))
		if got := withOurs("heartbeat -f other.yaml", "see heartbeat "+name+"."); got != "see heartbeat -f other.yaml "+name+"." {
			t.Errorf("%s: %q", name, got)
		}
	}
}
