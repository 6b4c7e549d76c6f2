package config

import (
	"fmt"
	"math"
	"strconv"
)

// Budget is what may be spent in an hour of the clock, in a day, and on one prompt.
type Budget struct{ Hour, Day, Entry Allowance }

// Allowance is how much may be spent; 0 is no limit.
type Allowance struct {
	Turns int64
	// Tokens are those in, out and into the prompt cache, Resent those that were read
	// from it.
	Tokens, Resent int64
	Cost           float64 // US dollars at list price
}

// More than anybody spends is most likely a typo.
const (
	mostTokens = 1_000_000_000_000
	mostCost   = 1e6
	leastCost  = 0.0001
)

// budget reads what may be spent. entry is true where a prompt may have a limit.
func (l *loader) budget(t table, entry bool) Budget {
	var b Budget
	p, ok := t["budget"]
	if !ok {
		return b
	}
	known := keys[sharedBudgetKeySet]()
	if entry {
		known = keys[budgetKeySet]()
	}
	fields, ok := l.table(p, known, func(key string) string {
		switch key {
		case "turns", "tokens", "cost", "resent":
			return fmt.Sprintf("say in which period: day: {%s: …}", key)
		case "entry":
			return "a prompt's limit is the agent's: set it below the agent or in defaults"
		case "prompt":
			return "did you mean entry?"
		}
		return ""
	})
	if !ok {
		return b
	}
	b.Hour, b.Day = l.allowance(fields, "hour"), l.allowance(fields, "day")
	if entry {
		b.Entry = l.allowance(fields, "entry")
	}
	return b
}

func (l *loader) allowance(t table, key string) Allowance {
	var a Allowance
	p, ok := t[key]
	if !ok {
		return a
	}
	fields, ok := l.table(p, allowanceKeys, func(key string) string {
		switch key {
		case "usd", "dollars", "price":
			return "did you mean cost?"
		}
		return ""
	})
	if !ok {
		return a
	}
	if _, ok := fields["turns"]; ok {
		a.Turns = int64(l.number(fields, "turns", 1, 1))
	}
	a.Tokens, a.Resent = l.tokens(fields, "tokens"), l.tokens(fields, "resent")
	a.Cost = l.dollars(fields, "cost")
	return a
}

var (
	tokenForm  = pattern(`^(\d{1,12}(?:\.\d{1,3})?)([kM]?)$`)
	tokenUnits = map[string]float64{"": 1, "k": 1e3, "M": 1e6}
)

// tokens reads a number of tokens: 500000, 500k, 2M, 1.5M; 0 is no limit.
func (l *loader) tokens(t table, key string) int64 {
	p, text, ok := l.figure(t, key)
	if !ok {
		return 0
	}
	form := tokenForm().FindStringSubmatch(text)
	if form == nil {
		l.problem(p, fmt.Sprintf("%q is not a number of tokens", cut(text)), "for example 500k or 2M")
		return 0
	}
	number, _ := strconv.ParseFloat(form[1], 64) // it has the form of one
	n := number * tokenUnits[form[2]]
	if n < 1 || n > mostTokens || n != math.Trunc(n) {
		l.problem(p, text+" is out of range", "whole tokens, from 1 to 1000000M")
		return 0
	}
	return int64(n)
}

// dollars reads an amount of money; 0 is no limit.
func (l *loader) dollars(t table, key string) float64 {
	return l.decimal(t, key, leastCost, mostCost, "an amount",
		"US dollars without a sign, for example 2.50", fmt.Sprintf("US dollars, from %v to %.0f", leastCost, mostCost))
}
