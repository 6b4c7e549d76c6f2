//go:build !linux

package durable

import "os"

// WritingOf cannot tell it here.
func WritingOf(*os.File) Writing { return WritingUnknown }
