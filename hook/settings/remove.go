package settings

import "slices"

// marked returns the values that removal takes away: with hooks, all of our
// entries, and whatever w asks for.
func (d *document) marked(w Want, hooks bool) (map[*value]bool, error) {
	dead := map[*value]bool{}
	_, handlers, err := d.hooks()
	if err != nil {
		return nil, err
	}
	left := map[*value]int{}
	for _, h := range handlers {
		left[h.group]++
		if hooks && w.owns(h.command) {
			dead[h.self] = true
			if left[h.group]--; left[h.group] == 0 && h.index == len(h.list.items)-1 {
				dead[h.group] = true // with its matcher
			}
		}
	}
	r, err := d.permissions()
	if err != nil {
		return nil, err
	}
	markTexts(dead, r.allow, w.Allow)
	markTexts(dead, r.deny, w.Deny)
	if r.mode != nil && r.mode.text == w.DefaultMode {
		dead[r.mode] = true
	}
	env, err := d.env()
	if err != nil {
		return nil, err
	}
	for name, want := range w.Env {
		if env == nil {
			break
		}
		if v := env.find(name); v != nil && v.kind == '"' && v.text == want {
			dead[v] = true
		}
	}
	return dead, nil
}

func markTexts(dead map[*value]bool, list *value, rules []string) {
	if list == nil {
		return
	}
	for _, it := range list.items {
		if it.value.kind == '"' && slices.Contains(rules, it.value.text) {
			dead[it.value] = true
		}
	}
}

// sweep cuts dead values, and the containers that become empty.
func (d *document) sweep(dead map[*value]bool) []splice {
	if len(dead) == 0 {
		return nil
	}
	splices, empty := d.sweepIn(d.root, dead)
	if empty {
		return []splice{{from: d.root.start + 1, to: d.root.end - 1}}
	}
	return splices
}

func (d *document) sweepIn(v *value, dead map[*value]bool) (out []splice, empty bool) {
	cut := map[int]bool{}
	for i, it := range v.items {
		if dead[it.value] && !shadows(v, i) {
			cut[i] = true
			continue
		}
		inner, gone := d.sweepIn(it.value, dead)
		if gone && shadows(v, i) {
			// Without it an earlier key of the same name would count again.
			inner, gone = []splice{{from: it.value.start + 1, to: it.value.end - 1}}, false
		}
		if gone {
			cut[i] = true
			continue
		}
		out = append(out, inner...)
	}
	if len(cut) == 0 {
		return out, false
	}
	if len(cut) == len(v.items) {
		return nil, true
	}
	return append(out, d.change(v, cut, nil)...), false
}

// shadows reports whether an item hides another one with the same key.
func shadows(v *value, i int) bool {
	return v.kind == '{' && slices.ContainsFunc(v.items[:i], func(it item) bool { return it.key == v.items[i].key })
}
