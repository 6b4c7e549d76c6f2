package workspace

import "golang.org/x/sys/unix"

const noExec = unix.MNT_NOEXEC
