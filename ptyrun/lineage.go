package ptyrun

// Forebear is a process or one of its ancestors, with what it shows of where it
// belongs.
type Forebear struct {
	PID     int
	environ []byte
	start   uint64
}

// Variable returns a variable of the process's environment as it began, "" where it has
// none or it cannot be read.
func (f Forebear) Variable(name string) string {
	for value := range values(f.environ, name) {
		return value
	}
	return ""
}

// Lineage returns a process and its ancestors that still exist, the nearest first, as
// Ancestors does; none if the process is gone.
func Lineage(pid int) []Forebear {
	var all []Forebear
	for _, pid := range Ancestors(pid) {
		f := Forebear{PID: pid, environ: environ(pid)}
		if p, err := readProcess(pid); err == nil {
			f.start = p.start
		}
		all = append(all, f)
	}
	return all
}

// Has reports whether one of a process's line is what r identifies: it is in the
// control group, or has the cookie in its environment. A process that descends from
// such a one and shows neither any more is found by the one it descends from.
func (r Remains) Has(line []Forebear) bool {
	var inGroup map[int]bool
	if ourGroup(r.Group) {
		inGroup = groupMembers(r.Group)
	}
	for _, f := range line {
		if inGroup[f.PID] || r.Cookie != "" && f.start >= r.StartedAfter && inSession(f.environ, r.Cookie) {
			return true
		}
	}
	return false
}
