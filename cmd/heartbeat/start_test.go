package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestTheStartCompilesNoTokenName keeps what the program's own variables cost each start
// small: as a regular expression the form of a token's name took 1.6 MB and 1 ms.
func TestTheStartCompilesNoTokenName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "GODEBUG=inittrace=1")
	found := regexp.MustCompile(`(?m)^init main .* (\d+) bytes`).FindStringSubmatch(w.run("version").stderr)
	if found == nil {
		t.Fatal("the start of main is not told")
	}
	if n, _ := strconv.Atoi(found[1]); n > 200_000 {
		t.Errorf("before its first line main allocates %d bytes", n)
	}
}

func TestNamesOfTokens(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"phone": true, "Zoë's 2nd @home-desk_.": true, "7": true, "½": true,
		strings.Repeat("é", 40): true, strings.Repeat("é", 41): false,
		"": false, " phone": false, "-x": false, ".x": false, "a\n": false, "a\tb": false,
		"a/b": false, "a\xff": false, "a\u0301": false,
	} {
		if got := isTokenName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
