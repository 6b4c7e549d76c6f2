package workspace

import "heartbeat/orchestrator/volume"

// forbidsPrograms reports whether a directory is, or will be, on a file system from
// which nothing can be run.
func forbidsPrograms(dir string) bool {
	v, _, err := volume.Nearest(dir)
	return err == nil && v.NoExec
}
