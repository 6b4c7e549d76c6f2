package ptyrun

// mostAncestors bounds how far up a process is followed.
const mostAncestors = 1000

// Ancestors returns a process and those that it descends from, the nearest
// first, as far as they are there: one whose parent has gone descends from who
// has taken it in.
func Ancestors(pid int) []int {
	var all []int
	for pid > 0 && len(all) < mostAncestors {
		p, err := readProcess(pid)
		if err != nil {
			break
		}
		all = append(all, pid)
		pid = p.ppid
	}
	return all
}
