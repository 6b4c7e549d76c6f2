package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gopkg.in/yaml.v3"

	"heartbeat/hook/owned"
	"heartbeat/hook/settings"
	"heartbeat/sources"
)

// MaxFile bounds the size of a fleet's file in bytes. 10,000 agents need some 3 MB.
const MaxFile = 64 << 20

// DefaultMaxSessions is the default of `max-sessions`.
const DefaultMaxSessions = 4

// Load reads and checks the file. When the error is about the content, it is of
// type Problems and holds all of them.
func Load(path string) (*Fleet, error) {
	f, _, err := LoadInputs(path, nil)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// LoadInputs is Load, and also returns the inputs that it looked at, even with an
// error; with Problems the fleet has nothing but its Path and Warnings. When an
// agent's directory is not a folder, known (nil: nothing is known)
// tells whether it was one before. An agent can replace its directory, for example
// by a link to another agent's; such a link is not followed, and it is a warning,
// not a problem.
func LoadInputs(path string, known func() Folders) (*Fleet, *Inputs, error) {
	in := &Inputs{known: map[string]bool{}}
	in.file(path)
	f, err := open(path)
	if err != nil {
		return nil, in, fmt.Errorf("cannot read configuration: %w", err)
	}
	defer f.Close()
	if err := unchangeable(f); err != nil {
		return nil, in, Problems{{File: path, Line: 1, Column: 1, Message: "the file is not used: " + err.Error(), Hint: mended(err, path)}}
	}
	data, err := readAll(f)
	if err != nil {
		return nil, in, fmt.Errorf("cannot read configuration %q: %w", path, err)
	}
	fleet, err := parse(path, data, newPlaces(identify), noted{disk{}, in}, known)
	return fleet, in, err
}

// open opens a file for reading. It does not block on a FIFO that was put in its
// place.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// openOwned is openRegular for files that decide what runs.
func openOwned(name string) (*os.File, error) {
	f, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	if err := unchangeable(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// unchangeable returns an error for a file that somebody else can change, because
// what it says runs as this user. A terminal or a pipe of this user is fine.
func unchangeable(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return owned.Check(info)
}

// mended says how to fix the file's permissions.
func mended(err error, path string) string {
	if other, ok := errors.AsType[*owned.Error](err); ok {
		return other.Fix + " " + settings.Quote(cmp.Or(other.Path, path)) + " if it is yours"
	}
	return ""
}

var errNotRegular = errors.New("it is not a regular file")

// openRegular is open for regular files only; it never opens a device.
func openRegular(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// parse checks data as if it stood in the file at path, which need not exist:
// relative directories and included files are resolved from there. The error, when
// it is about the content, is Problems.
func parse(path string, data []byte, p *places, included shelf, known func() Folders) (*Fleet, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find configuration: %w", err)
	}
	l := newLoader(p, included, known)
	fleet := &Fleet{Path: absolute, MaxSessions: DefaultMaxSessions, ShutdownGrace: DefaultShutdownGrace, SlotTime: DefaultSlotTime, byName: map[string]*Agent{}}
	real, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		real = absolute
	}
	src := l.add(path, absolute, real, data)
	src.open = true
	if root, ok := l.parse(src); ok {
		l.fleet(root, fleet)
	}
	if len(l.problems) > 0 {
		all := l.sorted(l.problems)
		if l.left > 0 {
			last := all[len(all)-1]
			all = append(all, Problem{
				File: last.File, Line: last.Line, Column: last.Column,
				Message: fmt.Sprintf("%d more problems or warnings are not listed", l.left), Hint: "correct these first",
			})
		}
		return &Fleet{Path: absolute, Warnings: l.sorted(l.warnings)}, l.quoted(all)
	}
	fleet.Warnings, fleet.Relative = l.sorted(l.warnings), l.relative
	fleet.Missing = map[string]bool{}
	for _, d := range l.agents {
		if l.disk.absent[d.Agent] {
			fleet.Missing[d.Name] = true
		}
	}
	fleet.Texts, fleet.Folders = l.kept, l.disk.folders
	if fleet.Named = fleet.Name != ""; !fleet.Named {
		fleet.Name = derivedName(absolute)
	}
	return fleet, nil
}

// loader turns nodes into a fleet and records the problems.
type loader struct {
	files    []*source          // the first one is the fleet's
	byPath   map[string]*source // by their real paths
	lookup   func(string) (string, bool)
	problems Problems
	warnings Problems
	noted    map[Problem]bool
	left     int // what was not noted
	agents   []declared
	grouped  []grouped
	ofGroup  map[string]table // what groups say for their agents
	claims   claims
	cached   cached
	disk     onDisk
	shelf    shelf
	kept     []Text // what was read
	isKept   map[string]bool
	misnamed map[string]bool // keys that stand there by another name, by their paths
	relative bool            // see Fleet
}

// newLoader returns a loader that knows of no file yet.
func newLoader(p *places, included shelf, known func() Folders) *loader {
	return &loader{
		byPath: map[string]*source{}, lookup: os.LookupEnv, noted: map[Problem]bool{},
		ofGroup: map[string]table{}, shelf: included, isKept: map[string]bool{}, misnamed: map[string]bool{},
		cached: cached{
			zones: map[string]*time.Location{}, zoneHints: map[string]string{},
			schedules: map[scheduleKey]parsedSchedule{}, templates: map[templateKey]error{},
		},
		disk: onDisk{
			places: p, resolved: map[string]string{}, known: known, folders: Folders{},
			absent: map[*Agent]bool{}, lacking: map[string]string{}, envFiles: map[string]error{},
		},
	}
}

// claims are what the file says that is checked when all of it is read: it names what is
// declared elsewhere, or what only one may have.
type claims struct {
	// recipients are the places that name a target, secrets those that name where a
	// secret is kept.
	recipients []recipient
	secrets    []hidden
	// agreed are those that name a secret-file.
	agreed []hidden
	// listening are the addresses, webhooks the triggers that requests reach.
	listening []listening
	webhooks  []webhook
	backups   []backup
	programs  []program
	watched   []watched
	mentions  []mention
	owners    map[string]declared // by the one spelling of their directory
	reached   map[string][]spot
}

// cached are values that many agents share, and that are computed once.
type cached struct {
	zones     map[string]*time.Location
	zoneHints map[string]string
	schedules map[scheduleKey]parsedSchedule
	templates map[templateKey]error
}

// onDisk is what was found of the paths that the file names, once for all agents.
type onDisk struct {
	places   *places
	resolved map[string]string // directory → where its links lead
	known    func() Folders    // agents' directories that were folders before; may be nil
	folders  Folders           // and those that are
	absent   map[*Agent]bool   // its directory is not there yet
	lacking  map[string]string // program → why it cannot be run, or ""
	home     []string          // of who runs this
	systems  map[fileID]bool   // folders of the system
	envFiles map[string]error  // what is wrong with them
}

type (
	scheduleKey struct {
		spec, zone string
		seconds    bool
	}
	templateKey struct {
		data promptData
		text string
	}
	parsedSchedule struct {
		schedule sources.Schedule
		err      error
	}
)

// derivedName derives a fleet's name from the path of its file.
func derivedName(path string) string {
	sum := sha256.Sum256([]byte(path))
	dir := strings.Trim(unnamed().ReplaceAllString(filepath.Base(filepath.Dir(path)), "-"), ".-_")
	if dir == "" {
		dir = "fleet"
	}
	return dir[:min(len(dir), 40)] + "-" + hex.EncodeToString(sum[:4])
}

var unnamed = pattern(`[^A-Za-z0-9._-]+`)

func (l *loader) fleet(root place, f *Fleet) {
	t, ok := l.table(root, topKeys, agentElsewhere)
	if !ok {
		return
	}
	l.version(root, t)
	if p, ok := t["name"]; ok {
		f.Name = l.name(p)
	}
	l.capacity(t, f)
	l.listens(t, f)
	f.Page = l.page(t)
	f.Targets, f.Ping = l.targets(t), l.ping(t)
	l.declarations(f, t, table{})
	if p := t["agents"]; len(f.Agents) == 0 && (p.node == nil || empty(p.node)) {
		if _, ok := t["include"]; ok && len(l.problems) > 0 {
			return // they may be there
		}
		l.problem(root.orThis(p), "no agents are declared", "agents: {NAME: {dir: DIRECTORY}}")
		return
	}
	if len(f.Agents) == 0 {
		l.warn(root.orThis(t["agents"]), "no agents are declared", "heartbeat apply undoes what it did for earlier agents")
	}
	l.collisions()
	l.reachable()
	l.checkPage(f)
	l.withinReach()
	l.suspicious()
	l.unrunnable()
	l.linked()
	l.ticks(f, root, t)
	l.groups(f)
	l.knownTargets(f)
}

// declarations reads the defaults and the agents of a file and of the files that it
// includes. An included file's defaults override those of the file that includes
// it.
func (l *loader) declarations(f *Fleet, t, defaults table) {
	if p, ok := t["approvals"]; ok { // of the fleet's file alone
		defaults = l.merge(table{"approvals": p}, defaults)
		l.approvals(defaults)
	}
	if p, ok := t["defaults"]; ok {
		if own, ok := l.table(p, agentKeys, triggerElsewhere); ok {
			defaults = l.merge(own, defaults)
			l.fields(&Agent{}, defaults) // for its problems, also when no agent uses it
		}
	}
	if p, ok := t["agents"]; ok && !empty(p.node) {
		for name, entry := range l.entries(p) {
			l.agent(f, name, entry, defaults)
		}
	}
	l.includes(f, t, defaults)
}

// orThis returns p if it exists in the file, else root.
func (root place) orThis(p place) place {
	if p.node != nil {
		return p
	}
	return root
}

func (l *loader) version(root place, t table) {
	p, ok := t["version"]
	if !ok {
		l.absence(root.lacking("version"), "write version: 1")
		return
	}
	if _, text, ok := l.figure(t, "version"); ok {
		if n, number := integer(p); !number || n != 1 {
			l.problem(p, fmt.Sprintf("version %q is not known", text), "write version: 1")
		}
	}
}

// ticks rejects a fleet whose waiting sessions could take all slots for ever.
func (l *loader) ticks(f *Fleet, root place, t table) {
	n := 0
	for _, a := range f.Agents {
		if a.KeepsSlot() {
			n++
		}
	}
	if n < f.MaxSessions {
		return
	}
	p, ok := t["max-sessions"]
	if !ok {
		p = root.lacking("max-sessions")
	}
	l.problem(p, fmt.Sprintf("%d sessions at once, and %d agents with mode: persist and on-idle: tick keep theirs for ever", f.MaxSessions, n),
		fmt.Sprintf("write max-sessions: %d, or on-idle: release", n+1))
}

// parse returns the root of the one document in a file.
func (l *loader) parse(src *source) (place, bool) {
	if l.noYAML(src) {
		return place{}, false
	}
	file, data := place{from: src}, src.text
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		l.syntax(file, err, data)
		return place{}, false
	}
	if len(document.Content) == 0 || empty(document.Content[0]) {
		l.problem(file.of(&yaml.Node{}, ""), "the file is empty", "heartbeat init writes one to start with")
		return place{}, false
	}
	root := file.of(document.Content[0], "")
	switch err := decoder.Decode(&second); {
	case err == nil:
		l.problem(file.of(&second, ""), "a second document begins", "one file is one fleet: remove the --- line and what follows")
	case !errors.Is(err, io.EOF):
		l.syntax(file, err, data)
		return place{}, false
	}
	return root, true
}
