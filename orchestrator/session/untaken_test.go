package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook/handover"
)

// A client ends before any hook of ours has run: whether it had the first entry
// is told by its own transcript, if by anything.
func TestAnEntryIsUntakenOnlyWhereTheTranscriptShowsThat(t *testing.T) {
	t.Parallel()
	const mine, other = "one", "another prompt"
	says := func(text string) string {
		content, err := json.Marshal(handover.KickoffPrompt(text))
		if err != nil {
			t.Fatal(err)
		}
		return `{"type":"user","message":{"role":"user","content":` + string(content) + `}}` + "\n"
	}
	for name, c := range map[string]struct {
		script  string // of the client; $T is its transcript, $MINE what it would hold
		resumes string // the transcript of the conversation that goes on
		folder  func(t *testing.T, projects string)
		want    bool
	}{
		"it refuses its flags":              {script: "exit 1", want: true},
		"it waits at a dialog":              {script: stays, want: true},
		"it was at another prompt":          {script: `printf %s\\n "$OTHER" > "$T"; exit 1`, want: true},
		"it had the prompt":                 {script: `printf %s\\n "$MINE" > "$T"; exit 1`},
		"it had the prompt, and waits":      {script: `printf %s\\n "$MINE" > "$T"; ` + stays},
		"it was killed":                     {script: "kill -9 $$"},
		"it was killed, in order":           {script: "kill -TERM $$", want: true},
		"its transcripts cannot be read":    {script: "exit 1", folder: func(t *testing.T, p string) { put(t, p, "") }},
		"it goes on, and had an equal one":  {script: "exit 1", resumes: says(mine), want: true},
		"it goes on, and has it once more":  {script: `printf %s\\n "$MINE" >> "$T"; exit 1`, resumes: says(mine)},
		"it goes on, and forgot everything": {script: `: > "$T"; exit 1`, resumes: says(mine)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var projects, transcript string
			begin := func() *lab {
				l := newLab(t, mine)
				projects = filepath.Join(l.user, "projects")
				transcript = filepath.Join(projects, "-work", id+".jsonl")
				if c.resumes != "" {
					transcript = filepath.Join(projects, "-work", "R.jsonl")
				}
				if c.folder != nil {
					c.folder(t, projects)
				} else {
					inTheWay(t, filepath.Dir(transcript))
				}
				if c.resumes != "" {
					put(t, transcript, c.resumes)
				}
				return l
			}
			change := func(s *Spec) {
				if c.resumes != "" {
					s.Resume = "R"
				}
				s.Env = append(s.Env, "CLAUDE_CONFIG_DIR="+filepath.Dir(projects), "T="+transcript,
					"MINE="+strings.TrimSpace(says(mine)), "OTHER="+strings.TrimSpace(says(other)))
			}
			var o *Outcome
			if strings.HasSuffix(c.script, stays) {
				_, o = expire(begin, c.script, change)
			} else {
				o = begin().run(c.script, change)
			}
			if o.Untaken != c.want || o.Bound {
				t.Errorf("untaken %t, want %t: %+v", o.Untaken, c.want, o)
			}
		})
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
