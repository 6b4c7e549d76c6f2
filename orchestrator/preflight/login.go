package preflight

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"heartbeat/hook/client"
)

// Login is what the client can log in with, as far as that can be seen.
type Login struct {
	Is LoginIs
	// By is what there is, or why there is nothing.
	By string
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
	_, noFile := os.Stat(filepath.Join(c.ConfigDir(), client.Claude.Settings.Login))
	switch {
	case key && !rejected:
		return Login{LoginThere, known.Key}
	case noFile == nil || own.Account != nil:
		return Login{LoginThere, "a saved login"}
	}
	for _, name := range []string{known.Token, known.Login, known.Key} {
		if name != known.Key && c.Env[name] != "" || setBy(all, name) {
			return Login{LoginThere, name}
		}
	}
	if by := c.perhaps(all); by != "" {
		return Login{LoginUnsure, by}
	}
	switch {
	case c.system() == "darwin":
		return Login{LoginUnsure, "the keychain, if at all"}
	case rejected:
		return Login{NoLogin, "the API key in the environment was refused once in the client's dialog, and there is no other login"}
	}
	return Login{NoLogin, "no key, no token and no saved login"}
}

// perhaps is what may be a login, which the client or another service decides, or "".
func (c Client) perhaps(all []Settings) string {
	for _, s := range all {
		if s.Document().KeyHelper {
			return "apiKeyHelper in " + s.Name
		}
	}
	known := client.Claude.Variables
	for _, pattern := range known.Logins {
		like := func(name string) bool {
			ok, err := path.Match(pattern, name)
			return ok && err == nil && name != known.Key
		}
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
		"claude setup-token, or run claude once and log in",
	}}
}
