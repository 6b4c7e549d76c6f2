//go:build !linux

package watch

import "io/fs"

// inodeChanged returns the modification time: the best that is available here.
func inodeChanged(info fs.FileInfo) int64 { return info.ModTime().UnixNano() }
