package testbed

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// playedVariable names the file to which a test binary adds, at its end, what its tests
// have played: .ci/run prints it as a table, and refuses a change that plays less.
const playedVariable = "HEARTBEAT_PLAYED"

// What tests play.
const (
	Kills        = "kills"         // a process is killed, at a system call or at random
	PowerCuts    = "power cuts"    // of a file system, or of one that a test keeps account of
	FailingCalls = "failing calls" // a call fails, or what a machine has comes to its end
	Scenarios    = "scenarios"     // a whole program is led through a story
	Faults       = "faults"        // what a soak does to a fleet
	Plants       = "plants"        // a defect that the judge has to find
)

var played = struct {
	sync.Mutex
	n map[string]int // :: test, tab, what
}{n: map[string]int{}}

// Played counts what a test has played; n of them, of the kind what.
func Played(t testing.TB, what string, n int) {
	top, _, _ := strings.Cut(t.Name(), "/")
	played.Lock()
	defer played.Unlock()
	played.n[top+"\t"+what] += n
}

// tell adds what was played to the file that the environment names.
func tell() error {
	path := os.Getenv(playedVariable)
	if path == "" || len(played.n) == 0 {
		return nil
	}
	pkg := "?"
	if info, ok := debug.ReadBuildInfo(); ok {
		pkg = strings.TrimPrefix(strings.TrimSuffix(info.Path, ".test"), "heartbeat/")
	}
	var lines []string
	for key, n := range played.n {
		lines = append(lines, fmt.Sprintf("%s\t%s\t%d\n", pkg, key, n))
	}
	slices.Sort(lines)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(strings.Join(lines, ""))
	return err
}
