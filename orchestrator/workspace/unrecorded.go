package workspace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/settings"
)

// planUnrecorded removes our hooks from settings files for which no record says
// what was applied: the state directory is another one, for example after a move.
// Rules may have been the person's before, so they stay and are named.
func (p *Plan) planUnrecorded(declared *config.Agent, file string) error {
	for _, t := range []config.SettingsTarget{config.SettingsProject, config.SettingsLocal} {
		path := p.target(t)
		if slices.ContainsFunc(p.Items, func(i Item) bool { return i.file == path }) {
			continue // there is a record under an earlier name of the fleet
		}
		if by := p.another(path, file); by != "" {
			p.Notes = append(p.Notes, fmt.Sprintf("agent %q: %q is wired by the fleet of %q, whose unapply takes it back", p.Agent.Name, path, by))
			continue
		}
		rec, err := p.applied(path)
		if err != nil {
			return err
		}
		if rec != nil && rec.fresh { // from before the folder was moved
			err = p.planRetiring(path)
		}
		if err != nil {
			return err
		}
		if rec != nil {
			continue
		}
		current, err := p.read(path)
		if err != nil {
			p.Notes = append(p.Notes, fmt.Sprintf("agent %q: cannot look for our hooks: %v", p.Agent.Name, err))
			continue
		}
		p.unhook(path, current, declared)
	}
	return nil
}

// another returns the file of another fleet that has applied to a settings file
// since, or "".
func (p *Plan) another(path, file string) string {
	for _, o := range p.others(path) {
		if strange(o.File, file, p.stateDir) {
			return o.File
		}
	}
	return ""
}

// unhook plans to remove our hooks from a settings file.
func (p *Plan) unhook(path string, current []byte, declared *config.Agent) {
	report, err := settings.Inspect(current)
	var next []byte
	if err == nil {
		next, err = withoutOurs(current)
	}
	switch {
	case err != nil:
		p.Notes = append(p.Notes, fmt.Sprintf("agent %q: cannot look for our hooks in %q: %v", p.Agent.Name, path, err))
		return
	case bytes.Equal(next, current):
		return
	}
	p.file(path, current, next)
	p.steps = append(p.steps, func() error { return p.write(path, current, next) })
	note := fmt.Sprintf("agent %q: nothing on record says what %q was before (its folder was moved, or the state directory is another one); our hooks go", p.Agent.Name, path)
	if rules := ruled(report, declared); len(rules) > 0 {
		note += ", and these permission rules stay, which may be of heartbeat or of yours: " + strings.Join(rules, ", ")
	}
	p.Notes = append(p.Notes, note)
}

// ruled returns the rules of a settings file that applying would have added.
func ruled(report *settings.Report, declared *config.Agent) []string {
	var found []string
	for _, rule := range report.Allow {
		if slices.Contains(declared.Permissions.Allow, rule) || slices.Contains(settings.Grants(), rule) {
			found = append(found, rule)
		}
	}
	for _, rule := range report.Deny {
		if slices.Contains(declared.Permissions.Deny, rule) || slices.Contains(settings.Guards(declared.Guarded...), rule) || slices.Contains(settings.Denials(), rule) {
			found = append(found, rule)
		}
	}
	return found
}
