package settings

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"heartbeat/hook/client"
)

// handler is one hook command in a file, with its place.
type handler struct {
	event          string
	matcher        string
	kind, command  string
	async          bool
	timeout        *value // or nil
	self           *value
	group          *value // {"matcher":…,"hooks":[…]}
	list           *value // the group's hooks
	index, groupAt int
}

// catchesAll reports whether its matcher matches everything.
func (h *handler) catchesAll() bool { return h.matcher == "" || h.matcher == "*" }

// hooks returns the hooks object (or nil) and all handlers, or what is wrong
// with their shape.
func (d *document) hooks() (*value, []handler, error) {
	hooks, err := d.want(d.root.find("hooks"), '{', "hooks")
	if err != nil || hooks == nil {
		return nil, nil, err
	}
	var all []handler
	for _, event := range hooks.items {
		if hooks.find(event.key) != event.value {
			continue // a duplicate key that does not count
		}
		place := "hooks." + event.key
		if _, err := d.want(event.value, '[', place); err != nil {
			return nil, nil, err
		}
		for i, g := range event.value.items {
			found, err := d.handlers(g.value, event.key, fmt.Sprintf("%s[%d]", place, i))
			if err != nil {
				return nil, nil, err
			}
			for j := range found {
				found[j].groupAt = i
			}
			all = append(all, found...)
		}
	}
	return hooks, all, nil
}

func (d *document) handlers(group *value, event, place string) ([]handler, error) {
	if _, err := d.want(group, '{', place); err != nil {
		return nil, err
	}
	list, err := d.want(group.find("hooks"), '[', place+".hooks")
	if err != nil || list == nil {
		return nil, err
	}
	matcher := text(group.find("matcher"))
	var all []handler
	for j, it := range list.items {
		if _, err := d.want(it.value, '{', fmt.Sprintf("%s.hooks[%d]", place, j)); err != nil {
			return nil, err
		}
		kind, command := text(it.value.find("type")), ""
		if kind == "command" { // otherwise the client runs none, whatever is there
			command = commandLine(it.value)
		}
		all = append(all, handler{
			event: event, matcher: matcher, kind: kind, command: command,
			async:   isTrue(it.value.find("async")) || isTrue(it.value.find("asyncRewake")),
			timeout: it.value.find("timeout"), self: it.value, group: group, list: list, index: j,
		})
	}
	return all, nil
}

func text(v *value) string {
	if v == nil || v.kind != '"' {
		return ""
	}
	return v.text
}

func isTrue(v *value) bool { return v != nil && v.kind == 't' }

// commandLine returns a handler's command; the form with args is written as one
// line.
func commandLine(v *value) string {
	command := text(v.find("command"))
	args := v.find("args")
	if args == nil || args.kind != '[' || command == "" {
		return command
	}
	command = Quote(command)
	for _, a := range args.items {
		command += " " + Quote(text(a.value))
	}
	return command
}

// rules are the parts of permissions that we change; each may be nil.
type rules struct{ self, allow, deny, mode *value }

func (d *document) permissions() (rules, error) {
	var r rules
	var err error
	if r.self, err = d.want(d.root.find("permissions"), '{', "permissions"); err != nil || r.self == nil {
		return r, err
	}
	if r.allow, err = d.want(r.self.find("allow"), '[', "permissions.allow"); err != nil {
		return r, err
	}
	if r.deny, err = d.want(r.self.find("deny"), '[', "permissions.deny"); err != nil {
		return r, err
	}
	r.mode, err = d.want(r.self.find("defaultMode"), '"', "permissions.defaultMode")
	return r, err
}

func (d *document) env() (*value, error) { return d.want(d.root.find("env"), '{', "env") }

// texts returns the strings of an array.
func texts(v *value) []string {
	if v == nil {
		return nil
	}
	var all []string
	for _, it := range v.items {
		if it.value.kind == '"' {
			all = append(all, it.value.text)
		}
	}
	return all
}

func (w Want) handler(event string) object {
	return object{{"type", "command"}, {"command", w.Command}, {"timeout", w.timeout(event)}}
}

func (w Want) group(event string) object {
	return object{{"hooks", []any{w.handler(event)}}}
}

// merger collects the splices of one Merge.
type merger struct {
	*document
	want    Want
	splices []splice
	root    []any // members to add to the root
}

func (m *merger) merge() error {
	if err := m.mergeHooks(); err != nil {
		return err
	}
	if err := m.mergePermissions(); err != nil {
		return err
	}
	if err := m.mergeEnv(); err != nil {
		return err
	}
	m.splices = append(m.splices, m.change(m.document.root, nil, m.root)...)
	return nil
}

