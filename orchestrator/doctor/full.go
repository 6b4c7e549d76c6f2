package doctor

import (
	"os"
	"slices"
	"syscall"

	"heartbeat/config"
)

// Full returns the findings about file systems that are full: those of the state
// directory and of the agents' directories, each once. It is cheap, but it waits where
// a file system does not answer.
func Full(agents []*config.Agent, stateDir string) (found []Finding) {
	seen := map[uint64]bool{}
	look := func(dir string) {
		info, err := os.Stat(dir)
		if err != nil {
			return // others say that it is missing
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			if device := uint64(st.Dev); seen[device] { //nolint:unconvert // 32 bits on other systems
				return
			} else {
				seen[device] = true
			}
		}
		found = append(found, slices.DeleteFunc(ofVolume(volumeOf(dir)), func(f Finding) bool { return !IsFull(f) })...)
	}
	look(stateDir)
	for _, a := range agents {
		look(a.Dir)
	}
	return found
}

// IsFull reports whether a finding is that a file system is full.
func IsFull(f Finding) bool {
	return f.Severity == Error && (f.Code == diskSpace || f.Code == diskInodes)
}
