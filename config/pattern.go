package config

import (
	"regexp"
	"sync"
)

// pattern returns a regular expression that is compiled when it is first asked for:
// every command starts with this package, and most need few of its patterns.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
