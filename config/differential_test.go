package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"heartbeat/internal/testbed"
)

// beyond are the problems, as KEY: MESSAGE, that a schema cannot state: they are
// about more than one key, about another language than YAML, or about this
// machine. All others the schema has to refuse as well.
var beyond = regexp.MustCompile(strings.Join([]string{
	// Another language: schedules, templates, globs, zones, how long is too long.
	`\bcron: "`, `: there is no \{\{`, `: the template does not work: `, `\bwatch\[\d+\]: "[^"]*" (is not a valid pattern|never matches|is absolute|leads outside the agent's dir)$`,
	`: heartbeat's own files change`, `: "[^"]*" is not a pattern for names of variables$`, `: the time zone .* is not known$`, `: Claude Code refuses "`,
	`: \S+ is too long$`, `\bevery: .* is too short$`, `\b(max-entry|memory): .* is out of range$`, `: is \d+ bytes long$`, `: is a secret: `, `: .* are not hours$`,
	// More than one key.
	`\bdir: is missing$`, `: no agents are declared$`, `: is also the directory of agent`, `: lies inside the directory of agent`, `: contains the directory of agent`,
	`: differs from agent .* only in case$`, `: is declared already`, `: the name .* is taken by the trigger on line`,
	`: the group .* is not declared$`, `: the target .* is not declared$`, `: a command has no `, `: is only used with body: telegram$`, `\b(chat|token-file): is missing$`, `: .*with mode: persist and on-idle: tick`,
	// This machine, and other files.
	`: the variable .* is not set\b`, `: cannot (read|resolve|list) `, `: .* includes itself`, `\bdir: .* is (a home folder|a folder of the system)$`,
	`\binbox: .* is outside the agent's dir$`, `\binbox: "[^"]*" is the name of another heartbeat file$`, `\binbox: what lies in `,
	// Addresses and paths.
	`: "[^"]*" (is not HOST:PORT, :PORT or unix:PATH|is not an address of this machine|cannot be matched)$`, `: the path of a socket is at most`, `: .* is given twice, first on line`,
	`: is for (metrics|sockets)\b`, `: no address serves webhooks$`, `: is missing: everybody who reaches`, `: the path .* is taken by agent`, `: metrics and the agents' names could be read`,
	`\brate: .* is out of range$`, `: the agent has no webhook with the name`, `: needs a key on both sides`,
	// YAML itself.
	`: a key must be a word`, `begins with 0: some programs read`, `: the tag .* is not known$`,
}, "|"))

// verdicts are those of the loader, without what a schema cannot say, and of the
// schema.
func verdicts(t *testing.T, s *jsonschema.Schema, text []byte) (loader Problems, accepted bool, schema error) {
	t.Helper()
	_, err := parseText("/nonexistent/heartbeat.yaml", text)
	all, ok := errors.AsType[Problems](err)
	if err != nil && !ok {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, p := range all {
		if strings.HasPrefix(p.Message, "is given twice") {
			return nil, false, nil // which of them counts is nobody's to say
		}
		if !beyond.MatchString(p.Key + ": " + p.Message) {
			loader = append(loader, p)
		}
	}
	var document yaml.Node
	if yaml.Unmarshal(text, &document) != nil || len(document.Content) == 0 {
		return nil, false, errors.New("no YAML")
	}
	return loader, err == nil, s.Validate(asJSON(document.Content[0]))
}

// asJSON is what editors give the schema of a file.
func asJSON(n *yaml.Node) any {
	n = follow(n)
	switch n.Kind {
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, asJSON(c))
		}
		return list
	case yaml.MappingNode:
		own, merged := map[string]any{}, map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].ShortTag() != "!!merge" {
				own[n.Content[i].Value] = asJSON(n.Content[i+1])
				continue
			}
			if below, ok := asJSON(n.Content[i+1]).(map[string]any); ok {
				merged = below
			}
		}
		for key, value := range merged {
			if _, ok := own[key]; !ok {
				own[key] = value
			}
		}
		return own
	}
	var number float64
	var is bool
	switch tag := n.ShortTag(); {
	case tag == "!!null":
		return nil
	case tag == "!!bool" && n.Decode(&is) == nil:
		return is
	case (tag == "!!int" || tag == "!!float") && n.Decode(&number) == nil:
		data, err := json.Marshal(number)
		if err != nil {
			return "" // .inf
		}
		return json.Number(data)
	}
	return n.Value
}

// corpus are files that are shown, tried or found wrong elsewhere.
func corpus(t *testing.T) [][]byte {
	t.Helper()
	all := [][]byte{[]byte(everyField), Starter(), []byte("version: 1\nagents: {}"), []byte("version: 1\nagents:\n")}
	files, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "testdata/problems/everything.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	for path, p := range properties(t) {
		def, _, _ := strings.Cut(path, ".")
		if !slices.Contains([]string{"file", "agent", "permission", "cron", "watch", "poll", "target", "ping"}, def) {
			continue
		}
		values := append([]string{}, pool...)
		if words, ok := p["enum"].([]any); ok {
			for _, w := range words {
				values = append(values, fmt.Sprint(w))
			}
		}
		for _, value := range values {
			switch path {
			case "file.version":
				all = append(all, []byte("version: "+value+"\nagents: {a: {dir: x}}"))
				continue
			case "file.agents":
				all = append(all, []byte("version: 1\nagents: "+value))
				continue
			}
			all = append(all, []byte(declare(path, value)))
		}
	}
	return all
}

