package attach

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

const machine = elf.EM_X86_64

const readCall = unix.SYS_READ

// waits are the system calls in which a thread holds no lock of the C library's, in the order in which they are used.
var waits = [...]uint64{
	unix.SYS_POLL, unix.SYS_PPOLL, unix.SYS_SELECT, unix.SYS_PSELECT6, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
	unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_WAIT4, unix.SYS_WAITID,
	unix.SYS_PAUSE, unix.SYS_READ, unix.SYS_FUTEX, unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT,
	unix.SYS_RESTART_SYSCALL, // a wait of those with a time limit that was interrupted before, as by a debugger
}

const (
	redZone      = 128
	vectorState  = 0x202 // NT_X86_XSTATE
	vectorRoom   = 16 << 10
	nowhere      = 0x10 // an address in the first page, which no process has
	instruction  = 2    // bytes of "syscall"
	waitAnyChild = unix.WALL
)

// stopped is a stopped thread.
type stopped struct {
	tid     int
	regs    unix.PtraceRegs // as it was found
	vectors []byte
	mask    uint64 // of its blocked signals
	sp      uint64 // below all that is the thread's, and ours so far
	saved   bool
	again   bool // its system call is to be made again, though the kernel would not
}

// stop attaches to a thread and halts it.
func stop(tid int) (*stopped, error) {
	if err := request(unix.PTRACE_SEIZE, tid, 0, 0); err != nil {
		return nil, fmt.Errorf("trace thread %d: %w", tid, err)
	}
	s := &stopped{tid: tid}
	if err := unix.PtraceInterrupt(tid); err != nil {
		return nil, err
	}
	signal, err := s.wait()
	if err != nil {
		return nil, err
	}
	if signal != unix.SIGTRAP { // one of the program's, which is on its way to it
		return nil, errors.Join(request(unix.PTRACE_DETACH, tid, 0, uintptr(signal)), errMoved)
	}
	err = unix.PtraceGetRegs(tid, &s.regs)
	s.sp = (s.regs.Rsp - redZone) &^ 15
	s.again = int64(s.regs.Rax) == interrupted && slices.Contains(waits[:], s.regs.Orig_rax) && !hasSignal(tid)
	return s, err
}

// isAt reports whether the thread is where it was seen, in a system call that the usual instruction made.
func (s *stopped) isAt(w waiter) bool {
	code, err := s.peek(uintptr(s.regs.Rip-instruction), instruction)
	return err == nil && code[0] == 0x0f && code[1] == 0x05 && s.regs.Orig_rax == w.number && s.regs.Rsp == w.sp &&
		s.regs.Rip == w.pc
}

// threadPointer is what the thread's own variables are addressed by.
func (s *stopped) threadPointer() uint64 { return s.regs.Fs_base }

// save keeps what calls change, and holds back the thread's signals until release.
func (s *stopped) save() error {
	buffer := make([]byte, vectorRoom)
	into := unix.Iovec{Base: &buffer[0], Len: vectorRoom}
	if err := request(unix.PTRACE_GETREGSET, s.tid, vectorState, uintptr(unsafe.Pointer(&into))); err != nil {
		return fmt.Errorf("read the thread's vector registers: %w", err)
	}
	s.vectors = buffer[:into.Len]
	all := ^uint64(0) &^ (1 << (unix.SIGSEGV - 1)) // the kernel would forget the handler of a fault that is held back
	if err := request(unix.PTRACE_GETSIGMASK, s.tid, 8, uintptr(unsafe.Pointer(&s.mask))); err != nil {
		return fmt.Errorf("read the thread's signal mask: %w", err)
	}
	s.saved = true
	return request(unix.PTRACE_SETSIGMASK, s.tid, 8, uintptr(unsafe.Pointer(&all)))
}

// push writes a string below the thread's stack and returns its address.
func (s *stopped) push(text string) (uint64, error) {
	data := append([]byte(text), 0)
	s.sp = (s.sp - uint64(len(data))) &^ 15
	return s.sp, s.poke(uintptr(s.sp), data)
}

