package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/client"
)

// Login is what the client can log in with, as far as that can be seen.
type Login struct {
	Is LoginIs
	// By is what there is, or why there is nothing.
	By string
	// Ends is when a saved login ends for good, if nobody logs in again; zero: that is not
	// known. `claude auth status` prints it as loginExpiresAt (2.1.318).
	Ends time.Time
	// Given is true for what a variable or a setting gives: it comes before a saved login,
	// and nobody changes it with /login.
	Given bool
}

// LoginIs is how much is known of a login.
type LoginIs int

// There is none; there may be one, which only a session tells; it is there,
// whether it is still valid or not.
const (
	NoLogin LoginIs = iota
	LoginUnsure
	LoginThere
)

// Login looks at the environment, the settings and the client's own files. On
// darwin the client may have one in the keychain, which is not asked here.
func (c Client) Login(all []Settings) Login {
	own, known := c.ownFile(), client.Claude.Variables
	key, _, rejected := own.knows(c.Env[known.Key])
	path := c.loginFile()
	dead, ends, saved := savedLogin(path)
	switch {
	case key && !rejected:
		return Login{Is: LoginThere, By: known.Key, Given: true}
	case saved && dead == "":
		l := Login{Is: LoginThere, By: "a saved login"}
		if c.given(all) == "" && c.perhaps(all) == "" {
			l.Ends = ends
		}
		return l
	}
	if name := c.given(all); name != "" {
		return Login{Is: LoginThere, By: name, Given: true}
	}
	if by := c.perhaps(all); by != "" {
		return Login{Is: LoginUnsure, By: by, Given: true}
	}
	switch {
	case c.system() == "darwin":
		return Login{Is: LoginUnsure, By: "the keychain, if at all"}
	case saved:
		return Login{By: fmt.Sprintf("the saved login cannot be used: %s %s", path, dead)}
	case own.Account != nil:
		return Login{Is: LoginUnsure, By: "an account that " + c.ownPath() + " names, without " + path}
	case rejected:
		return Login{By: "the API key in the environment was refused once in the client's dialog, and there is no other login"}
	}
	return Login{By: "no key, no token and no saved login"}
}

// loginFile is the file in which the client saves a login.
func (c Client) loginFile() string {
	return filepath.Join(c.ConfigDir(), client.Claude.Settings.Login)
}

// given is the variable by which the environment or settings log in, but for a key that the
// client has asked about; "": none.
func (c Client) given(all []Settings) string {
	known := client.Claude.Variables
	for _, name := range []string{known.Token, known.Login, known.Key} {
		if name != known.Key && c.Env[name] != "" || setBy(all, name) {
			return name
		}
	}
	return ""
}

// savedLogin looks at the file in which the client saves a login. dead says why nothing
// in it can be used, or is "": as Claude Code 2.1.329 has it, which empties both tokens
// when the service refuses to renew them. ends is when nothing in it can be used any more,
// or zero. Whether the service still accepts what is there, only a request tells. saved is
// false where there is no file.
func savedLogin(path string) (dead string, ends time.Time, saved bool) {
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ends, false
	}
	var file struct {
		Login struct {
			Token   string `json:"accessToken"`
			Renewal string `json:"refreshToken"`
			// In milliseconds since 1970; 0: it is not told.
			Expires        int64 `json:"expiresAt"`
			RenewalExpires int64 `json:"refreshTokenExpiresAt"`
		} `json:"claudeAiOauth"`
	}
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	l := file.Login
	if l.Expires != 0 && (l.Renewal == "" || l.RenewalExpires != 0) {
		ends = time.UnixMilli(max(l.Expires, l.RenewalExpires))
	}
	switch {
	case err != nil:
		return "cannot be read: " + err.Error(), time.Time{}, true
	case l.Token == "":
		return "holds no token: the service has ended that login, or somebody has logged out", ends, true
	case !ends.IsZero() && !time.Now().Before(ends):
		return "expired at " + ends.Format(time.DateTime) + ", and holds nothing to renew it", ends, true
	}
	return "", ends, true
}

// Ending is a saved login that ends soon.
type Ending struct {
	File string    `json:"file"`
	At   time.Time `json:"at"`
	// Fix is what a person does about it.
	Fix string `json:"fix"`
}

// Text says which login ends when.
func (e Ending) Text() string {
	return "the login in " + e.File + " ends at " + e.At.Local().Format("2006-01-02 15:04")
}

// endsSoon is how long before its end a login is told of.
const endsSoon = 48 * time.Hour

// mostLogins is how many agents are asked for their logins: most have the same one.
const mostLogins = 200

// EndingLogins returns the saved logins of agents' clients that end within two days, each
// once. base is the environment from which sessions are started.
func EndingLogins(agents []*config.Agent, base []string, now time.Time) []Ending {
	var found []Ending
	seen := map[string]bool{}
	for _, a := range agents[:min(len(agents), mostLogins)] {
		c := ClientOf(a, base)
		path := c.loginFile()
		if seen[path] || !c.Known() || c.NoEnv != nil {
			continue
		}
		if dead, ends, _ := savedLogin(path); dead != "" || ends.IsZero() || ends.Sub(now) > endsSoon {
			seen[path] = true
			continue
		}
		if l := c.Login(c.Settings()); !l.Ends.IsZero() { // another agent may have a key instead
			seen[path] = true
			found = append(found, Ending{File: path, At: l.Ends, Fix: c.logIn()})
		}
	}
	return found
}

// perhaps is what may be a login, which the client or another service decides, or "".
func (c Client) perhaps(all []Settings) string {
	for _, s := range all {
		if s.Document().KeyHelper {
			return "apiKeyHelper in " + s.Name
		}
	}
	known := client.Claude.Variables
	like := func(name string) bool { return name != known.Key && known.LogsIn(name) }
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if like(name) && c.Env[name] != "" {
			return name
		}
	}
	for _, s := range all {
		if s.Report == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(s.Report.Env)) {
			if like(name) && s.Report.Env[name] != "" {
				return name + " in " + s.Name
			}
		}
	}
	profiles := client.Claude.Settings.Profiles(c.Getter())
	if _, err := os.Stat(profiles); err == nil {
		return profiles
	}
	return ""
}

// setBy reports whether settings set a variable.
func setBy(all []Settings, name string) bool {
	return slices.ContainsFunc(all, func(s Settings) bool {
		value, _ := variable(s, name)
		return value != ""
	})
}

// loggedOut: each request would fail, after three minutes of tries.
func (c Client) loggedOut(all []Settings) []Obstacle {
	l := c.Login(all)
	if l.Is != NoLogin {
		return nil
	}
	return []Obstacle{{
		NotLoggedIn, l.By, "each request fails: sessions retry for about three minutes and end by an API failure",
		c.logIn(),
	}}
}

// logIn is what a person does for another login.
func (c Client) logIn() string {
	return "run " + c.typed() + ", and in it /login; for a token: claude setup-token"
}

// Relogin is what a person does where the service does not accept the client's login.
func (c Client) Relogin() string {
	if l := c.Login(c.Settings()); l.Given {
		return "replace " + l.By + " where it is set: env, env-file or settings of the agent, or the shell of heartbeat run (then restart that)"
	}
	return c.logIn()
}
