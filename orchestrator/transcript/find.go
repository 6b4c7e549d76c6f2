package transcript

import (
	"path/filepath"
	"strings"

	"heartbeat/hook/handover"
)

// Find returns where a client that keeps its conversations in configDir keeps the
// conversation of a session in dir: claimed, if that is a transcript beside the
// session's own, for example of a conversation that /clear began, or what a client
// whose home is in dir keeps for dir (heartbeat simulate --home .home); otherwise
// the session's own; "" if there is none. The claim comes from a file of the
// agent's.
func Find(configDir, dir, session, claimed string) string {
	own, err := handover.FindTranscript(configDir, session)
	if err != nil {
		own = ""
	}
	folder := filepath.Join(configDir, "projects", projectName(dir))
	beside := filepath.Dir(claimed)
	if filepath.IsAbs(claimed) && filepath.Clean(claimed) == claimed && filepath.Ext(claimed) == ".jsonl" &&
		(beside == folder || own != "" && beside == filepath.Dir(own) || keptIn(dir, beside)) {
		return claimed
	}
	return own
}

// keptIn reports whether a folder is the one for dir of a client whose home is in
// dir.
func keptIn(dir, folder string) bool {
	return strings.HasPrefix(folder, dir+string(filepath.Separator)) &&
		filepath.Base(folder) == projectName(dir) && filepath.Base(filepath.Dir(folder)) == "projects"
}

// projectName returns the name of the client's folder for a directory: its path
// with everything but letters and digits as dashes (measured in 2.1.329, which cuts
// long ones).
func projectName(dir string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, dir)
}
