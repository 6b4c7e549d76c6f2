package store

import (
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatIsOwedIsTriedUntilItIsWritten, less and less often, and only as it is last.
func TestWhatIsOwedIsTriedUntilItIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Store{debts: newDebts()}
		go s.payDebts()
		var tried []time.Duration
		fails, began := errors.New("no"), time.Now()
		value, has := 1, 0
		write := func() error {
			tried = append(tried, time.Since(began))
			if fails == nil {
				has = value
			}
			return fails
		}
		s.Owe("a", write)
		s.Owe("a", write) // one write for both
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(tried) < 10 || len(tried) > 20 || tried[0] != owedSoon || tried[1]-tried[0] != firstAgain {
			t.Errorf("tried after %v", tried)
		}
		if told := s.Troubles(); len(told) != 1 || told[0].Kind != Owed || !strings.Contains(told[0].Text, "does not have yet a: no") || !told[0].Since.Equal(began.Add(owedSoon)) {
			t.Errorf("told: %+v", told)
		}
		value, fails = 2, nil
		s.Keep("a", write)
		if has != 2 || len(s.Troubles()) > 0 {
			t.Errorf("%d is there; told: %+v", has, s.Troubles())
		}
		n := len(tried)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(tried) != n {
			t.Error("it was written again")
		}
		if err := s.closeDebts(); err != nil {
			t.Error(err)
		}
	})
}

// TestOfWhatIsOwedTheEndTriesAll once more, and names what is not there.
func TestOfWhatIsOwedTheEndTriesAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Store{debts: newDebts()}
		go s.payDebts()
		var written atomic.Int32
		for n := range mostOwed + 5 {
			s.Owe("fact "+strconv.Itoa(n), func() error { written.Add(1); return nil })
			if n == 0 {
				s.Owe("broken", func() error { return errors.New("no") })
			}
		}
		err := s.closeDebts()
		if err == nil || !strings.Contains(err.Error(), "does not have broken and 6 more: no") || written.Load() != mostOwed-1 {
			t.Errorf("%d are written; %v", written.Load(), err)
		}
	})
}

// TestWhatIsLostIsToldUntilTheEnd, although all that is still owed is written: nobody learned of it.
func TestWhatIsLostIsToldUntilTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Store{debts: newDebts()}
		go s.payDebts()
		began := time.Now()
		for n := range mostOwed + 2 {
			s.Owe("fact "+strconv.Itoa(n), func() error { return nil })
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		const want = "the store does not have 2 facts: more than 20000 facts at once had to be written"
		if told := s.Troubles(); len(told) != 1 || told[0].Kind != Owed || told[0].Text != want || !told[0].Since.Equal(began) {
			t.Errorf("told: %+v", told)
		}
		if err := s.closeDebts(); err == nil || err.Error() != want {
			t.Errorf("the end says %v", err)
		}
	})
}

// TestATroubleNamesWhatItKeepsBack: who reads that the disk is full learns what is lost if the
// run is killed.
func TestATroubleNamesWhatItKeepsBack(t *testing.T) {
	t.Parallel()
	s := &Store{debts: newDebts()}
	s.health.note(Trouble{Kind: Full, Text: "no space is left"})
	s.Keep("whether agent a is held", func() error { return &FullError{} })
	if told := s.Troubles(); len(told) != 1 || told[0].Text != "no space is left; it does not have yet whether agent a is held" {
		t.Errorf("told: %+v", told)
	}
}
