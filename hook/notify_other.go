//go:build !linux

package hook

// notify has no counterpart here: the caller polls.
func notify(...string) (changed <-chan struct{}, stop func()) { return nil, func() {} }
