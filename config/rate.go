package config

import (
	"fmt"
	"strconv"
	"time"
)

// rateForm is what a rate looks like: 10/1h.
var rateForm = pattern(`^([0-9]{1,4})/(.+)$`)

// The bounds of a rate: its fires are remembered one by one.
const (
	mostFires  = 1000
	leastSpan  = time.Second
	mostSpan   = 31 * day
	rateSample = "for example 10/1h: at most 10 within any hour"
)

// rate reads how often a trigger may fire.
func (l *loader) rate(t table) Rate {
	p, text, ok := l.figure(t, "rate")
	if !ok {
		return Rate{}
	}
	form := rateForm().FindStringSubmatch(text)
	if form == nil {
		l.problem(p, fmt.Sprintf("%q is not a rate", cut(text)), rateSample)
		return Rate{}
	}
	n, _ := strconv.Atoi(form[1]) // it has the form of one
	within, err := parseDuration(form[2])
	switch {
	case err != nil:
		l.problem(p, err.Error(), rateSample)
	case n < 1 || n > mostFires:
		l.problem(p, form[1]+" is out of range", fmt.Sprintf("1 to %d fires", mostFires))
	case within < leastSpan || within > mostSpan:
		l.problem(p, form[2]+" is out of range", "1s to "+days(mostSpan))
	default:
		return Rate{n, within}
	}
	return Rate{}
}
