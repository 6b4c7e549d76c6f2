package owner

import (
	"os"
	"path/filepath"

	"heartbeat/config"
	"heartbeat/orchestrator/state"
	"heartbeat/orchestrator/store"
)

// Identify gives a fleet that has no `name:` the name under which its state is kept: it may
// have got that by another path of its file.
func Identify(f *config.Fleet) {
	own, err := state.Path(f.Name)
	if f.Named || err != nil || Of(own) == f.Path {
		return
	}
	if dir := stateOf(f, own); dir != "" {
		f.Name = filepath.Base(dir)
	}
}

// stateOf returns the state directory of a fleet without a name: the one that belongs to the
// path of its file, or else to that file by another path, or else the one that it had before
// it was moved. "": none is known. own is the one that it has by its path alone.
func stateOf(f *config.Fleet, own string) string {
	all := append(state.Beside(own), own)
	for _, belongs := range []func(dir string) bool{
		func(dir string) bool { return Of(dir) == f.Path },
		func(dir string) bool { of := Of(dir); return of != "" && isOneFile(of, f) },
	} {
		if dir := latest(all, belongs); dir != "" {
			return dir
		}
	}
	if Of(own) != "" {
		return ""
	}
	return moved(f, own)
}

// latest returns the state directory that was used last, with a store if one has that, of
// those that belong to a file: earlier versions made another one whenever a link led elsewhere.
func latest(all []string, belongs func(dir string) bool) (found string) {
	var last os.FileInfo
	for _, dir := range all {
		if !belongs(dir) {
			continue
		}
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		has, had := store.Exists(dir), last != nil && store.Exists(found)
		if last == nil || has && !had || has == had && info.ModTime().After(last.ModTime()) {
			found, last = dir, info
		}
	}
	return found
}

// moved returns the state directory that the agents' directories name, and that is of no
// other fleet; "" if there is none, or more than one.
func moved(f *config.Fleet, own string) (found string) {
	now := Origin{File: f.Path, StateDir: own}
	for _, a := range f.Agents {
		o := OriginOf(a)
		if o.StateDir == "" || o.StateDir == found || !o.leftBehind(now, a.Name) {
			continue
		}
		if found != "" {
			return ""
		}
		found = o.StateDir
	}
	return found
}
