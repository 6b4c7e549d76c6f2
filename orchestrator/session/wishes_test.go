package session

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// TestWishesGetTheirOwnAnswers, whatever the order in which these come; one that nobody answers
// ends, also with its session, and an answer that comes later is nobody's.
func TestWishesGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWishes()
		if got := w.grant(t.Context(), []byte("no JSON")); got != nil {
			t.Errorf("what is no JSON: %s", got)
		}
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				want := fmt.Sprint(i)
				if got := w.grant(t.Context(), []byte(want)); string(got) != want {
					t.Errorf("%s got %s", want, got)
				}
			})
		}
		var made []Wish
		for range 5 {
			made = append(made, <-w.made)
		}
		for i := range made { // the last one first
			m := made[len(made)-1-i]
			w.granted(Granted{N: m.N, Answer: m.Want})
		}
		all.Wait()

		ended, end := context.WithCancel(t.Context())
		all.Go(func() {
			if got := w.grant(ended, []byte("6")); got != nil {
				t.Errorf("after the session: %s", got)
			}
		})
		late := <-w.made
		end()
		all.Wait()
		w.granted(Granted{N: late.N, Answer: json.RawMessage("6")})
		if got := w.grant(t.Context(), []byte("7")); got != nil { // nobody takes it: after grantWithin
			t.Errorf("of no scheduler: %s", got)
		}
	})
}
