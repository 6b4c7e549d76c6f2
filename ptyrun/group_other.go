//go:build !linux

package ptyrun

// Control groups exist on Linux only.

// PlanGroup names a control group for a child; on this system there are none.
func PlanGroup() string { return "" }

func (c *Child) startIn(_ string, l Limits) error {
	if c.unlimited = CanLimit(0, l); c.unlimited != nil && l.Required {
		return c.unlimited
	}
	return c.cmd.Start()
}

func groupMembers(string) map[int]bool { return nil }

func killGroup(string) {}

func removeGroup(string) {}

func ourGroup(string) bool { return false }