// call runs a function of the process in the thread and returns its result. The function returns to where there is no
// code: the tracer takes the fault that then stops the thread, and the program does not see it. No code is written, and
// no system call of the function's stops the thread.
func (s *stopped) call(function uint64, arguments ...uint64) (uint64, error) {
	regs := s.regs
	regs.Rsp = s.sp - 8
	regs.Rip = function
	regs.Rax, regs.Orig_rax = 0, ^uint64(0)
	for i, place := range []*uint64{&regs.Rdi, &regs.Rsi, &regs.Rdx}[:len(arguments)] {
		*place = arguments[i]
	}
	if err := s.poke(uintptr(regs.Rsp), binary.LittleEndian.AppendUint64(nil, nowhere)); err != nil {
		return 0, err
	}
	if err := unix.PtraceSetRegs(s.tid, &regs); err != nil {
		return 0, err
	}
	for {
		if err := unix.PtraceCont(s.tid, 0); err != nil {
			return 0, err
		}
		signal, err := s.wait()
		switch {
		case err != nil:
			return 0, err
		case signal == unix.SIGTRAP || signal == unix.SIGSTOP: // a stop of the whole process
			continue
		}
		if err := unix.PtraceGetRegs(s.tid, &regs); err != nil {
			return 0, err
		}
		if signal != unix.SIGSEGV || regs.Rip != nowhere || regs.Rsp != s.sp {
			return 0, fmt.Errorf("the loader failed in the process, with signal %v", signal)
		}
		return regs.Rax, nil
	}
}

// Results of an interrupted system call that the kernel repeats before anybody sees them.
const (
	restartAlways, restartUnlessHandled, restartUnlessHandler, restartBlock = -512, -513, -514, -516
)

// interrupted is the result of one that the kernel does not repeat: epoll_wait, and what has a timeout of its socket's.
const interrupted = -int64(unix.EINTR)

// release has the thread go on as if nothing had been.
func (s *stopped) release() error {
	var problems []error
	regs := s.regs
	if s.again || s.saved { // after calls the kernel has forgotten that it was to repeat the system call
		s.repeat(&regs)
	}
	if s.saved {
		from := unix.Iovec{Base: &s.vectors[0], Len: uint64(len(s.vectors))}
		problems = append(problems,
			request(unix.PTRACE_SETREGSET, s.tid, vectorState, uintptr(unsafe.Pointer(&from))),
			request(unix.PTRACE_SETSIGMASK, s.tid, 8, uintptr(unsafe.Pointer(&s.mask))))
	}
	if s.again || s.saved {
		problems = append(problems, unix.PtraceSetRegs(s.tid, &regs))
	}
	return errors.Join(append(problems, unix.PtraceDetach(s.tid))...)
}

// repeat sets registers to those before the system call that was interrupted, if it is to be made again.
func (s *stopped) repeat(regs *unix.PtraceRegs) {
	result := int64(regs.Rax)
	switch {
	case s.again, result == restartAlways, result == restartUnlessHandled, result == restartUnlessHandler:
		regs.Rip -= instruction
		regs.Rax = regs.Orig_rax
	case result == restartBlock:
		regs.Rip -= instruction
		regs.Rax = unix.SYS_RESTART_SYSCALL
	}
	regs.Orig_rax = ^uint64(0)
}

// hasSignal reports whether a signal of the program's is on its way to a thread: then its system call was interrupted
// by that.
func hasSignal(tid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return true
	}
	bits := func(name string) uint64 {
		n, _ := strconv.ParseUint(field(status, name), 16, 64)
		return n
	}
	return (bits("SigPnd:")|bits("ShdPnd:"))&^bits("SigBlk:") != 0
}

// wait returns the signal that the thread stopped with.
func (s *stopped) wait() (unix.Signal, error) {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(s.tid, &status, waitAnyChild, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case !status.Stopped():
			return 0, errors.New("the process ended meanwhile")
		}
		return status.StopSignal(), nil
	}
}

func (s *stopped) peek(at uintptr, size int) ([]byte, error) {
	data := make([]byte, size)
	_, err := unix.PtracePeekData(s.tid, at, data)
	return data, err
}

func (s *stopped) poke(at uintptr, data []byte) error {
	_, err := unix.PtracePokeData(s.tid, at, data)
	return err
}

func request(what, tid int, address, data uintptr) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(what), uintptr(tid), address, data, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
