package orchestrator

import "errors"

// withHint is an error with what to do, where it says so.
func withHint(err error) string {
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return err.Error() + "; " + h.Hint()
	}
	return err.Error()
}
