package testbed

import (
	"fmt"
	"slices"
	"testing"
)

// TestSamplesTryAll between them, and each tries something.
func TestSamplesTryAll(t *testing.T) {
	for _, machine := range []string{"", "true"} {
		t.Setenv("CI", machine)
		for _, all := range [][]int{{0}, {0, 1}, {0, 1, 2, 3, 4, 5, 6}} {
			tried := map[int]bool{}
			for name := range 1000 {
				t.Setenv(sampleVariable, fmt.Sprint(name))
				some := SampleOf(t, all, 3)
				if len(some) == 0 {
					t.Fatalf("CI=%s: of %d nothing is tried", machine, len(all))
				}
				for _, i := range some {
					tried[i] = true
				}
			}
			if len(tried) != len(all) {
				t.Errorf("CI=%s: of %d only %v are tried", machine, len(all), tried)
			}
		}
	}
}

// TestASampleIsTheSameEachTime: a gate that tried another one than the run before
// it refused what had been green.
func TestASampleIsTheSameEachTime(t *testing.T) {
	all := make([]int, 100)
	for i := range all {
		all[i] = i
	}
	t.Setenv(sampleVariable, "a")
	once, turn, number := SampleOf(t, all, 7), Turn(t, 1000), Chance(t, "a").Uint64()
	if again := SampleOf(t, all, 7); !slices.Equal(once, again) || Turn(t, 1000) != turn || Chance(t, "a").Uint64() != number {
		t.Errorf("the same sample tries %v and %v", once, again)
	}
	if Chance(t, "b").Uint64() == number {
		t.Error("another purpose chooses the same")
	}
	t.Setenv(sampleVariable, "b")
	if Chance(t, "a").Uint64() == number {
		t.Error("another sample chooses the same")
	}
	t.Run("another test", func(t *testing.T) {
		t.Setenv(sampleVariable, "a")
		if Chance(t, "a").Uint64() == number {
			t.Error("another test chooses the same")
		}
	})
}

// TestTheCommandThatRepeatsATest names its sample, how dense it is, its package and the
// whole test.
func TestTheCommandThatRepeatsATest(t *testing.T) {
	for machine, first := range map[string]string{"": "", "true": "CI=true "} {
		t.Setenv("CI", machine)
		want := first + "HEARTBEAT_SAMPLE=abc go test heartbeat/internal/testbed -run '^TestX$'"
		if got := repeat("abc", "TestX/a/b"); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
}
