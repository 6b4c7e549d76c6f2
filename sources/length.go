package sources

import (
	"cmp"
	"errors"
	"math"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// lengthForm is a Go duration without a sign, with weeks and days in front: 7d, 1d12h, 1w.
var lengthForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:([0-9]+(?:\.[0-9]+)?)w)?(?:([0-9]+(?:\.[0-9]+)?)d)?((?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:h|ms|m|s|us|µs|μs|ns))*)$`)
})

// ErrLength means that a text is no length of time.
var ErrLength = errors.New("is not a duration")

// ParseLength reads a length of time as people write it everywhere here: in Go's form
// without a sign, with w for weeks and d for days of 24 hours. A unit is required. One that
// is too long to count becomes the longest.
func ParseLength(text string) (time.Duration, error) {
	m := lengthForm().FindStringSubmatch(text)
	if m == nil || text == "" {
		return 0, ErrLength
	}
	weeks, _ := strconv.ParseFloat(cmp.Or(m[1], "0"), 64)
	days, _ := strconv.ParseFloat(cmp.Or(m[2], "0"), 64)
	d, err := time.ParseDuration(cmp.Or(m[3], "0s"))
	whole := (7*weeks + days) * float64(24*time.Hour)
	if err != nil || whole+float64(d) > math.MaxInt64/2 {
		return math.MaxInt64, nil
	}
	return d + time.Duration(whole), nil
}
