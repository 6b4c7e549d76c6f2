package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"heartbeat/config"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/owner"
)

type initCmd struct {
	Full bool `help:"Write all keys, with what they mean and their defaults."`
}

// Help implements kong's HelpProvider.
func (initCmd) Help() string {
	return `Writes a short file that is valid as it is, with one agent; with --full a long one that
has all keys. It never replaces a file.

Examples:

    heartbeat init
    heartbeat init --full -f all-keys.yaml   # to look keys up
    heartbeat init -f fleet/heartbeat.yaml`
}

// initialised is a new file.
type initialised struct {
	File string `json:"file"`
	ours string
}

func (c initCmd) run(_ context.Context, a *app) (result, error) {
	file := cmp.Or(a.File, owner.FileName)
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("cannot write %q: %w", file, err)
	}
	if other := owner.Meant(path); other != "" && owner.Gone(path) {
		if a.File == "" {
			return nil, &failure{
				status: exitError, hint: "heartbeat -f " + settings.Quote(filepath.Base(other)) + " validate checks it; init -f " + owner.FileName + " writes a second file",
				err: fmt.Errorf("cannot write %q: %s is there already", file, filepath.Base(other)),
			}
		}
		a.warn(other + " is there, too: only the one that is named is used")
	}
	text := config.Starter()
	if c.Full {
		text = config.Reference()
	}
	err = writeNew(path, text)
	if errors.Is(err, fs.ErrExist) {
		return nil, &failure{
			status: exitError, hint: a.ours() + " validate checks it; --file FILE names another one",
			err: fmt.Errorf("cannot write %q: it is there already", file),
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write %q: %w", file, err)
	}
	return initialised{path, a.ours()}, nil
}

// writeNew writes a file that does not exist yet.
func writeNew(path string, data []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(data)
	return err
}

func (i initialised) text(p *page) {
	p.printf("wrote %s\n\nNext:\n\n", i.File)
	p.printf("    %s edit        say where your agent works and what wakes it; it is checked\n", i.ours)
	p.printf("    %s apply       set up the agents' directories; --trust: Claude Code asks nothing there\n", i.ours)
	p.printf("    %s doctor      what would keep them from working, and how to fix it\n", i.ours)
	p.printf("    %s run         run the fleet\n", i.ours)
}
