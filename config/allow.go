package config

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// ErrUnclear means that a file is written in a way in which a rule cannot be added for an agent
// without changing something else.
var ErrUnclear = errors.New("the file is written in a way that only a person can change here")

// AllowRule returns the text of a file of a fleet in which an agent may use what a rule names,
// beside what it may now. All else stays as it is written: what may is put before the first
// rule, or key, that is there already.
func AllowRule(text []byte, agent string, may Permissions, rule string) ([]byte, error) {
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil || len(file.Content) == 0 {
		return nil, ErrUnclear
	}
	declared := valueOf(valueOf(file.Content[0], "agents"), agent)
	permissions := valueOf(declared, "permissions")
	rules := valueOf(permissions, "allow")
	more := Permissions{Mode: may.Mode, Allow: append([]string{rule}, may.Allow...), Deny: may.Deny}
	var changed []byte
	switch {
	case rules != nil && rules.Kind == yaml.SequenceNode && len(rules.Content) > 0:
		changed = before(text, rules.Content[0], strconv.Quote(rule), rules.Style&yaml.FlowStyle != 0)
	case rules != nil && rules.Kind == yaml.SequenceNode:
		changed = put(text, rules, 1, strconv.Quote(rule))
	case rules == nil && permissions != nil && len(permissions.Content) > 0:
		changed = before(text, permissions.Content[0], "allow: ["+strconv.Quote(rule)+"]", permissions.Style&yaml.FlowStyle != 0)
	case permissions == nil && declared != nil && len(declared.Content) > 0:
		changed = before(text, declared.Content[0], "permissions: "+more.inline(), declared.Style&yaml.FlowStyle != 0)
	}
	if changed == nil || !onlyAllows(text, changed, agent, rule, more) {
		return nil, ErrUnclear
	}
	return changed, nil
}

// valueOf returns the value of a key of a mapping, or nil.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// inline is a value of the key permissions.
func (p Permissions) inline() string {
	var text strings.Builder
	text.WriteString("{mode: " + p.Mode)
	for _, list := range []struct {
		key   string
		rules []string
	}{{"allow", p.Allow}, {"deny", p.Deny}} {
		if len(list.rules) == 0 {
			continue
		}
		var quoted []string
		for _, rule := range list.rules {
			quoted = append(quoted, strconv.Quote(rule))
		}
		text.WriteString(", " + list.key + ": [" + strings.Join(quoted, ", ") + "]")
	}
	return text.String() + "}"
}

// before puts an entry before the first one of a list or a mapping: on the same line if that is
// written in brackets (flow), otherwise on a line of its own that begins as that one does.
func before(text []byte, first *yaml.Node, entry string, flow bool) []byte {
	if flow {
		return put(text, first, 0, entry+", ")
	}
	at := offset(text, first)
	if at < 0 {
		return nil
	}
	end := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		end = "\r\n"
	}
	begin := string(text[bytes.LastIndexByte(text[:at], '\n')+1 : at])
	return put(text, first, 0, entry+end+begin)
}

// put puts an entry some bytes behind where a node begins.
func put(text []byte, n *yaml.Node, behind int, entry string) []byte {
	at := offset(text, n)
	if at < 0 || at+behind > len(text) {
		return nil
	}
	return slices.Concat(text[:at+behind], []byte(entry), text[at+behind:])
}

// offset returns where a node begins in a text, or -1. Its column counts characters.
func offset(text []byte, n *yaml.Node) int {
	at := 0
	for range n.Line - 1 {
		next := bytes.IndexByte(text[at:], '\n')
		if next < 0 {
			return -1
		}
		at += next + 1
	}
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(text[at:])
		if at += size; size == 0 {
			return -1
		}
	}
	return at
}

// onlyAllows reports whether a changed text says what it said before, and allows more to one
// agent.
func onlyAllows(text, changed []byte, agent, rule string, more Permissions) bool {
	var was, is map[string]any
	if yaml.Unmarshal(text, &was) != nil || yaml.Unmarshal(changed, &is) != nil {
		return false
	}
	agents, _ := was["agents"].(map[string]any)
	declared, _ := agents[agent].(map[string]any)
	if declared == nil {
		return false
	}
	permissions, own := declared["permissions"].(map[string]any)
	switch rules, _ := permissions["allow"].([]any); {
	case own:
		permissions["allow"] = append([]any{rule}, rules...)
	case declared["permissions"] != nil:
		return false
	default:
		var all map[string]any
		if yaml.Unmarshal([]byte(more.inline()), &all) != nil {
			return false
		}
		declared["permissions"] = all
	}
	return reflect.DeepEqual(was, is)
}
