package ptyrun

import (
	"os"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	p, err := parseStat(7, []byte("7 (a) b (c) S 3 4 5 34817 7 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 9 9"))
	want := process{identity: identity{7, 12345}, ppid: 3, pgrp: 4, sid: 5, tty: true, command: "a) b (c"}
	if err != nil || p != want {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, bad := range []string{"", "7 (x", "7 (x) S", "7 )x( S 1 2 3", "7 (x) Z a b c 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 x"} {
		if _, err := parseStat(7, []byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if _, err := StartTimeOf(1 << 30); err == nil {
		t.Error("a process that cannot be has a start time")
	}
	if s, err := StartTimeOf(os.Getpid()); err != nil || s == 0 {
		t.Error(s, err)
	}
}
