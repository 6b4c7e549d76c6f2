package changes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"heartbeat/hook/durable"
)

// repository is what is read of a repository: without git, which would do what its
// configuration says. All of it can be written by the agent.
type repository struct {
	top     string // of the working tree
	git     string // its folder: HEAD and the index
	common  string // the folder with the refs and objects, which working trees share
	ref     string // the branch, as refs/heads/…; "": none
	commit  string // "": there is none yet
	objects string
}

// ErrNone means that a directory is in no repository.
var ErrNone = errors.New("it is in no git repository")

const (
	mostFolders = 64
	mostLine    = 4 << 10  // of files with one line
	mostRefs    = 32 << 20 // of packed refs
	mostExclude = 256 << 10
)

// find finds the repository of a directory: its own, or that of a folder above it.
func find(dir string) (*repository, error) {
	top := filepath.Clean(dir)
	folder, err := durable.OpenBelow(top, top) // no link may stand in its place
	if err != nil {
		return nil, err
	}
	for range mostFolders {
		r, err := in(folder)
		if err = errors.Join(err, folder.Close()); r != nil || err != nil {
			return r, err
		}
		above := filepath.Dir(top)
		if above == top {
			break
		}
		top = above
		if folder, err = durable.Open(top); err != nil {
			return nil, err
		}
	}
	return nil, ErrNone
}

// in reads the repository of a folder; nil: it has none of its own.
func in(folder *durable.Folder) (*repository, error) {
	info, err := folder.Stat(".git")
	if err != nil {
		return nil, nil //nolint:nilerr // there is none, or none that can be read
	}
	return at(folder, info.Mode())
}

// at reads the repository whose .git stands in a folder: a folder, or a file that names
// one.
func at(folder *durable.Folder, mode fs.FileMode) (*repository, error) {
	r := &repository{top: folder.Path(), git: filepath.Join(folder.Path(), ".git")}
	switch {
	case mode.IsRegular():
		line, err := firstLine(folder, ".git")
		if err != nil {
			return nil, err
		}
		named, is := strings.CutPrefix(line, "gitdir: ")
		if !is {
			return nil, errors.New("its .git names no folder")
		}
		r.git = from(folder.Path(), named)
	case !mode.IsDir():
		return nil, errors.New("its .git is neither a folder nor a file")
	}
	git, err := durable.OpenBelow(r.git, r.git)
	if err != nil {
		return nil, err
	}
	defer git.Close()
	r.common = r.git
	if line, err := firstLine(git, "commondir"); err == nil {
		r.common = from(r.git, line)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	r.objects = filepath.Join(r.common, "objects")
	if strings.ContainsAny(r.objects, "\n\r") || strings.HasPrefix(r.objects, "#") {
		return nil, errors.New("its name has a line break")
	}
	common, err := durable.OpenBelow(r.common, r.common)
	if err != nil {
		return nil, err
	}
	defer common.Close()
	return r, r.head(git, common)
}

// from is a path that stands in a file of a folder.
func from(folder, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(folder, path)
}

func firstLine(folder *durable.Folder, name string) (string, error) {
	data, err := folder.Read(name, mostLine)
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimRight(line, "\r "), err
}

// hash is a commit's: SHA-1 or SHA-256.
var hash = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// head reads what HEAD is.
func (r *repository) head(git, common *durable.Folder) error {
	line, err := firstLine(git, "HEAD")
	if err != nil {
		return err
	}
	for range 5 { // a ref may name another
		ref, is := strings.CutPrefix(line, "ref: ")
		if !is {
			break
		}
		if !strings.HasPrefix(ref, "refs/") || !filepath.IsLocal(ref) {
			return errors.New("its HEAD names no ref")
		}
		r.ref = ref
		if line, err = read(git, common, ref); err != nil {
			return err
		}
	}
	if line != "" && !hash.MatchString(line) {
		return errors.New("its refs are kept in a form that heartbeat does not read")
	}
	r.commit = line
	return nil
}

// read reads a ref; "": it has none yet.
func read(git, common *durable.Folder, ref string) (string, error) {
	for _, folder := range []*durable.Folder{common, git} {
		line, err := firstLine(folder, filepath.FromSlash(ref))
		if !errors.Is(err, fs.ErrNotExist) {
			return line, err
		}
	}
	if ref == "refs/heads/.invalid" { // HEAD of a repository with a reftable
		return ".invalid", nil
	}
	packed, err := common.Read("packed-refs", mostRefs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for lines := bufio.NewScanner(bytes.NewReader(packed)); lines.Scan(); {
		if sum, name, is := strings.Cut(lines.Text(), " "); is && name == ref {
			return sum, nil
		}
	}
	return "", nil
}

// base is what the directory is compared with; of a repository without a commit, it is
// the empty tree.
func (r *repository) base() string {
	if r.commit != "" {
		return r.commit
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}

// config is the configuration that git gets instead of the repository's.
func (r *repository) config() string {
	version := "\trepositoryformatversion = 0\n"
	if len(r.commit) == 64 {
		version = "\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n[core]\n"
	}
	return fmt.Sprintf("[core]\n%s\tbare = false\n\tbigFileThreshold = %d\n\tquotePath = false\n\thooksPath = /dev/null\n", version, mostFile) +
		"\tattributesFile = /dev/null\n\texcludesFile = /dev/null\n\tfsmonitor = false\n\tuntrackedCache = false\n\tpager = cat\n" +
		"\tpackedGitLimit = 256m\n\tpackedGitWindowSize = 16m\n\tdeltaBaseCacheLimit = 64m\n" +
		"[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[protocol]\n\tallow = never\n"
}
