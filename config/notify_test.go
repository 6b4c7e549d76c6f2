package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fleetWith loads a file with these lines at its top, and returns what was warned of.
func fleetWith(t *testing.T, top, agent string) (*Fleet, []string) {
	t.Helper()
	f := mustLoad(t, write(t, "version: 1\n"+top+"\nagents: {a: {dir: a, env-allow: [X]"+agent+"}}\n"))
	var warnings []string
	for _, w := range f.Warnings {
		warnings = append(warnings, w.Key+": "+w.Message)
	}
	return f, warnings
}

func TestTargets(t *testing.T) {
	t.Parallel()
	f, _ := fleetWith(t, `
notify:
  phone: {webhook-file: phone.url, body: ntfy, token-env: NTFY_TOKEN}
  team: {webhook: "https://chat.example/hook", body: slack, tier: info, quiet-hours: "22:00-07:00", timezone: Asia/Tokyo, digest: 1h, timeout: 5s}
  bot: {body: telegram, token-file: bot, chat: -100123, tier: replies}
  desk: {command: [./tell.sh, now]}
ping: {url-env: PING, every: 1m, form: plain}`, "")
	dir := filepath.Dir(f.Path)
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*Target{
		"phone": {Name: "phone", Dir: dir, Webhook: Secret{File: dir + "/phone.url"}, Token: Secret{Variable: "NTFY_TOKEN"}, Body: BodyNtfy, Tier: TierUrgent, Timeout: DefaultNotifyTimeout},
		"team": {
			Name: "team", Dir: dir, Webhook: Secret{Text: "https://chat.example/hook"}, Body: BodySlack, Tier: TierInfo,
			Quiet: &Hours{Days: [7]bool{true, true, true, true, true, true, true}, From: 22 * 60, To: 7 * 60}, Zone: tokyo, Digest: time.Hour, Timeout: 5 * time.Second,
		},
		"bot":  {Name: "bot", Dir: dir, Webhook: Secret{Text: "https://api.telegram.org"}, Token: Secret{File: dir + "/bot"}, Chat: "-100123", Body: BodyTelegram, Tier: TierReplies, Timeout: DefaultNotifyTimeout},
		"desk": {Name: "desk", Dir: dir, Command: []string{"./tell.sh", "now"}, Program: dir + "/tell.sh", Body: BodyJSON, Tier: TierUrgent, Timeout: DefaultNotifyTimeout},
	}
	if diff := cmp.Diff(want, f.Targets, cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p := f.Ping; p.URL != (Secret{Variable: "PING"}) || p.Every != time.Minute || !p.Plain {
		t.Errorf("ping %+v", p)
	}
	if argv := f.Targets["desk"].Argv(); argv[0] != dir+"/tell.sh" {
		t.Errorf("%q", argv)
	}
}

// Who is told: what the agent says, else its group, else the defaults, else all.
func TestWhoIsTold(t *testing.T) {
	t.Parallel()
	f := mustLoad(t, write(t, `
version: 1
notify: {x: {command: [cat]}, y: {command: [cat]}, z: {command: [cat]}}
groups: {mail: {max-sessions: 1, notify: [y]}, other: {max-sessions: 1}}
agents:
  own: {dir: a, group: mail, notify: [z]}
  group: {dir: b, group: mail}
  default: {dir: c, group: other}
  nobody: {dir: d, notify: []}
defaults: {notify: [x]}
`))
	for name, want := range map[string]string{"own": "z", "group": "y", "default": "x", "nobody": ""} {
		if got := f.Agent(name).Notify; got == nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if g, _ := fleetWith(t, "notify: {x: {command: [cat]}}", ""); g.Agents[0].Notify != nil {
		t.Error("without a word it is not everybody")
	}
}

func TestProblemsOfTargets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"notify: {t: {}}":           "notify.t: does not say how it is told",
		"notify: {t: }":             "notify.t: does not say how it is told",
		"notify: {t: {tier: loud}}": `notify.t.tier: "loud" is not allowed`,
		"notify: [t]":               "notify: must be a mapping",
		"notify: {t: {command: [cat], webhook: 'https://a.example'}}":           "command and webhook are both given",
		"notify: {t: {command: [cat], body: ntfy}}":                             "a command has no body",
		"notify: {t: {webhook: 'https://a.example', webhook-file: x}}":          "webhook and webhook-file are both given",
		"notify: {t: {webhook: 'a.example'}}":                                   "notify.t.webhook: is not an address",
		"notify: {t: {webhook: 'https://me:pw@a.example'}}":                     "is a secret: who has this address can write there (put it into a file",
		"notify: {t: {webhook: 'https://hooks.slack.com/services/T/B/x'}}":      "is a secret",
		"notify: {t: {webhook: 'https://discord.com/api/webhooks/1/x'}}":        "is a secret",
		"notify: {t: {webhook: 'https://api.telegram.org/bot1:x/sendMessage'}}": "is a secret",
		"notify: {t: {webhook: 'https://a.example/?Token=x'}}":                  "is a secret",
		"notify: {t: {webhook: 'https://a.example', token: x}}":                 "a token does not belong in this file",
		"notify: {t: {webhook: 'https://a.example', body: telegram}}":           "notify.t.chat: is missing",
		"notify: {t: {webhook: 'https://a.example', chat: 5}}":                  "is only used with body: telegram",
		"notify: {t: {webhook-env: '$X'}}":                                      `"$X" is not the name of a variable`,
		"notify: {t: {webhook: 'https://a.example', quiet-hours: night}}":       `"night" are not hours`,
		"notify: {'a b': {command: [cat]}}":                                     `"a b" is not a name`,
		"ping: {}":                                                              "ping: does not say where to",
		"ping: {url: 'https://a.example', command: [cat]}":                      "url and command are both given",
		"ping: {url: 'https://a.example', every: 1s}":                           "1s is too short",
		"defaults: {notify: [phone]}":                                           `the target "phone" is not declared (declare it`,
		"notify: {phone: {command: [cat]}}\ndefaults: {notify: [phome]}":        `the target "phome" is not declared (did you mean phone?`,
		"notify: {t: {webhook-file: a/url}}":                                    "lies in the directory of agent",
		"notify: {t: {command: [a/tell]}}":                                      "lies in the directory of agent",
		"notify: {t: {command: [sh, a/tell]}}":                                  "lies in the directory of agent",
	} {
		path := write(t, "version: 1\n"+text+"\nagents: {a: {dir: a}}\n")
		if err := os.MkdirAll(filepath.Join(filepath.Dir(path), "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "a", "tell"), nil, 0o700); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(problemsOf(t, path), "\n"); !strings.Contains(got, want) || strings.Contains(got, "me:pw") {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// What makes a secret known to more than its owner is said.
func TestWarningsOfTargets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"notify: {t: {webhook: 'https://ntfy.sh/alerts', body: ntfy}}":                            "notify.t.webhook: who has this address can write there",
		"ping: {url: 'https://hc-ping.com/5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278'}":                 "ping.url: who has this address can write there",
		"notify: {t: {webhook: 'http://chat.example/x'}}":                                         "notify.t.webhook: what is sent there can be read and changed on the way",
		"notify: {t: {webhook-env: X}}":                                                           "notify.t.webhook-env: the variable X is not set here\n" + `notify.t.webhook-env: sessions of agent "a" get the variable X, too`,
		"notify: {t: {webhook-file: nothing}}":                                                    "notify.t.webhook-file: cannot read",
		"notify: {t: {command: [./nothing]}}":                                                     "notify.t.command[0]: ./nothing is not there",
		"notify: {t: {webhook: 'http://127.0.0.1:8080/alerts', body: ntfy}, u: {command: [cat]}}": "",
	} {
		_, got := fleetWith(t, text, "")
		if all := strings.Join(got, "\n"); want == "" && all != "" || !strings.HasPrefix(all, want) {
			t.Errorf("%s\ngot  %s\nwant %s", text, all, want)
		}
	}
}

func TestSecretsAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) Secret {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return Secret{File: path}
	}
	if text, err := file("good", "https://a.example/x\n", 0o600).Read(); err != nil || text != "https://a.example/x" {
		t.Errorf("%q, %v", text, err)
	}
	for name, s := range map[string]Secret{
		"others can read": file("open", "hush", 0o644), "is empty": file("empty", "\n", 0o600), "is not one word": file("two", "hush hush", 0o600),
		"no such file": {File: dir + "/none"}, "is not set": {Variable: "HEARTBEAT_TEST_NOTHING"},
	} {
		if text, err := s.Read(); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hush") || text != "" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
