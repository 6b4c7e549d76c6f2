package inbox

import (
	"errors"
	"testing"

	"heartbeat/hook/durable"
)

// TestWhatIsAcknowledgedIsNotInFlight: readers showed an entry whose
// acknowledgement had been interrupted before its record went.
func TestWhatIsAcknowledgedIsNotInFlight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\ntwo\n")
	r.offer()
	killed := errors.New("killed")
	r.guard(func(s durable.Step, run func() error) error {
		if s.Verb == durable.Remove && s.Name == FlightFile {
			return killed
		}
		return run()
	})
	if _, err := r.Acknowledge(Acknowledgement{}); !errors.Is(err, killed) {
		t.Fatalf("acknowledged: %v", err)
	}
	if !r.exists(FlightFile) {
		t.Fatal("its record is gone")
	}
	if f, err := r.Peek(); f != nil || err != nil {
		t.Errorf("in flight: %+v, %v", f, err)
	}
}
