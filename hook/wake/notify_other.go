//go:build !linux

package wake

// notify is not available here: the caller polls.
func notify(...string) (changed <-chan struct{}, stop func()) { return nil, func() {} }
