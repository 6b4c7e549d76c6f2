package main

import (
	"context"
	"runtime"
	"runtime/debug"
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

func (v version) text(p *page) {
	p.printf("heartbeat %s", v.Version)
	if v.Revision != "" {
		p.printf(" (%.12s", v.Revision)
		if v.Modified {
			p.printf(" with changes")
		}
		p.printf(")")
	}
	p.printf(" %s %s\n", v.Go, v.Platform)
}
