package webhook

import "testing"

// TestEachSignatureOfABodyAloneIsKnown by the header that has it: who has one more of them says
// that its requests can be sent again.
func TestEachSignatureOfABodyAloneIsKnown(t *testing.T) {
	t.Parallel()
	for _, s := range signatures {
		if SignsBodyAlone(s.header) == "" {
			t.Errorf("%s: nobody says whose it is", s.header)
		}
	}
	for _, s := range services {
		if told := SignsBodyAlone(s.header) != ""; told != (s.sender != "GitLab" && s.sender != standard) {
			t.Errorf("%s: %v", s.header, told)
		}
	}
}
