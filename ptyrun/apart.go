package ptyrun

import "os/exec"

// StartApart starts a command without a terminal in the control group that
// PlanGroup named, where one can be made, and returns the command that runs: it may
// be a copy, whose context, Cancel and WaitDelay are not those of cmd. The caller
// waits for it, and ends what it leaves with Sweep.
func StartApart(cmd *exec.Cmd, group string) (*exec.Cmd, error) {
	c := &Child{cmd: cmd}
	err := c.startIn(group, Limits{})
	return c.cmd, err
}
