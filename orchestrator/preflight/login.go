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

	"heartbeat/hook/client"
)

// Login is what the client can log in with, as far as that can be seen.
type Login struct {
	Is LoginIs
	// By is what there is, or why there is nothing.
	By string
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
	path := filepath.Join(c.ConfigDir(), client.Claude.Settings.Login)
	dead, saved := savedLogin(path)
	switch {
	case key && !rejected:
		return Login{LoginThere, known.Key, true}
	case saved && dead == "":
		return Login{Is: LoginThere, By: "a saved login"}
	}
	for _, name := range []string{known.Token, known.Login, known.Key} {
		if name != known.Key && c.Env[name] != "" || setBy(all, name) {
			return Login{LoginThere, name, true}
		}
	}
	if by := c.perhaps(all); by != "" {
		return Login{LoginUnsure, by, true}
	}
	switch {
	case c.system() == "darwin":
		return Login{Is: LoginUnsure, By: "the keychain, if at all"}
	case saved:
		return Login{By: fmt.Sprintf("the saved login is of no use: %s %s", path, dead)}
	case own.Account != nil:
		return Login{Is: LoginUnsure, By: "an account that " + c.ownPath() + " names, without " + path}
	case rejected:
		return Login{By: "the API key in the environment was refused once in the client's dialog, and there is no other login"}
	}
	return Login{By: "no key, no token and no saved login"}
}

// savedLogin looks at the file in which the client saves a login. dead says why nothing
// in it can be used, or is "": as Claude Code 2.1.329 has it, which empties both tokens
// when the service refuses to renew them. Whether the service still accepts what is
// there, only a request tells. saved is false where there is no file.
func savedLogin(path string) (dead string, saved bool) {
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false
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
	over := func(at int64) bool { return at != 0 && time.Now().UnixMilli() >= at }
	switch l := file.Login; {
	case err != nil:
		return "cannot be read: " + err.Error(), true
	case l.Token == "":
		return "holds no token: the service has ended that login, or somebody has logged out", true
	case over(l.Expires) && (l.Renewal == "" || over(l.RenewalExpires)):
		at := time.UnixMilli(max(l.Expires, l.RenewalExpires))
		return "expired at " + at.Format(time.DateTime) + ", and holds nothing to renew it", true
	}
	return "", true
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
		return "see to " + l.By + ", by which its sessions log in: env, env-file or settings have it, or the environment of heartbeat run, which is to be started again then"
	}
	return c.logIn()
}
