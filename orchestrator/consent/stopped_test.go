package consent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// TestADirectoryThatNeverAnswers: without a run, what is stuck in it for good does not keep
// who looks at the requests from the others'.
func TestADirectoryThatNeverAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		defer close(stuck)
		if _, err := answering("a", func() (string, error) { <-stuck; return "", nil }); !errors.Is(err, errSilent) || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("it is told: %v", err)
		}
		if why, err := answering("b", func() (string, error) { return "gone", nil }); why != "gone" || err != nil {
			t.Errorf("the other one: %q, %v", why, err)
		}
	})
}
