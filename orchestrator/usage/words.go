package usage

import "fmt"

// Tokens is a number of tokens for people, in three digits.
func Tokens(n int64) string {
	for _, unit := range []struct {
		of   int64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= unit.of {
			f := float64(n) / float64(unit.of)
			return fmt.Sprintf("%.*f%s", max(0, 3-len(fmt.Sprint(int64(f)))), f, unit.name)
		}
	}
	return fmt.Sprint(n)
}

// Price is what a sum has cost, for people; a part of it that nobody knows is told by a
// plus.
func (s Sum) Price() string {
	more := ""
	if s.Unseen+s.Unpriced > 0 {
		more = "+"
	}
	if s.Cost == 0 && more != "" {
		return "?"
	}
	return Dollars(s.Cost) + more
}
