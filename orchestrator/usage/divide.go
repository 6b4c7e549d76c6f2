package usage

import "time"

// weight is that of the tokens of an answer.
type weight struct {
	at time.Time
	of float64
}

// maxWeights bounds how many answers of an entry are told apart.
const maxWeights = 64

// weigh adds what an answer weighs.
func (s *share) weigh(at time.Time, of float64) {
	if of <= 0 {
		return
	}
	if s.weights = append(s.weights, weight{at, of}); len(s.weights) > maxWeights {
		s.weights[1].of += s.weights[0].of
		s.weights = s.weights[1:]
	}
}

// weightAt is the weight of the answers up to a time; the zero time means all.
func (s *share) weightAt(at time.Time) (sum float64) {
	for _, w := range s.weights {
		if at.IsZero() || !w.at.After(at) {
			sum += w.of
		}
	}
	return sum
}

// paid forgets them.
func (s *share) paid(at time.Time) {
	var left []weight
	for _, w := range s.weights {
		if !at.IsZero() && w.at.After(at) {
			left = append(left, w)
		}
	}
	s.weights = left
}

// divide distributes the loose cost over the shares by the weight of their answers without
// a cost, but for those that came after it was reported: the client tells the cost of an
// answer a while later, and the next answer may be there when that is read. Were that paid
// for as well, its own cost would go to the answer after it, and so on. Where all came after
// it, as to a file system that keeps whole seconds, they have the cost, and are not paid for.
func (c *Counter) divide() {
	upTo, all := c.looseAt, c.weightAt(c.looseAt)
	if all <= 0 {
		upTo, all = time.Time{}, c.weightAt(time.Time{})
	}
	if all <= 0 || c.loose <= 0 {
		return
	}
	for _, s := range c.shares {
		s.sum.Cost += c.loose * s.weightAt(upTo) / all
		s.paid(c.looseAt)
	}
	c.loose = 0
}

// weightAt is the weight of all shares' answers up to a time.
func (c *Counter) weightAt(at time.Time) (sum float64) {
	for _, s := range c.shares {
		sum += s.weightAt(at)
	}
	return sum
}
