package config

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"heartbeat/sources"
	requests "heartbeat/sources/webhook"
)

// webhook is a trigger that requests reach, with its places in the file.
type webhook struct {
	agent         *Agent
	path          string
	where, secret place // secret is where secret-file would stand
	guarded       bool  // it has one
}

var (
	// pathForm keeps paths such that a proxy passes them on as they are.
	pathForm = pattern(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)
	// headerForm is a header's name (RFC 9110, token), as people write one.
	headerForm = pattern(`^[A-Za-z0-9_-]+$`)
	fieldForm  = pattern(`^[^.\s][^.]*(\.[^.]+)*$`)
)

// mostPath is how long the path of a webhook may be.
const mostPath = 200

// taken are the paths of what else an address may serve.
var taken = []string{"/metrics", "/healthz", "/readyz"}

func (l *loader) webhook(at place, t table, prompt string) *WebhookTrigger {
	w := &WebhookTrigger{Prompt: prompt, SecretFile: l.secretFile(t)}
	path, ok := l.filled(t["webhook"])
	switch {
	case !ok:
	case len(path) > mostPath || !pathForm().MatchString(path):
		l.problem(t["webhook"], fmt.Sprintf("%q is not a path", cut(path)), "a slash, then letters, digits and . _ ~ -, for example /github")
	case slices.Contains(taken, path):
		l.problem(t["webhook"], path+" is served by metrics", "take another path")
	default:
		w.Path = path
		l.claims.webhooks = append(l.claims.webhooks, webhook{path: path, where: t["webhook"], secret: at.lacking("secret-file"), guarded: w.SecretFile != ""})
	}
	if p, ok := t["key"]; ok {
		if w.Key, ok = l.filled(p); ok {
			l.template(p, w.Key, promptData{kind: webhookKind}, false)
		}
	}
	if p, ok := t["match"]; ok {
		w.Match = l.match(p)
	}
	if service := w.replayable(); service != "" {
		l.warn(t["webhook"], "whoever has seen a request of "+service+" can send it again: its signature covers the body alone, not its id or its time",
			`write key: with what the body says of the event, for example key: "{{.JSON.action}} {{.JSON.issue.id}} {{.JSON.issue.updated_at}}"; it counts for 7 days`)
	}
	return w
}

// replayable returns the service whose requests can be sent again with another id and be
// another prompt, as far as the trigger says whose they are; "": nothing says so.
func (w *WebhookTrigger) replayable() (service string) {
	if w.SecretFile == "" || strings.Contains(w.Key, ".JSON") || strings.Contains(w.Key, ".Body") {
		return ""
	}
	says := []string{w.Path, w.Prompt, w.Key}
	for _, c := range w.Match {
		says = append(says, c.Header)
	}
	for _, text := range says {
		if service = requests.SignsBodyAlone(text); service != "" {
			return service
		}
	}
	return ""
}

// backup is a poll that backs up a webhook, with the place of the webhook's name.
type backup struct {
	poll  *PollTrigger
	where place
}

// backedUp checks that the polls among an agent's triggers back up webhooks among
// them, and that both tell what they fire for by a key.
func (l *loader) backedUp(all []Trigger) {
	for _, b := range l.claims.backups {
		i := slices.IndexFunc(all, func(t Trigger) bool { return t.Name == b.poll.BacksUp && t.Webhook != nil })
		switch {
		case b.poll.BacksUp == "":
		case i < 0:
			l.problem(b.where, fmt.Sprintf("the agent has no webhook with the name %q", cut(b.poll.BacksUp)), "write the name: of a webhook trigger of this agent")
		case all[i].Webhook.Key == "" || b.poll.Key == "":
			l.problem(b.where, "needs a key on both sides, to tell what both have seen", `write key: beside webhook:, and dedupe: key and key: beside poll:`)
		}
	}
	l.claims.backups = nil
}

func (l *loader) match(p place) (all []sources.Condition) {
	t, ok := l.table(p, matchKeys, func(key string) string {
		return "write match: {json: {" + cut(key) + ": …}}, or headers: instead of json:"
	})
	if !ok {
		return nil
	}
	for _, part := range []string{"headers", "json"} {
		where, ok := t[part]
		if !ok {
			continue
		}
		wants := maps.Collect(l.entries(where))
		for _, name := range slices.Sorted(maps.Keys(wants)) {
			c := sources.Condition{Values: l.wanted(wants[name])}
			switch {
			case part == "headers" && headerForm().MatchString(name):
				c.Header = http.CanonicalHeaderKey(name)
			case part == "json" && fieldForm().MatchString(name):
				c.Field = strings.Split(name, ".")
			default:
				l.problem(wants[name].named(), fmt.Sprintf("%q cannot be matched", cut(name)), "headers are names like X-GitHub-Event, fields of the body paths like issue.state")
				continue
			}
			all = append(all, c)
		}
	}
	return all
}

// wanted reads a value, or a list of them.
func (l *loader) wanted(p place) (all []string) {
	p = p.here()
	elements := []place{p}
	if p.node.Kind == yaml.SequenceNode {
		elements = nil
		for i, n := range p.node.Content {
			elements = append(elements, p.below(i, n))
		}
		if len(elements) == 0 {
			l.problem(p, "is empty", "write the values that are wanted")
		}
	}
	for _, e := range elements {
		if text, ok := l.word(e); ok {
			all = append(all, text)
		}
	}
	return all
}

// reachable checks that each webhook has a path of its own, an address that serves
// it, and a secret if others than this machine reach that address.
func (l *loader) reachable() {
	var served, open *listening
	for i := range l.claims.listening {
		if one := &l.claims.listening[i]; slices.Contains(one.Serves, ServesWebhooks) {
			served = one
			if !one.Local() {
				open = one
			}
		}
	}
	first := map[string]webhook{}
	for _, w := range l.claims.webhooks {
		if w.agent.Name == "" {
			continue // the defaults themselves belong to nobody
		}
		if other, twice := first[w.path]; twice {
			l.problem(w.where, fmt.Sprintf("the path %s is taken by agent %q, on %s", w.path, other.agent.Name, other.where.where(w.where)), "each webhook has a path of its own")
		}
		first[w.path] = w
		switch {
		case served == nil:
			l.problem(w.where, "no address serves webhooks", `write, at the top of the file, listen: [{address: ":8321", serve: [webhooks]}]`)
		case open != nil && !w.guarded:
			l.problem(w.secret, "is missing: everybody who reaches "+open.Address+" could queue prompts", "write secret-file: FILE; openssl rand -hex 32 > FILE makes one")
		}
	}
	if served != nil && len(first) == 0 {
		l.warn(served.where, "no trigger has a webhook, and this address serves them", "write a trigger with webhook: /PATH")
	}
}

// A secret that is shorter could be guessed; a longer one is probably another file.
const leastShared, mostShared = 16, 4096

// ReadSecret reads a secret: all of a file but for the blanks around it. The file
// must be a regular file that nobody else can read or change. Errors never quote it.
func ReadSecret(file string) ([]byte, error) {
	data, err := readPrivate(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read secret-file %q: %w", file, reason(err))
	}
	secret := bytes.TrimSpace(data)
	if len(secret) < leastShared || len(secret) > mostShared {
		return nil, fmt.Errorf("cannot use secret-file %q: a secret is %d to %d bytes long, and this one is %d; openssl rand -hex 32 makes one",
			file, leastShared, mostShared, len(secret))
	}
	return secret, nil
}
