package fleetfile

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator"
)

// rig is a run that takes down which versions it was given.
type rig struct {
	mu     sync.Mutex
	ran    []string
	failed []error
	used   []string
}

func (r *rig) Reload(f *config.Fleet) (*orchestrator.Plan, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.Name == "refused" {
		return nil, errors.New("it has another name")
	}
	r.ran = append(r.ran, f.Name)
	return &orchestrator.Plan{}, nil
}

// Compare knows of a version only whether it is the one that runs.
func (r *rig) Compare(f *config.Fleet) *orchestrator.Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ran) > 0 && r.ran[len(r.ran)-1] == f.Name {
		return &orchestrator.Plan{}
	}
	return &orchestrator.Plan{Changed: []string{f.Name}}
}

func (r *rig) ReloadFailed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, err)
}

// failures returns how many loads have failed.
func (r *rig) failures() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failed)
}

func (*rig) Reloading() {}

func (*rig) Ready() {}

func (r *rig) file(load func() (*config.Fleet, *config.Inputs, error)) *File {
	_, inputs, _ := config.LoadInputs("/nowhere", nil)
	return New(Options{
		Load: load, Look: load, Inputs: inputs, Scheduler: r, Manager: r, Log: slog.New(slog.DiscardHandler),
		Used: func(f *config.Fleet, _ *orchestrator.Plan) { r.used = append(r.used, f.Name) },
	})
}

// With SIGHUP and --watch-config at once, the file could be read, changed, read
// again and run, and then the older version was run.
func TestTheVersionThatWasReadLastRuns(t *testing.T) {
	t.Parallel()
	var r rig
	var version atomic.Int64
	f := r.file(func() (*config.Fleet, *config.Inputs, error) {
		read := version.Add(1)
		for range 20 {
			runtime.Gosched() // and meanwhile somebody else asks
		}
		return &config.Fleet{Name: strconv.FormatInt(read, 10)}, nil, nil
	})
	const asked = 200
	var all sync.WaitGroup
	for range asked {
		all.Go(func() {
			if _, err := f.Reload(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i, name := range r.ran {
		if name != strconv.Itoa(i+1) || r.used[i] != name {
			t.Fatalf("version %s was run, and %s kept, as number %d of %d", name, r.used[i], i+1, asked)
		}
	}
}

func TestWhatCannotBeUsedIsToldOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fleet  *config.Fleet
		err    error
		failed int
	}{
		"a file with problems":        {nil, errors.New("no YAML"), 1},
		"one that the run cannot use": {&config.Fleet{Name: "refused"}, nil, 0}, // the run tells
	} {
		var r rig
		f := r.file(func() (*config.Fleet, *config.Inputs, error) { return c.fleet, nil, c.err })
		if plan, err := f.Reload(); plan != nil || err == nil || len(r.failed) != c.failed || len(r.used) != 0 {
			t.Errorf("%s: %v, %v; failed %v, used %v", name, plan, err, r.failed, r.used)
		}
	}
}

// A file that changes is loaded when it has not changed for a second, and a
// broken one again when it was mended.
func TestWatch(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "heartbeat.yaml")
	size := 0
	write := func(text string) {
		t.Helper()
		size++ // what it looks like changes, whatever the file system's clock says
		if err := os.WriteFile(path, append([]byte(text), make([]byte, size)...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("#")
	synctest.Test(t, func(t *testing.T) {
		var r rig
		f := r.file(func() (*config.Fleet, *config.Inputs, error) {
			_, inputs, err := config.LoadInputs(path, nil)
			return &config.Fleet{Name: "next"}, inputs, err
		})
		_, f.opt.Inputs, _ = config.LoadInputs(path, nil)
		f.inputs.Store(f.opt.Inputs)
		go f.Watch(t.Context())
		time.Sleep(10 * lookEvery)
		write("##")
		time.Sleep(lookEvery / 2)
		write("###")
		time.Sleep(lookEvery)
		if n := r.failures(); n != 0 {
			t.Errorf("it was loaded %d times while it changed", n)
		}
		time.Sleep(10 * lookEvery)
		if n := r.failures(); n != 1 {
			t.Errorf("%d loads of one change", n)
		}
		write("####")
		time.Sleep(10 * lookEvery)
		if n := r.failures(); n != 2 {
			t.Errorf("%d loads of two changes", n)
		}
	})
}
