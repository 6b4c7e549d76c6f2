package inbox

import "testing"

// TestAnIdToTypeIsTypable: whoever can write the inbox chose what stood in command lines
// for people to copy, and on their phones.
func TestAnIdToTypeIsTypable(t *testing.T) {
	t.Parallel()
	const delivery = "5cc7c8c23e8e"
	for id, want := range map[string]string{
		"mine": "mine", "triage/morning@2026-03-02T09:00:00+01:00": "triage/morning@2026-03-02T09:00:00+01:00", "a_b=c,d.e%f": "a_b=c,d.e%f",
		"": delivery, "$(reboot)": delivery, "x; rm -rf ~": delivery, "`x`": delivery, "a b": delivery, "'": delivery, "x\ny": delivery, "--all": delivery, "~": delivery, "*": delivery, "ü": "ü",
	} {
		if got := Handle(id, delivery); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
	if got := Handle("$(x)", "$(y)", ""); got != "" {
		t.Errorf("none is typable: %q", got)
	}
}
