package config

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode"
)

// Secret is a text that may stand in the fleet's file, or in a place that nobody else
// can read. At most one of the fields is set; the zero value is no secret at all.
type Secret struct {
	Text string // it stands in the fleet's file, and is none
	// File is an absolute path, Variable one of the scheduler's own environment.
	File, Variable string
}

// mostSecret bounds a secret in bytes: an address, or a token.
const mostSecret = 8 << 10

// Read returns the text. An error names where it should be, never what is there.
func (s Secret) Read() (string, error) {
	text := s.Text
	switch {
	case s.File != "":
		data, err := readPrivate(s.File)
		if err != nil {
			return "", fmt.Errorf("cannot read %q: %w", s.File, reason(err))
		}
		text = strings.TrimSpace(string(data))
	case s.Variable != "":
		text = strings.TrimSpace(os.Getenv(s.Variable))
	}
	switch {
	case text == "" && s.Variable != "":
		return "", fmt.Errorf("the variable %s is not set", s.Variable)
	case text == "":
		return "", fmt.Errorf("%q is empty", s.File)
	case len(text) > mostSecret || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }):
		return "", fmt.Errorf("%s is not one word: it should hold the secret and nothing else", s.where())
	}
	return text, nil
}

func (s Secret) where() string {
	if s.Variable != "" {
		return "the variable " + s.Variable
	}
	return fmt.Sprintf("%q", s.File)
}

// hidden is a place that names where a secret is kept.
type hidden struct {
	where place
	Secret
}

// secret reads KEY, KEY-file or KEY-env, at most one of them.
func (l *loader) secret(t table, key string) Secret {
	var s Secret
	ways := l.given(t, key, key+"-file", key+"-env")
	if len(ways) == 0 {
		return s
	}
	if len(ways) > 1 {
		l.problem(t[ways[1]].named(), ways[0]+" and "+ways[1]+" are both given", "remove one of them")
	}
	p := t[ways[0]]
	switch ways[0] {
	case key:
		s.Text = l.address(p, key)
		return s
	case key + "-file":
		if s.File, _ = l.expand(p); s.File == "" {
			return s
		}
		l.names(p, s.File)
	default:
		name, ok := l.filled(p)
		if ok && !variableForm().MatchString(name) {
			l.problem(p, fmt.Sprintf("%q is not the name of a variable", cut(name)), "letters, digits and _, no digit first")
			return s
		}
		s.Variable = name
	}
	l.claims.secrets = append(l.claims.secrets, hidden{p, s})
	return s
}

// address reads an address that is no secret. No message repeats it.
func (l *loader) address(p place, key string) string {
	text, ok := l.filled(p)
	if !ok {
		return ""
	}
	hint := "put it into a file that only you can read (chmod 600), and write " + key + "-file: PATH"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		l.problem(p, "is not an address", "for example https://ntfy.example.org/alerts")
		return ""
	case confidential(u):
		l.problem(p, "is a secret: who has this address can write there", hint)
		return ""
	case unguessable(u) || u.Hostname() == "ntfy.sh":
		l.warn(p, "who has this address can write there, and everybody who reads this file has it", hint)
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		l.warn(p, "what is sent there can be read and changed on the way", "write https, if the server has it")
	}
	return text
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

var (
	secretHosts = pattern(`(?i)(^|\.)(hooks\.slack\.com|webhook\.office\.com|chat\.googleapis\.com)$`)
	secretPaths = pattern(`(?i)^/(api/webhooks/|bot[0-9]+:)`)
	secretNames = []string{"token", "key", "apikey", "api_key", "secret", "sig", "signature", "auth", "password", "access_token"}
	randomPart  = pattern(`^[A-Za-z0-9_-]{16,}$`)
)

// confidential reports whether an address is known to be a secret itself.
func confidential(u *url.URL) bool {
	for name := range u.Query() {
		if slices.Contains(secretNames, strings.ToLower(name)) {
			return true
		}
	}
	return u.User != nil || secretHosts().MatchString(u.Hostname()) || secretPaths().MatchString(u.Path)
}

// unguessable reports whether a part of an address looks as if it was made so that
// nobody can guess it.
func unguessable(u *url.URL) bool {
	return slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool {
		return randomPart().MatchString(part) && strings.ContainsAny(part, "0123456789") && strings.ContainsAny(strings.ToLower(part), "abcdefghijklmnopqrstuvwxyz")
	})
}

// exposed warns about a secret that cannot be read now, and about one that sessions
// get to see.
func (l *loader) exposed(s hidden) {
	if s.File != "" {
		if _, err := s.Read(); err != nil {
			l.warn(s.where, err.Error(), "nothing is sent without it")
		}
		return
	}
	if _, set := l.lookup(s.Variable); !set {
		l.warn(s.where, "the variable "+s.Variable+" is not set here", "nothing is sent without it; a service has an environment of its own")
	}
	for _, d := range l.agents {
		if len(passed([]string{s.Variable + "="}, d.EnvAllow, d.EnvDeny)) > 0 {
			l.warn(s.where, fmt.Sprintf("sessions of agent %q get the variable %s, too", d.Name, s.Variable), "write env-deny: ["+s.Variable+"] in defaults")
			return
		}
	}
}
