package session

import (
	"os"
	"path/filepath"
	"testing"

	"heartbeat/hook/client"
)

// TestWhatIsToBeTypedWorksWithAHomeOfItsOwn: what was printed for a question at the
// client's start answered it for the person's own home, or named a command that fails
// where the client has no file yet.
func TestWhatIsToBeTypedWorksWithAHomeOfItsOwn(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	trust := &client.Claude.Terminal.Dialogs[0]
	key := &client.Claude.Terminal.Dialogs[1]
	s := &Spec{Agent: "a", Command: []string{"claude"}, Env: []string{"HOME=" + home}}
	stand := *s
	stand.Command, stand.StandsIn = []string{"heartbeat", "simulate", "--home", home}, true
	other := *s
	other.Command = []string{"claude", "simulate"}
	mine := *s
	mine.Env = []string{"HOME=" + os.Getenv("HOME"), "CLAUDE_CONFIG_DIR=" + os.Getenv("CLAUDE_CONFIG_DIR")}
	for name, tt := range map[string]struct {
		spec   *Spec
		dialog *client.Dialog
		want   string
	}{
		"trust, without the client's file":                  {s, trust, "run HOME=" + home + " claude in the agent's directory once and accept"},
		"trust, the stand-in's":                             {&stand, trust, "heartbeat apply --trust a"},
		"trust, of another client with the stand-in's word": {&other, trust, "run HOME=" + home + " claude in the agent's directory once and accept"},
		"a key":                           {s, key, "run HOME=" + home + " claude once with this key and choose Yes"},
		"a key, in the person's own home": {&mine, key, "run claude once with this key and choose Yes"},
	} {
		if q := tt.spec.question(tt.dialog); q.Do != tt.want {
			t.Errorf("%s: %q, want %q", name, q.Do, tt.want)
		}
	}
	if err := os.WriteFile(filepath.Join(home, ".claude.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if q := s.question(trust); q.Do != "heartbeat apply --trust a" {
		t.Errorf("trust, with the client's file: %q", q.Do)
	}
}
