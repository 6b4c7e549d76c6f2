package volume

import "golang.org/x/sys/unix"

// networks are the file systems that lie on another machine or in another
// system, by statfs(2)'s magic number.
var networks = map[uint32]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS",
	unix.CODA_SUPER_MAGIC: "Coda", unix.AFS_SUPER_MAGIC: "AFS", unix.AFS_FS_MAGIC: "AFS", unix.CEPH_SUPER_MAGIC: "Ceph",
	unix.V9FS_MAGIC: "9p", 0x564c: "NCP", 0x0bd00bd0: "Lustre", 0x47504653: "GPFS", unix.OCFS2_SUPER_MAGIC: "OCFS2", 0x01161970: "GFS2",
}

func kindOf(st *unix.Statfs_t) Volume {
	kind := uint32(st.Type) //nolint:gosec // magic numbers have 32 bits
	return Volume{
		Network: networks[kind], Fuse: kind == unix.FUSE_SUPER_MAGIC, InMemory: kind == unix.TMPFS_MAGIC,
		ReadOnly: st.Flags&unix.ST_RDONLY != 0, NoExec: st.Flags&unix.ST_NOEXEC != 0,
	}
}
