package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"heartbeat/config"
	"heartbeat/hook/inpath"
)

// Check is a command that says what of an agent's work is done.
type Check struct {
	// Of says whose prompts it checks: the key of the file.
	Of      string
	Command []string
	// Inside are the files in the agent's directory that it names and that this user,
	// as whom sessions run, can rewrite or replace.
	Inside []string
	// Builds is the program in it that does what files in the current folder say, or "".
	Builds string
}

// checksOf looks at the checks of an agent and its triggers.
func (c *collector) checksOf(a *config.Agent) (all []Check) {
	look := func(of string, u *config.Until) {
		if u == nil || len(u.Check) == 0 {
			return
		}
		check := Check{Of: of, Command: u.Check, Builds: builds(u.Check)}
		search := environ(append(slices.Clone(c.Env), u.Environ()...))["PATH"]
		for i, word := range u.Argv() {
			path := word
			switch {
			case filepath.IsAbs(word):
			case i == 0:
				path, _ = inpath.Find(search, word) // one that is not there is said elsewhere
			default:
				path = filepath.Join(a.Dir, word)
			}
			if file := editable(a.Dir, path); file != "" && !slices.Contains(check.Inside, file) {
				check.Inside = append(check.Inside, file)
			}
		}
		all = append(all, check)
	}
	look("until", a.Until)
	for i := range a.Triggers {
		look("until of trigger "+a.Triggers[i].Name, a.Triggers[i].Until)
	}
	return all
}

// editable returns the name in dir of a regular file, without links, that this user
// can write, or replace because it may write a folder on the way to it; "" if it lies
// elsewhere.
func editable(dir, path string) string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil || path == "" {
		return ""
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(dir, path)
	if info, stat := os.Stat(path); err != nil || stat != nil || !filepath.IsLocal(rel) || !info.Mode().IsRegular() {
		return ""
	}
	for at := path; len(at) >= len(dir); at = filepath.Dir(at) {
		if unix.Access(at, unix.W_OK) == nil {
			return rel
		}
	}
	return ""
}

// builders do what files in the current folder say: build files, packages, tests.
var builders = []string{
	"make", "gmake", "cmake", "ctest", "ninja", "meson", "bazel", "scons", "just", "task", "mage", "rake", "bundle", "rspec",
	"npm", "npx", "pnpm", "yarn", "bun", "deno", "node", "vitest", "jest", "tsc", "eslint",
	"go", "cargo", "gradle", "gradlew", "mvn", "mvnw", "ant", "sbt", "dotnet", "swift", "zig", "mix", "cabal", "stack", "composer", "phpunit",
	"pytest", "tox", "nox", "uv", "poetry", "pre-commit", "git",
}

// builds returns the first of them that a command runs, also as `sh -c` and env do.
func builds(command []string) string {
	for _, word := range command {
		for part := range strings.FieldsFuncSeq(word, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()", r) }) {
			if name := filepath.Base(part); slices.Contains(builders, name) {
				return name
			}
		}
	}
	return ""
}
