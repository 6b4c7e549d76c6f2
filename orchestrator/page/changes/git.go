package changes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/sources/poll"
)

// git runs git commands on a scratch repository.
type git struct {
	program, scratch, top string
	until                 time.Time
}

// options come before each command. A configuration of a person's own is not read: what
// is shown is the same for all.
var options = []string{"--no-pager", "--no-replace-objects", "--no-optional-locks"}

// bounded is the shell's command that bounds git's memory, where the system can: a tree
// may name itself a thousand times over.
const bounded = `ulimit -v 2000000 2>/dev/null; exec "$0" "$@"`

// environment is all that git gets of ours.
func (g git) environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.scratch, "XDG_CONFIG_HOME=" + g.scratch, "TMPDIR=" + g.scratch, "LC_ALL=C",
		"GIT_DIR=" + g.scratch, "GIT_WORK_TREE=" + g.top, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_LITERAL_PATHSPECS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_PAGER=cat", "GIT_ASKPASS=/bin/false", "GIT_EDITOR=/bin/false",
	}
}

// run runs a command. Of one that prints more than most bytes, or takes too long, it
// returns what there is, and why there is no more.
func (g git) run(ctx context.Context, most int, stdin string, args ...string) (out []byte, cut, err error) {
	left := time.Until(g.until)
	if left <= 0 {
		return nil, errSlow, nil
	}
	got, err := poll.Exec(ctx, poll.Command{
		Argv: slices.Concat([]string{"/bin/sh", "-c", bounded, g.program}, options, args), Dir: g.top, Env: g.environment(),
		Stdin: stdin, Timeout: min(left, within/2), Most: most, Part: true, // the next one has its time, too
	})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot run git %s: %w", args[0], err)
	}
	if got.Later {
		return nil, nil, errors.New("git " + args[0] + " ended with 75")
	}
	return got.Stdout, got.Cut, nil
}

// errSlow is why there is no more.
var errSlow = errors.New("it took longer than " + strconv.Itoa(int(within/time.Second)) + "s")

// program finds git in our own PATH.
func program() (string, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return "", errors.New("git is not installed, or not in the PATH of the run")
	}
	return path, nil
}

// listed is a name that git lists.
type listed struct {
	name   string
	status byte // A, D, M, T, U; N: new, and in no commit
	module bool // a submodule
	share  Share
}

// differ lists what differs between the commit and the working tree below a folder, by
// what the file system says: no file is read.
func (g git) differ(ctx context.Context, base, below string) ([]listed, error, error) {
	out, cut, err := g.run(ctx, mostNames, "", "diff-index", "--raw", "-z", "--no-renames", "--ignore-submodules=dirty", base, "--", below)
	fields := strings.Split(string(out), "\x00")
	var all []listed
	for i := 0; i+1 < len(fields)-1; i += 2 { // :100644 100644 SUM SUM M, and its name
		modes := strings.Fields(fields[i])
		if len(modes) != 5 || modes[4] == "" {
			return all, cut, errors.New("git diff-index printed what is not understood")
		}
		all = append(all, listed{fields[i+1], modes[4][0], modes[0] == ":160000" || modes[1] == "160000", Work})
	}
	return all, cut, err
}

// fresh lists files below a folder that are in no commit and not ignored.
func (g git) fresh(ctx context.Context, below string) (all []listed, cut, err error) {
	out, cut, err := g.run(ctx, mostNames, "", "ls-files", "--others", "--exclude-standard", "-z", "--", below)
	names := strings.Split(string(out), "\x00")
	for _, name := range names[:len(names)-1] { // behind the last NUL is nothing, or half a name
		all = append(all, listed{name: name, status: 'N'})
	}
	return all, cut, err
}

// patch is the difference of some files as text. New ones have to be known to the index.
func (g git) patch(ctx context.Context, base string, names []string) (out []byte, cut, err error) {
	args := []string{
		"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules=all", "--no-indent-heuristic",
		"--unified=3", "--src-prefix=a/", "--dst-prefix=b/", base, "--",
	}
	return g.run(ctx, mostPatch, "", append(args, names...)...)
}

// note makes new files known to the index, so that a patch has them.
func (g git) note(ctx context.Context, names []string) error {
	_, _, err := g.run(ctx, mostNames, strings.Join(names, "\x00")+"\x00", "add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
	return err
}

// last is the hash, time and subject of the commit.
func (g git) last(ctx context.Context, commit string) (Commit, error) {
	out, _, err := g.run(ctx, mostLine, "", "log", "-1", "--no-show-signature", "--no-mailmap", "--encoding=UTF-8", "--format=%h%x00%ct%x00%s", commit, "--")
	if err != nil {
		return Commit{}, err
	}
	fields := strings.SplitN(strings.TrimSuffix(string(out), "\n"), "\x00", 3)
	if len(fields) != 3 {
		return Commit{}, errors.New("git log printed what is not understood")
	}
	seconds, _ := strconv.ParseInt(fields[1], 10, 64) // 0: it is not known
	return Commit{foreign.Text(fields[0]), time.Unix(seconds, 0), foreign.Text(fields[2])}, nil
}
