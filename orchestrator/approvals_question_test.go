package orchestrator

import "testing"

// What a person is asked about work that has passed its check begins with which work it
// is, on one line.
func TestTheQuestionNamesThePrompt(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		"Prepare release 1.4":       `Is this done? "Prepare release 1.4" Its check has passed.`,
		"two\nlines \"and\" quotes": `Is this done? "two lines \"and\" quotes" Its check has passed.`,
		" ":                         `Is this done? Its check has passed.`,
	} {
		if got := isDone(prompt); got != want {
			t.Errorf("%q: %s, want %s", prompt, got, want)
		}
	}
}
