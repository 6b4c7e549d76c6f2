// Package testbed is what the tests of whole programs stand on: the programs,
// built once for each test binary, and temporary folders in memory.
package testbed

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
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
//
// The collector runs less often than is usual: few tests have much in memory.
func Run(m *testing.M) int {
	AtOnce(atOnce)
	if signal.Ignored(syscall.SIGHUP) { // by nohup; the programs that are tested would ignore it, too
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	debug.SetGCPercent(400)
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
	status := m.Run()
	if err := tell(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot tell what was played: %v\n", err)
		return 1
	}
	return status
}

// atOnce is how many tests there are for each processor, mostAtOnce how many at all: of
// the real client's each has a process of 300 MB.
const atOnce, mostAtOnce = 8, 32

// AtOnce sets how many tests run at once for each processor, unless the person, or an
// earlier call, has said how many.
func AtOnce(each int) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", strconv.Itoa(min(each*runtime.GOMAXPROCS(0), mostAtOnce)))
	}
}

// programs names others to test than those that are built here: the tests of whole programs
// judge by what a person sees, so they judge an older or newer heartbeat, too.
//
//	go test ./internal/crash -programs FOLDER
var programs = flag.String("programs", "", "the folder with heartbeat and heartbeat-stop to test (default: they are built)")

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
		if *programs != "" {
			built.dir, built.err = filepath.Abs(*programs)
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "go-build-heartbeat-"); built.err != nil {
			return
		}
		if built.err = os.Chmod(built.dir, 0o755); built.err != nil { // some tests are another user
			return
		}
		var flags []string
		if Raced {
			flags = []string{"-race"}
		}
		for _, name := range []string{"heartbeat", "heartbeat-stop"} {
			if built.err = Build(filepath.Join(built.dir, name), "heartbeat/cmd/"+name, flags...); built.err != nil {
				return
			}
		}
	})
	if built.err != nil {
		t.Fatalf("cannot build the programs: %v", built.err)
	}
	return built.dir
}

// Build builds a program of this module into a file. `go run` keeps what it links in
// the build cache, where `go build` links again for each test binary; the program that
// it runs is cp. Of packages tested at the same time one links, and the others wait.
func Build(file, pkg string, flags ...string) error {
	unlock, err := lockModule()
	if err != nil {
		return err
	}
	defer unlock()
	args := append([]string{"run", "-exec=cp", "-buildvcs=false", "-ldflags=-s -w"}, flags...)
	if out, err := exec.Command("go", append(args, pkg, file)...).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// lockModule locks the folder of the module that go finds from here, until unlock.
// Its go.mod is locked by go itself.
func lockModule() (unlock func() error, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for !isFile(filepath.Join(dir, "go.mod")) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return f.Close, syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Program returns the path of one of them.
func Program(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(Programs(t), name)
}
