package testbed

import "testing"

// TestSlicesTryAll between them, and each tries something.
func TestSlicesTryAll(t *testing.T) {
	t.Parallel()
	for _, all := range [][]int{{0}, {0, 1}, {0, 1, 2, 3, 4, 5, 6}} {
		tried := map[int]bool{}
		for range 1000 {
			slice := SliceOf(all, 3)
			if len(slice) == 0 {
				t.Fatalf("of %d nothing is tried", len(all))
			}
			for _, i := range slice {
				tried[i] = true
			}
		}
		if len(tried) != len(all) {
			t.Errorf("of %d only %v are tried", len(all), tried)
		}
	}
}
