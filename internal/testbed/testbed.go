// Package testbed is what the tests of whole programs stand on: the programs,
// built once for each test binary, and temporary folders in memory.
package testbed

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

// Run runs the tests of a package and returns the exit status. TestMain calls
// it where the test binary is the tests and no other program.
//
// All temporary folders lie in one meanwhile, which is removed at the end. It
// is in memory where the machine has a place for that, because programs that
// sync each step wait for the disk most of the time, and few tests are about
// one. TMPDIR says where else:
//
//	TMPDIR=/var/tmp go test ./...
//
// More tests run at a time than there are processors, unless -parallel says how
// many: they wait for programs and their clocks most of the time.
func Run(m *testing.M) int {
	moreAtOnce()
	parent := os.TempDir()
	if os.Getenv("TMPDIR") == "" && memoryIsFree() {
		parent = memory
		sweep(parent)
	}
	dir, held, err := folder(parent)
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot make a temporary folder: %v\n", err)
		return 1
	}
	defer held.Close()
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	return m.Run()
}

// atOnce is how many tests there are for each processor.
const atOnce = 4

func moreAtOnce() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", strconv.Itoa(atOnce*runtime.GOMAXPROCS(0)))
	}
}

// built are the programs of this process.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// Programs returns a folder that holds heartbeat and heartbeat-stop as users
// build them, with the race detector when the tests have it. It is temporary as
// those of `go run` are: no hook may name what lies in it.
func Programs(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "go-build-heartbeat-"); built.err != nil {
			return
		}
		if built.err = os.Chmod(built.dir, 0o755); built.err != nil { // some tests are another user
			return
		}
		args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", built.dir}
		if Raced {
			args = append(args, "-race")
		}
		args = append(args, "heartbeat/cmd/heartbeat", "heartbeat/cmd/heartbeat-stop")
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatalf("cannot build the programs: %v", built.err)
	}
	return built.dir
}

// Program returns the path of one of them.
func Program(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(Programs(t), name)
}
