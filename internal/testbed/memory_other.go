//go:build !linux

package testbed

const memory = ""

// memoryIsFree is false: there is no such folder.
func memoryIsFree() bool { return false }
