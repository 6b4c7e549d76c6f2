package volume

import "golang.org/x/sys/unix"

// kindOf names what is not on a disk of this machine (statfs(2), MNT_LOCAL).
func kindOf(st *unix.Statfs_t) (v Volume) {
	if st.Flags&unix.MNT_LOCAL == 0 {
		v.Network = unix.ByteSliceToString(st.Fstypename[:])
	}
	v.ReadOnly, v.NoExec = st.Flags&unix.MNT_RDONLY != 0, st.Flags&unix.MNT_NOEXEC != 0
	return v
}
