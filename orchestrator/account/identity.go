package account

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"heartbeat/hook/client"
)

// ID names an account: what limits and logins belong to. It holds no secret.
type ID string

// MaySubscribe reports whether the account may be a subscription, which is billed
// whatever its sessions cost: it is none with a key, or with a cloud.
func (id ID) MaySubscribe() bool {
	for _, kind := range []string{" token ", " login ", " unknown "} {
		if strings.Contains(string(id), kind) {
			return true
		}
	}
	return false
}

// Of returns the account that a client uses when it is started with an environment,
// as the client chooses it (measured in 2.1.329): a key and a token in the
// environment come before a token for unattended use, and that before the login in
// the client's own file. The login's token may be refreshed, so it does not count.
func Of(env []string) ID {
	get, known := client.In(env), client.Claude.Variables
	for _, c := range known.Clouds {
		if client.On(get(c.Switch)) {
			return ID(c.Name + " " + hashOf(all(get, c.Whose...)...))
		}
	}
	provider := providerOf(get(known.Base))
	file := client.Claude.Settings.Own(get)
	f := read(file)
	key := get(known.Key)
	if f.rejects(key) {
		key = ""
	}
	switch token := get(known.Token); {
	case key != "" || token != "":
		return ID(provider + " key " + hashOf(key, token))
	case get(known.Login) != "":
		return ID(provider + " token " + hashOf(get(known.Login)))
	case f.OAuthAccount.UUID != "":
		return ID(provider + " login " + hashOf(f.OAuthAccount.UUID))
	}
	return ID(provider + " unknown " + hashOf(file)) // a helper's key, or nobody has logged in
}

// ZoneOf returns the time zone of a client with an environment.
func ZoneOf(env []string) *time.Location {
	if name := client.In(env)("TZ"); name != "" {
		if zone, err := time.LoadLocation(strings.TrimPrefix(name, ":")); err == nil {
			return zone
		}
	}
	return time.Local
}

func all(get client.Getter, names ...string) []string {
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = get(name)
	}
	return values
}

// providerOf names the provider at a base URL, without the parts that may be
// secret.
func providerOf(base string) string {
	if base == "" {
		return "anthropic"
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "other-" + hashOf(base)
	}
	if u.Host == "api.anthropic.com" {
		return "anthropic"
	}
	return u.Host
}

// hashOf returns a short hash, different for different values.
func hashOf(values ...string) string {
	sum := sha256.New()
	for _, v := range values {
		fmt.Fprintf(sum, "%d:%s", len(v), v)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// clientFile is .claude.json, as far as it says whose account is used.
type clientFile struct {
	OAuthAccount struct {
		UUID string `json:"accountUuid"`
	} `json:"oauthAccount"`
	Keys struct {
		Rejected []string `json:"rejected"` // the last 20 characters
	} `json:"customApiKeyResponses"`
}

func (f *clientFile) rejects(key string) bool {
	return key != "" && slices.Contains(f.Keys.Rejected, key[max(0, len(key)-20):])
}

// maxFile limits what is read: the client keeps a lot of what it did there.
const maxFile = 64 << 20

// read reads the client's file. One that cannot be read says nothing.
func read(path string) *clientFile {
	f := &clientFile{}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return f
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return f
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil || json.Unmarshal(data, f) != nil {
		return &clientFile{}
	}
	return f
}
