package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	hookclient "heartbeat/hook/client"
	"heartbeat/hook/handover"
)

// everyday are texts in many scripts, with what people put into them.
func everyday(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../hook/client/testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n") // send takes it off
}

// TestTheFirstEntryReachesTheModelExactly: what a prompt argument carries goes
// with the start; what it would change comes by the first Stop, one turn later.
// Either way the model gets it once, to the byte.
func TestTheFirstEntryReachesTheModelExactly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		calls int
	}{
		"everyday texts":  {everyday(t), 1},
		"invisible":       {"a BOM\ufeff, soft\u00adhyphen, c:\\\u202apath\u202c, \u200emark, zero\u200bwidth, a\u2028line, 邉\U000e0100, x\ufe0e.", 2},
		"a word it knows": {"use ultracode for this", 2},
		"a tag it knows":  {"<pasted_content id=1>x</pasted_content>", 2},
	} {
		t.Run(name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, cl client) {
				f := newFleet(t, cl, nil)
				f.teach()
				f.send(c.text)
				f.must("", "run", "--once")
				f.gone()
				got := f.prompts()
				if len(got) != c.calls || got[len(got)-1] != c.text {
					t.Errorf("%d prompts reached the model, want %d, the last %+.300q", len(got), c.calls, got[len(got)-1])
				}
				if done := f.outbox(); len(done) != 1 || done[0].Attempt != 1 {
					t.Errorf("acknowledged: %+v", done)
				}
			})
		})
	}
}

// TestArgvCarriesWhatWeSayItDoes shows the real client every character that is
// said to fit a prompt argument.
func TestArgvCarriesWhatWeSayItDoes(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	var lines []string
	line := "a"
	for r := ' '; r <= 0x33fff; r++ {
		if !utf8.ValidRune(r) || unicode.Is(unicode.Co, r) && r%64 != 0 || !hookclient.Claude.Carries("a"+string(r)+"b") {
			continue
		}
		if line += string(r); len(line) > 200 {
			lines, line = append(lines, line+"b"), "a"
		}
	}
	lines = append(lines, line)
	for _, part := range factsOf(t, c, slices.Collect(slices.Chunk(lines, 400)), 4) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			want := handover.KickoffPrompt(strings.Join(part, "\n"))
			l := newLab(t, c, nil)
			l.Setenv("CLAUDE_CODE_DISABLE_FILE_MENTIONS=1")
			l.Model()
			l.ProjectSettings(l.Hooks("UserPromptSubmit", "Stop"))
			l.Start("--permission-mode", "dontAsk", "--", want)
			got := strings.Split(l.UntilCalls("UserPromptSubmit", 1).Text("prompt"), "\n")
			for n, line := range strings.Split(want, "\n") {
				if n >= len(got) || got[n] != line {
					t.Fatalf("line %d of %d: %+q became %+q", n, len(got), line, got[min(n, len(got)-1)])
				}
			}
			l.Until("a model call", func() bool { return len(l.API.Requests()) > 0 })
			if l.API.Requests()[0].Copies(want) != 1 {
				t.Error("the model got something else")
			}
		})
	}
}
