package config

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"gopkg.in/yaml.v3"
)

// The minimum that a session needs: with less the client does not start, and every
// session would fail. Client 2.1.329 has some 30 threads.
const (
	leastMemory    = 64 << 20
	leastProcesses = 64
	leastCPU       = 0.01 // of which the kernel can give a hundredth (cgroups: cpu.max)
)

// More than any machine has is most likely a typo.
const (
	mostMemory = 64 << 40
	mostCPU    = 4096
)

// grouping returns the defaults of an agent: what its group says overrides them.
func (l *loader) grouping(own, defaults table) table {
	group, ok := own["group"]
	if !ok {
		group, ok = defaults["group"]
	}
	if !ok {
		return defaults
	}
	shared := maps.Clone(l.ofGroup[follow(group.node).Value])
	if share, ok := shared["resources"]; ok {
		shared["resources"] = share.laidOver(defaults["resources"])
	}
	return shared.over(defaults)
}

// resources reads the limits of each session.
func (l *loader) resources(t table) Resources {
	var r Resources
	p, ok := t["resources"]
	if !ok {
		return r
	}
	fields, ok := l.table(p, resourceKeys, func(key string) string {
		switch strings.ToLower(key) {
		case "cpus", "cores":
			return "did you mean cpu?"
		case "pids", "tasks", "threads":
			return "did you mean processes?"
		case "mem", "ram":
			return "did you mean memory?"
		}
		return ""
	})
	if !ok {
		return r
	}
	r.Memory = l.size(fields, "memory", 0, leastMemory, mostMemory)
	if _, ok := fields["processes"]; ok {
		r.Processes = l.number(fields, "processes", leastProcesses, leastProcesses)
	}
	r.CPU = l.cores(fields, "cpu")
	r.Required = l.boolean(fields, "required")
	return r
}

// cores reads a number of processor cores; 0 is no limit.
func (l *loader) cores(t table, key string) float64 {
	return l.decimal(t, key, leastCPU, mostCPU, "a number of processor cores",
		"for example 1.5", fmt.Sprintf("from %v to %d", leastCPU, mostCPU))
}

// decimal reads a number from least to most; 0: there is none. what it is stands in
// the problems, with a hint for one that is no number and one that is out of range.
func (l *loader) decimal(t table, key string, least, most float64, what, form, span string) float64 {
	p, text, ok := l.figure(t, key)
	if !ok {
		return 0
	}
	var number float64
	node := p.here().node
	switch wrong := node.Decode(&number) != nil || isText(p) || node.Kind != yaml.ScalarNode; {
	case wrong || math.IsNaN(number):
		l.problem(p, fmt.Sprintf("%q is not %s", cut(text), what), form)
	case number < least || number > most:
		l.problem(p, text+" is out of range", span)
	default:
		return number
	}
	return 0
}
