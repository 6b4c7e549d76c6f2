package watch

import (
	"path"
	"strings"
)

// keptOpen reports whether editors and office programs use this kind of name for
// files that they keep beside an open file, or for backups. Such files can stay for
// hours, so waiting for quiet does not tell them from others.
func keptOpen(name string) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) && len(name) > len(prefix) }
	ends := func(suffix string) bool { return strings.HasSuffix(name, suffix) && len(name) > len(suffix) }
	switch {
	case begins("#") && ends("#"), begins(".#"): // Emacs: what is not saved yet, locks
		return true
	case ends("~"), begins("~$"): // backups; Microsoft Office
		return true
	case begins(".~lock.") && ends("#"): // LibreOffice
		return true
	case begins(".goutputstream-"), ends("___jb_tmp___"), ends("___jb_old___"): // GTK, JetBrains
		return true
	case begins("."): // Vim, nano, Kate
		swap := path.Ext(name)
		return ends(".kate-swp") || len(swap) == 4 && strings.HasPrefix(swap, ".sw") && swap[3] >= 'a' && swap[3] <= 'z' && name != swap
	}
	return false
}

// namesKeptOpen reports whether a glob names such files.
func namesKeptOpen(glob string) bool {
	name := strings.NewReplacer("*", "x", "?", "x").Replace(path.Base(glob))
	return keptOpen(name) || keptOpen("."+name)
}
