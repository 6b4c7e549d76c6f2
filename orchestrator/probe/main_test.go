package probe

import (
	"context"
	"fmt"
	"os"
	"testing"

	"heartbeat/internal/simulate"
	"heartbeat/internal/testbed"
)

// TestMain is three programs: what plays a probe, the stand-in, and the tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case Command:
			if err := Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "simulate":
			os.Exit(simulate.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		}
	}
	os.Exit(testbed.Run(m))
}
