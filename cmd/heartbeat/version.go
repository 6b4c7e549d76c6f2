package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"heartbeat/orchestrator/status"
)

type versionCmd struct{}

// Help implements kong's HelpProvider.
func (versionCmd) Help() string {
	return `Examples:

    heartbeat version
    heartbeat version -o json`
}

type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"` // of the revision
	Modified bool   `json:"modified"`       // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (versionCmd) run(context.Context, *app) (result, error) { return thisVersion(), nil }

// thisVersion is that of the running binary.
func thisVersion() version {
	v := version{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v version) text(p *page) { p.printf("heartbeat %s %s %s\n", v.words(), v.Go, v.Platform) }

// words are the version and what it was built from.
func (v version) words() string {
	text := v.Version
	if v.Revision != "" {
		text += fmt.Sprintf(" (%.12s", v.Revision)
		if v.Modified {
			text += " with changes"
		}
		text += ")"
	}
	return text
}

// otherProgram says that a run is another version of heartbeat than this program, or another
// build of the same one; "" if it is not, or that cannot be told.
func otherProgram(run status.Run) string {
	switch own := thisVersion().words(); {
	case run.Program == "":
		return "the scheduler is an older heartbeat, which does not say its version; this program is " + own
	case run.Program != own:
		return "the scheduler is heartbeat " + run.Program + "; this program is " + own
	case otherBuild(run.PID):
		return "the scheduler is another build of heartbeat " + own + " than this program"
	}
	return ""
}

// newProgram is what to do about it.
func newProgram(ours string) string {
	return "where the scheduler is the older one, restart it when it suits: " + ours + " stop, then " + ours + " run (or restart its service); prompts wait meanwhile"
}

// otherBuild reports whether a process of ours is built otherwise than this program.
func otherBuild(pid int) bool {
	its, own := fmt.Sprintf("/proc/%d/exe", pid), "/proc/self/exe"
	there, err := os.Stat(its)
	here, wrong := os.Stat(own)
	if err != nil || wrong != nil || os.SameFile(there, here) {
		return false
	}
	if info, err := buildinfo.ReadFile(its); err != nil || info.Path != "heartbeat/cmd/heartbeat" {
		return false // its number is another process's here: it is in a container
	}
	one, err := digest(its)
	two, wrong := digest(own)
	return err == nil && wrong == nil && one != two
}

// digest is the SHA-256 of a running program.
func digest(exe string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(exe)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
