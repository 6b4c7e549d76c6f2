package workspace

import "golang.org/x/sys/unix"

const noExec = unix.ST_NOEXEC
