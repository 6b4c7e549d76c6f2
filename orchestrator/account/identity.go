package account

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ID names an account: what limits and logins belong to. It holds no secret.
type ID string

// clouds are the providers that the client reaches with credentials of another
// kind: the variable that chooses one, and those that say whose it is.
var clouds = []struct {
	choose, name string
	whose        []string
}{
	{"CLAUDE_CODE_USE_BEDROCK", "bedrock", []string{"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "ANTHROPIC_BEDROCK_BASE_URL"}},
	{"CLAUDE_CODE_USE_VERTEX", "vertex", []string{"ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUD_ML_REGION", "ANTHROPIC_VERTEX_BASE_URL"}},
	{"CLAUDE_CODE_USE_FOUNDRY", "foundry", []string{"ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL", "ANTHROPIC_FOUNDRY_API_KEY"}},
}

// Of returns the account that a client works on which is started with an
// environment, as the client chooses it (measured in 2.1.329): a key and a token
// in the environment come before a token for unattended use, and that before
// the login, which the client's own file names. Its token may be refreshed, so
// it is not asked.
func Of(env []string) ID {
	get := getter(env)
	for _, c := range clouds {
		if chosen(get(c.choose)) {
			return ID(c.name + " " + hashOf(all(get, c.whose...)...))
		}
	}
	provider := providerOf(get("ANTHROPIC_BASE_URL"))
	file := configFile(get)
	f := read(file)
	key := get("ANTHROPIC_API_KEY")
	if f.rejects(key) {
		key = ""
	}
	switch token := get("ANTHROPIC_AUTH_TOKEN"); {
	case key != "" || token != "":
		return ID(provider + " key " + hashOf(key, token))
	case get("CLAUDE_CODE_OAUTH_TOKEN") != "":
		return ID(provider + " token " + hashOf(get("CLAUDE_CODE_OAUTH_TOKEN")))
	case f.OAuthAccount.UUID != "":
		return ID(provider + " login " + hashOf(f.OAuthAccount.UUID))
	}
	return ID(provider + " unknown " + hashOf(file)) // a helper's key, or nobody has logged in
}

func getter(env []string) func(string) string {
	return func(name string) string {
		for _, kv := range slices.Backward(env) { // the last one counts
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// chosen is how the client reads a switch.
func chosen(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

func all(get func(string) string, names ...string) []string {
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = get(name)
	}
	return values
}

// providerOf names who answers at a base URL, without what may be secret in it.
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

// hashOf is short, and different for different values.
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

// configFile is where the client keeps what it knows of its user.
func configFile(get func(string) string) string {
	const name = ".claude.json"
	if dir := get("CLAUDE_CONFIG_DIR"); dir != "" {
		return filepath.Join(dir, name)
	}
	return filepath.Join(get("HOME"), name)
}

// maxFile bounds what is read: the client keeps much of what it did there.
const maxFile = 64 << 20

// read reads the client's file. One that cannot be read tells nothing.
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