// pool are values of all kinds, as they are written.
var pool = []string{
	"~", "''", "' '", "x", "none", "entry", "0", "'0'", "1", "'1'", "-1", "+1", "1.0", "1.5", "1e3", "0x10", "010", "1_000", "3000000000", "true", "True", "'true'", "yes", "2026-01-01",
	"[]", "['']", "[x]", "[1]", "[~]", "[true]", "[[x]]", "['', x]", "[x, '']", "[1, 2.5, yes]", "{}", "{a: b}", "{a: ~}", "{1: 2}", "{HEARTBEAT_SESSION: x}", "{a b: c}",
	"1h", "1d12h", "12h1d", "1d1d", "+5s", "-5s", ".5h", ".5d", "1.d", "1.h", "0s", "0.0h", "5", "1 h", "1H", "5us", "5µs", "99999999999h", "64KiB", "'64 KiB'", "0MB", "64kib", "5 furlongs", "99MiB", "'65536 '",
	"$HOME/x", "${HOME}/x", "${HOME/x", "$(pwd)/x", "a$", "~/x", "~bob/x", "/x", "-x", " -x", "\"a\\0b\"", "\"a\\eb\"", "\"a\\tb\"", "a/b", "A=b", "'*'", "'@daily'", "'{{.At}}'", "'{{.JSON}}'", "name with blanks", "Ä",
	"{max-sessions: 1}", "{a: {max-sessions: 1}}", "{a: {max-sessions: x}}", "{a: {dir: y}}", "{a: }", "{'a b': {dir: y}}", "{" + strings.Repeat("a", 101) + ": {dir: y, max-sessions: 1}}", strings.Repeat("a", 101),
	"{poll: [x]}", "{poll: [x], prompt: ''}", "{poll: x}", "{cron: '@daily', prompt: x}", "{cron: '@daily'}", "{watch: ['*'], prompt: x, prompt-file: y}", "{poll: [x], dedupe: key}", "{poll: [x], key: x}", "{poll: [x], dedupe: none, key: x}",
	"[{poll: [x]}]", "[{}]", "[~]", "{mode: plan}", "{mode: default}", "{mode: ''}", "{allow: [Read]}", "{allow: ~}", "{allow: ['']}",
}

// TestSchemaAndLoaderJudgeAlike: what the loader takes the schema takes, and what
// it refuses the schema refuses, unless a schema cannot say it. It tries the
// corpus, each key with each value of the pool, and mutations of both.
func TestSchemaAndLoaderJudgeAlike(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	all := corpus(t)
	random := testbed.Chance(t, "mutations")
	many := 6000 / testbed.Stride(24)
	for range many {
		all = append(all, mutated(t, random, all[random.IntN(len(all))]))
	}
	different, taken := map[string]string{}, 0
	for _, text := range all {
		loader, accepted, schema := verdicts(t, s, text)
		if accepted {
			taken++
		}
		switch {
		case accepted && schema != nil:
			different["the schema refuses what the loader takes: "+lastLine(schema)] = string(text)
		case len(loader) > 0 && schema == nil:
			different["the schema takes: "+quoted.ReplaceAllString(loader[0].Key+": "+loader[0].Message, "…")] = string(text)
		}
	}
	for what, text := range different {
		t.Errorf("%s\n%s", what, indented(text))
	}
	t.Logf("%d files, %d taken", len(all), taken)
	if taken < many/12 || taken > len(all)*9/10 {
		t.Errorf("of %d files the loader took %d", len(all), taken)
	}
}

var quoted = regexp.MustCompile(`\d+|"[^"]*"`)

func lastLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return lines[len(lines)-1]
}

func indented(text string) string {
	return "\t" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n\t")
}

// mutated changes one or two places of a file.
func mutated(t *testing.T, random *rand.Rand, text []byte) []byte {
	t.Helper()
	var document yaml.Node
	if yaml.Unmarshal(text, &document) != nil || len(document.Content) == 0 {
		return text
	}
	for range 1 + random.IntN(2) {
		mutate(t, random, document.Content[0])
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	if encoder.Encode(&document) != nil { // an alias whose anchor has gone
		return text
	}
	return out.Bytes()
}

func mutate(t *testing.T, random *rand.Rand, root *yaml.Node) {
	t.Helper()
	var nodes []*yaml.Node
	var collect func(n *yaml.Node)
	collect = func(n *yaml.Node) {
		nodes = append(nodes, n)
		for _, c := range n.Content {
			collect(c)
		}
	}
	collect(root)
	n := nodes[random.IntN(len(nodes))]
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) > 2 && random.IntN(2) == 0: // a key less
		i := 2 * random.IntN(len(n.Content)/2)
		n.Content = slices.Delete(n.Content, i, i+2)
	case n.Kind == yaml.MappingNode && len(n.Content) > 0: // a key of another mapping
		other := nodes[random.IntN(len(nodes))]
		if other.Kind == yaml.MappingNode && len(other.Content) > 0 && other != n {
			i := 2 * random.IntN(len(other.Content)/2)
			for _, c := range other.Content[i : i+2] {
				n.Content = append(n.Content, copied(t, c))
			}
		}
	case n.Kind == yaml.ScalarNode || random.IntN(3) == 0: // another value, or key
		if value := parsed(t, pool[random.IntN(len(pool))]); value != nil {
			*n = *value
		}
	}
}

func copied(t *testing.T, n *yaml.Node) *yaml.Node {
	t.Helper()
	if data, err := yaml.Marshal(n); err == nil {
		if again := parsed(t, string(data)); again != nil {
			return again
		}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: "x"}
}

func parsed(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(document.Content) == 0 {
		return nil
	}
	return document.Content[0]
}
