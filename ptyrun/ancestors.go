package ptyrun

// mostAncestors limits how far up the ancestors of a process are followed.
const mostAncestors = 1000

// Ancestors returns a process and its ancestors that still exist, the nearest
// first. A process whose parent has exited descends from the process that adopted
// it.
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
