package inbox

import (
	"errors"
	"testing"
)

func TestAnEntryGoesFromQueuedToAcknowledged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("first\nsecond\n")
	f := r.offer()
	if f.State != Offered || f.Attempt != 1 || f.StartOffset != 0 || f.EndOffset != 6 || f.RawLine != "first" {
		t.Errorf("offered %+v", f)
	}
	if !r.exists(respondedFile) {
		t.Error("the compatible flag is missing after an offer")
	}
	r.reopen()
	r.advance(Taken)
	r.advance(Started)
	r.reopen()
	if f, err := r.InFlight(); err != nil || f.State != Started {
		t.Fatalf("in flight %+v, %v", f, err)
	}
	d := r.ack()
	if d.Reply != "done" || d.EntryID != f.EntryID || d.Attempt != 1 {
		t.Errorf("delivered %+v", d)
	}
	if got := r.get(CursorFile); got != "6" {
		t.Errorf("cursor %q, want 6", got)
	}
	if r.exists(FlightFile) || r.exists(respondedFile) {
		t.Error("the record or the flag is left after the acknowledgement")
	}
	if got := r.next(); got != "second" {
		t.Errorf("next %q", got)
	}
}

func TestOfferRefusesASecondEntryInFlight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("first\nsecond\n")
	r.offer()
	e, err := r.Next()
	if err != nil || e.Prompt != "second" {
		t.Fatalf("behind the entry in flight stands %+v, %v", e, err)
	}
	if _, err := r.Offer(e, Offering{}); !errors.Is(err, ErrInFlight) {
		t.Errorf("Offer: %v, want ErrInFlight", err)
	}
}
