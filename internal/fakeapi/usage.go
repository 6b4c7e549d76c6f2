package fakeapi

// Usage is what an answer cost, in tokens, as the API tells it. The classes do
// not overlap.
type Usage struct{ Input, Output, CacheRead, CacheWrite int }

// someUsage is that of an answer whose rule says nothing.
var someUsage = Usage{Input: 10, Output: 5}

// Plus is the sum of two.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// begun is what the API tells at the beginning of a stream: what will come out is
// not known yet.
func (u Usage) begun() Usage {
	u.Output = min(u.Output, 1)
	return u
}

func (u Usage) fields() map[string]int {
	return map[string]int{
		"input_tokens": u.Input, "output_tokens": u.Output,
		"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
	}
}

// Spent returns how many answers have been sent to their end, and their sum.
func (s *Server) Spent() (answers int, sum Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers, s.spent
}

// sent counts an answer that was sent to its end.
func (s *Server) sent(req *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Answered = true
	s.answers++
	s.spent = s.spent.Plus(req.Usage)
}
