package testbed

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

// Full has tests that combine many things with many others try all of them
// instead of a sample:
//
//	go test ./cmd/heartbeat ./config ./hook ./hook/handwired ./hook/handwired/files ./hook/inbox ./internal/browser ./internal/crash ./internal/e2e ./orchestrator ./orchestrator/adopt ./orchestrator/probe ./orchestrator/proving ./orchestrator/store ./sources -full -timeout 90m
var Full = flag.Bool("full", false, "try all combinations instead of a sample")

// sampleVariable names the sample: any text. The same text always chooses the same
// combinations and the same random numbers. .ci/run sets it, so that each commit is
// judged by the same tests; otherwise it is the day (UTC).
const sampleVariable = "HEARTBEAT_SAMPLE"

// today is read at the start: a test may fake the time.
var today = time.Now().UTC().Format(time.DateOnly)

func sample() string {
	if name := os.Getenv(sampleVariable); name != "" {
		return name
	}
	return today
}

// Chance returns random numbers for one purpose of a test. When the test fails, it
// says how to repeat it with the same ones.
func Chance(t testing.TB, purpose string) *rand.Rand {
	t.Helper()
	if _, known := repeats.LoadOrStore(t, true); !known {
		t.Cleanup(func() {
			repeats.Delete(t)
			if t.Failed() && !*Full {
				t.Log("repeat it with the same sample: " + repeat(sample(), t.Name()))
			}
		})
	}
	return chance(sample(), t.Name(), purpose)
}

// repeats are the tests that say how to repeat them: testing.TB → true.
var repeats sync.Map

// repeat returns the command that repeats a test.
func repeat(sample, name string) string {
	top, _, _ := strings.Cut(name, "/") // with a subtest SliceOf would try all
	pkg := "PACKAGE"
	if info, ok := debug.ReadBuildInfo(); ok {
		pkg = strings.TrimSuffix(info.Path, ".test")
	}
	return strings.TrimPrefix("CI="+os.Getenv("CI")+" ", "CI= ") + sampleVariable + "=" + sample + " go test " + pkg + " -run '^" + top + "$'"
}

func chance(sample, test, purpose string) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256([]byte(sample + "\x00" + test + "\x00" + purpose))))
}

// Stride is how far apart what a test tries stands, where its sample is every n-th: on
// build machines, which say CI, as .ci/run does. Where a person waits it is every 3n-th.
func Stride(n int) int {
	switch {
	case *Full:
		return 1
	case os.Getenv("CI") == "":
		return 3 * n
	}
	return n
}

// Turn is where a test's sample begins, from 0 to below Stride(n): samples try all
// between them.
func Turn(t testing.TB, n int) int {
	t.Helper()
	return Chance(t, fmt.Sprint("one of ", n)).IntN(Stride(n))
}

// SampleOf is what a test tries of all: every n-th, or as Stride says, but at least one.
// Where -run names a subtest it is all, as that one may be meant.
func SampleOf[T any](t testing.TB, all []T, n int) []T {
	t.Helper()
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return all
	}
	return every(all, Turn(t, min(n, len(all))), Stride(n))
}

func every[T any](all []T, first, n int) (some []T) {
	for i := first % len(all); i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}
