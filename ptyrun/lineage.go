package ptyrun

// Forebear is a process or one of its ancestors, with what it shows of where it
// belongs. What the system does not show is the zero value.
type Forebear struct {
	PID     int
	Start   uint64 // when it began, as StartTimeOf has it
	Parent  int    // 0: it has none, or none that can be seen from here
	Session int    // the leader of its process session
	// Branded is true of a process that has the brand (see Bind), or of which the system
	// should say whether it has and does not.
	Branded bool
	// Mine is true if it runs as this user, by its real user id. Another user's process
	// is none that an agent has started and can hide behind.
	Mine bool
	// Terminal is true if it has a controlling terminal.
	Terminal bool
	Group    string   // its control group, as its own name space calls it
	Program  string   // the file that it runs
	Args     []string // its arguments, the program's name first

	environ []byte
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
			f.Start, f.Parent, f.Session, f.Terminal = p.start, p.ppid, p.sid, p.tty
		}
		if is, known := branded(pid); is || !known && limitsShown() {
			f.Branded = true
		}
		f.describe()
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
		if inGroup[f.PID] || r.Cookie != "" && f.Start >= r.StartedAfter && inSession(f.environ, r.Cookie) {
			return true
		}
	}
	return false
}

// ParentOfSession returns the process that has begun a process's session (setsid(2)): the parent
// of the session's leader. The error is ErrGone where one of them has ended.
func ParentOfSession(pid int) (int, error) {
	p, err := readProcess(pid)
	if err == nil && p.sid != pid {
		p, err = readProcess(p.sid)
	}
	return p.ppid, err
}
