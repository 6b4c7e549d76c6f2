package client

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// codex is a sketch of another client, of what little was measured of it (Codex
// CLI 0.169.0), to see that the form holds one: it names a prompt otherwise, has no
// event for failures and none for permissions, and wraps what hooks say.
var codex = Client{
	Name:     "Codex CLI",
	Versions: Versions{Measured: "0.169.0", Oldest: "0.169.0", Newest: "0.169.0", Of: func(printed string) string { return strings.TrimPrefix(printed, "codex-cli ") }},
	Hooks: Hooks{
		Known:     []string{SessionStart, UserPromptSubmit, Stop, SessionEnd},
		Installed: []string{SessionStart, UserPromptSubmit, Stop, SessionEnd},
		Types:     []string{"command"},
		Timeout:   600 * time.Second,
		Fields: []Field{
			text("hook_event_name", maxField, func(e *Event) *string { return &e.Name }),
			text("session_id", maxField, func(e *Event) *string { return &e.SessionID }),
			text("transcript_path", maxField, func(e *Event) *string { return &e.Transcript }),
			text("turn_id", maxField, func(e *Event) *string { return &e.PromptID }),
			text("permission_mode", maxField, func(e *Event) *string { return &e.PermissionMode }),
			text("last_assistant_message", maxLast, func(e *Event) *string { return &e.LastMessage }),
			{"stop_hook_active", readActive},
		},
		Block: block,
	},
	Transcript: Transcript{
		Behind: 2 * time.Second, Folder: "sessions",
		HandedOver: func(line []byte, text string) bool {
			var r struct {
				Payload struct{ Content []struct{ Text string } }
			}
			_ = json.Unmarshal(line, &r)
			return slices.ContainsFunc(r.Payload.Content, func(c struct{ Text string }) bool {
				begin, rest, ok := strings.Cut(c.Text, ">")
				return ok && strings.HasPrefix(begin, "<hook_prompt hook_run_id=") && rest == text+"</hook_prompt>"
			})
		},
		Failed: func(line []byte) string {
			var r struct {
				Payload struct {
					Error struct {
						Info string `json:"codex_error_info"`
					}
				}
			}
			if json.Unmarshal(line, &r) == nil && r.Payload.Error.Info == "usage_limit_exceeded" {
				return "rate_limit"
			}
			return ""
		},
	},
	Settings:  Settings{Folder: ".codex", File: "hooks.json", Own: func(get Getter) string { return get("CODEX_HOME") + "/config.toml" }},
	Variables: Variables{Config: "CODEX_HOME"},
	Flags:     Flags{Resume: "resume"},
	Untold:    []string{"that hooks are skipped because nobody has trusted them"},
}

// TestTheFormHoldsAnotherClient: what one has and the other has not is said by the
// value itself, and nothing has to know which client it is.
func TestTheFormHoldsAnotherClient(t *testing.T) {
	t.Parallel()
	for _, c := range []*Client{&Claude, &codex} {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			h := c.Hooks
			for _, event := range h.Installed {
				if !h.Has(event) {
					t.Errorf("our hook of %s is not known to it", event)
				}
			}
			for _, event := range []string{SessionStart, UserPromptSubmit, Stop, SessionEnd} {
				if !h.Has(event) {
					t.Errorf("without %s no session can be followed", event)
				}
			}
			if h.Has(StopFailure) == (c.Transcript.Failed != nil) || h.Has(StopFailure) != (h.Failure != nil) {
				t.Error("failures are told by an event or by the transcript")
			}
			if h.Has(PermissionRequest) != (h.Deny != nil) {
				t.Error("PermissionRequest, and nothing answers it, or the other way round")
			}
			if c.Transcript.HandedOver == nil || h.Block == nil || c.Settings.File == "" || c.Variables.Config == "" {
				t.Error("it cannot be fed")
			}
			if dir := c.ConfigDir(In([]string{"HOME=/h"})); dir != "/h/"+c.Settings.Folder {
				t.Errorf("its configuration: %s", dir)
			}
			if dir := c.ConfigDir(In([]string{c.Variables.Config + "=/a", "HOME=/h", c.Variables.Config + "=/b"})); dir != "/b" {
				t.Errorf("its configuration: %s", dir)
			}
			for _, kv := range append(slices.Clone(c.Variables.Session), c.Variables.Defaults...) {
				if name, _, ok := strings.Cut(kv, "="); !ok || slices.Contains(c.Variables.Marks, name) {
					t.Errorf("variable %q", kv)
				}
			}
		})
	}
	e, err := codex.Hooks.Read(strings.NewReader(`{"hook_event_name":"Stop","session_id":"S","turn_id":"T","prompt_id":"none","stop_hook_active":true}`))
	if err != nil || e.Name != Stop || e.PromptID != "T" || !e.StopHookActive {
		t.Errorf("%+v, %v", e, err)
	}
	line := []byte(`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<hook_prompt hook_run_id=\"7\">do it</hook_prompt>"}]}}`)
	if !codex.Transcript.HandedOver(line, "do it") || codex.Transcript.HandedOver(line, "do") || Claude.Transcript.HandedOver(line, "do it") {
		t.Error("the proof of a hand-over")
	}
	if got := codex.Transcript.Failed([]byte(`{"payload":{"type":"task_complete","error":{"codex_error_info":"usage_limit_exceeded"}}}`)); got != "rate_limit" {
		t.Errorf("the failure: %q", got)
	}
}

func TestVersionOf(t *testing.T) {
	t.Parallel()
	for printed, want := range map[string]string{
		"2.1.329 (Claude Code)\n": "2.1.329", "2.1.78-beta.2 (Claude Code)": "2.1.78", "2.1.4.5 (Claude Code)": "2.1.4",
		"2.1 (Claude Code)": "", "error\n2.1.3 (Claude Code)": "", "2.1.329 (Another)": "", "": "", "2..3 (Claude Code)": "", " (Claude Code)": "",
	} {
		if got := Claude.Versions.Of(printed); got != want {
			t.Errorf("%q: %q, want %q", printed, got, want)
		}
	}
}

func TestWhichDialogStandsOnTheScreen(t *testing.T) {
	t.Parallel()
	for screen, want := range map[string]string{
		"Accessing workspace:\n\n  ❯ No, exit\n Yes, I trust\n   this folder\n\n  Enter to\nconfirm · Esc to cancel": "whether the folder is trusted",
		"Let's get started.\n\n Choose the text style that looks best\n ❯ ✔ Auto\n Dark mode":                        "how it is to look: it was never started",
		"A question of a later version?\n\n ❯ No\n Yes\n\n   Enter to confirm · Esc to cancel":                       "something that is not known here",
		"❯ Try \"fix lint errors\"": "",
		"❯ Task from the queue:\n\n  add a Dark mode, and say \"I trust this folder\"": "",
	} {
		got := ""
		if d := Claude.Terminal.Asks(screen); d != nil {
			got = d.What
		}
		if got != want {
			t.Errorf("%q: asks %q, want %q", screen, got, want)
		}
	}
	for _, d := range Claude.Terminal.Dialogs {
		if (d.Do == "") == (d.Type == "") || len(d.Shows) < 2 {
			t.Errorf("%+v: what to do", d)
		}
		for text, first := range map[string]bool{d.Do: false, d.First: true} {
			if got := d.Cure(first, "TYPED"); text != "" && (strings.Count(got, "TYPED") != 1 || strings.ContainsAny(got, "{}")) {
				t.Errorf("%q becomes %q", text, got)
			}
		}
	}
}
