package stepper

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// callInstruction is SYSCALL.
var callInstruction = []byte{0x0f, 0x05}

// filter has the kernel stop the process at the calls of changing only, and not
// twice at each of the hundreds that a Go program begins with: as a filter of
// seccomp(2), which the process, that has just been executed, is made to load
// itself. It reports whether the process has it; a kernel may refuse.
func (r *run) filter() (bool, error) {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(r.pid, &regs); err != nil {
		return false, err
	}
	text := make([]byte, len(callInstruction))
	if _, err := unix.PtracePeekText(r.pid, uintptr(regs.Rip), text); err != nil {
		return false, err
	}
	if _, err := unix.PtracePokeText(r.pid, uintptr(regs.Rip), callInstruction); err != nil {
		return false, err
	}
	program := filterProgram()
	code := unsafe.Slice((*byte)(unsafe.Pointer(&program[0])), len(program)*int(unsafe.Sizeof(program[0])))
	// Free room of the stack, below what the psABI lets a function use.
	at := (uintptr(regs.Rsp) - 4096) &^ 15
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(program))) // struct sock_fprog
	head = binary.LittleEndian.AppendUint64(head, uint64(at)+16)
	if _, err := unix.PtracePokeData(r.pid, at, slices.Concat(head, code)); err != nil {
		return false, err
	}
	refused, err := r.inject(regs, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	if err == nil && refused == 0 {
		refused, err = r.inject(regs, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uint64(at))
	}
	if err != nil {
		return false, err
	}
	if _, err := unix.PtracePokeText(r.pid, uintptr(regs.Rip), text); err != nil {
		return false, err
	}
	return refused == 0, unix.PtraceSetRegs(r.pid, &regs)
}

// inject has the process make a call where it stands, and returns what the
// kernel says.
func (r *run) inject(regs unix.PtraceRegs, nr uint64, args ...uint64) (result int64, err error) {
	regs.Rax, regs.Orig_rax = nr, ^uint64(0)
	for i, reg := range []*uint64{&regs.Rdi, &regs.Rsi, &regs.Rdx, &regs.R10, &regs.R8} {
		*reg = 0
		if i < len(args) {
			*reg = args[i]
		}
	}
	if err := unix.PtraceSetRegs(r.pid, &regs); err != nil {
		return 0, err
	}
	if err := unix.PtraceSingleStep(r.pid); err != nil {
		return 0, err
	}
	if _, ws, err := r.wait(); err != nil || !ws.Stopped() || ws.StopSignal() != unix.SIGTRAP {
		return 0, fmt.Errorf("the program did not stop after a call of ours: %#x, %v", ws, err)
	}
	err = unix.PtraceGetRegs(r.pid, &regs)
	return int64(regs.Rax), err
}

// Where struct seccomp_data has what the filter looks at.
const (
	dataCall = 0
	dataArch = 4
	dataArgs = 16
)

// olderCalls are those that amd64 has beside the *at forms.
func init() {
	for nr, name := range map[uint64]string{unix.SYS_OPEN: "open", unix.SYS_UNLINK: "unlink", unix.SYS_RENAME: "rename", unix.SYS_MKDIR: "mkdir"} {
		changing[nr] = call{name: name}
	}
	opening[unix.SYS_OPEN] = 1
}

// refuse has the call at which a thread stands fail.
func refuse(tid int, errno unix.Errno) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &regs); err != nil {
		return err
	}
	regs.Orig_rax, regs.Rax = ^uint64(0), uint64(-int64(errno))
	return unix.PtraceSetRegs(tid, &regs)
}

// filterProgram is the filter: changing, and of what opens a file that which makes or empties
// one.
func filterProgram() []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	unless := func(test uint16, k uint32) unix.SockFilter { // it skips one
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jf: 1}
	}
	end := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	const stop, goOn = unix.SECCOMP_RET_TRACE, unix.SECCOMP_RET_ALLOW
	program := []unix.SockFilter{
		load(dataArch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AUDIT_ARCH_X86_64, Jt: 1},
		end(goOn),
		load(dataCall),
	}
	for nr := range changing {
		if _, opens := opening[nr]; !opens {
			program = append(program, unless(unix.BPF_JEQ, uint32(nr)), end(stop))
		}
	}
	for nr, flags := range opening {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(nr), Jf: 4},
			load(dataArgs+8*uint32(flags)), unless(unix.BPF_JSET, unix.O_CREAT|unix.O_TRUNC), end(stop), end(goOn))
	}
	return append(program, end(goOn))
}