func (m *merger) mergeHooks() error {
	hooks, handlers, err := m.hooks()
	if err != nil {
		return err
	}
	var add []any
	for _, event := range client.Claude.Hooks.Installed {
		if hooks == nil || hooks.find(event) == nil {
			add = append(add, member{event, []any{m.want.group(event)}})
		}
	}
	if hooks == nil {
		m.root = append(m.root, member{"hooks", object(members(add))})
		return nil
	}
	m.splices = append(m.splices, m.change(hooks, nil, add)...)
	for _, event := range hooks.items {
		if hooks.find(event.key) == event.value {
			m.mergeEvent(event.key, event.value, handlers)
		}
	}
	return nil
}

func members(all []any) []member {
	out := make([]member, len(all))
	for i, a := range all {
		out[i] = a.(member)
	}
	return out
}

// mergeEvent keeps the first of our entries that is called for everything, in its
// right form, removes all others, and adds one if none is left.
func (m *merger) mergeEvent(event string, list *value, handlers []handler) {
	wanted := slices.Contains(client.Claude.Hooks.Installed, event)
	kept := false
	cuts := map[*value]map[int]bool{}
	left := map[*value]int{} // handlers that remain, by group
	groups := map[*value]handler{}
	for _, h := range handlers {
		if h.event != event {
			continue
		}
		groups[h.group] = h
		left[h.group]++
		if !m.want.owns(h.command) {
			continue
		}
		if wanted && !kept && h.catchesAll() {
			kept = true
			m.correct(h)
			continue
		}
		if cuts[h.group] == nil {
			cuts[h.group] = map[int]bool{}
		}
		cuts[h.group][h.index] = true
		left[h.group]--
	}
	gone := map[int]bool{}
	for group, cut := range cuts {
		if left[group] == 0 {
			gone[groups[group].groupAt] = true
			continue
		}
		m.splices = append(m.splices, m.change(groups[group].list, cut, nil)...)
	}
	var add []any
	if wanted && !kept {
		add = []any{m.want.group(event)}
	}
	m.splices = append(m.splices, m.change(list, gone, add)...)
}

// correct gives one of our entries the wanted command and time-out, in place.
func (m *merger) correct(h handler) {
	want := m.want.handler(h.event)
	seen := map[string]bool{}
	for _, it := range h.self.items {
		if seen[it.key] || !slices.ContainsFunc(want, func(w member) bool { return w.key == it.key }) {
			// Anything that we do not write, such as async, would change what the
			// entry does.
			m.splices = append(m.splices, splice{h.self.start, h.self.end, m.text(h.self, want)})
			return
		}
		seen[it.key] = true
	}
	var add []any
	for _, w := range want {
		v := h.self.find(w.key)
		switch {
		case v == nil:
			add = append(add, w)
		case !m.same(v, w.value):
			m.splices = append(m.splices, splice{v.start, v.end, m.text(v, w.value)})
		}
	}
	m.splices = append(m.splices, m.change(h.self, nil, add)...)
}

func (m *merger) same(v *value, want any) bool {
	switch want := want.(type) {
	case string:
		return v.kind == '"' && v.text == want
	case int:
		f, err := strconv.ParseFloat(string(m.src[v.start:v.end]), 64)
		return v.kind == '0' && err == nil && f == float64(want)
	}
	return false
}

func (m *merger) mergePermissions() error {
	r, err := m.permissions()
	if err != nil {
		return err
	}
	var add []any
	for _, l := range []struct {
		key  string
		have *value
		want []string
	}{{"allow", r.allow, m.want.Allow}, {"deny", r.deny, m.want.Deny}} {
		var missing []any
		for _, rule := range without(l.want, texts(l.have)) {
			missing = append(missing, rule)
		}
		switch {
		case len(missing) == 0:
		case l.have != nil:
			m.splices = append(m.splices, m.change(l.have, nil, missing)...)
		default:
			add = append(add, member{l.key, missing})
		}
	}
	if r.mode == nil && m.want.DefaultMode != "" {
		add = append(add, member{"defaultMode", m.want.DefaultMode})
	}
	m.extend(r.self, "permissions", add)
	return nil
}

func (m *merger) mergeEnv() error {
	env, err := m.env()
	if err != nil {
		return err
	}
	var add []any
	for _, name := range slices.Sorted(maps.Keys(m.want.Env)) {
		if env == nil || env.find(name) == nil {
			add = append(add, member{name, m.want.Env[name]})
		}
	}
	m.extend(env, "env", add)
	return nil
}

// extend adds members to an object of the root, which may not exist yet.
func (m *merger) extend(v *value, key string, add []any) {
	switch {
	case len(add) == 0:
	case v == nil:
		m.root = append(m.root, member{key, object(members(add))})
	default:
		m.splices = append(m.splices, m.change(v, nil, add)...)
	}
}
