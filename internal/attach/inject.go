// Loads libmemtrace.so into a process that runs, by ptrace.
//
// The one deadly rule: code runs only in a thread that has been waiting in the kernel for a while, and waits still. A
// thread that runs may hold the allocator's lock, which dlopen needs; it would wait for itself for ever. Only that
// thread is stopped; it goes on with the system call in which it was found. Where no thread waits, nothing is touched.

package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNoThread is returned if each thread of the process was running whenever it was checked.
var ErrNoThread = errors.New("no thread of the process waits in a system call, and loading a library into one that runs could hang the process")

// ErrUnsupported is returned on processors that this method does not support.
var ErrUnsupported = errors.New("memtrace attach can load the library by itself on x86-64 only: call memtrace.start() in the program, start it with MEMTRACE_START=asleep, or use CPython 3.14 or later")

// InjectResult is what an injection was.
type InjectResult struct {
	Thread  int           // that was used
	Stopped time.Duration // that it was stopped for
}

// LoadLibrary makes the process load a library, a path in the process's own view, and call one of its functions, which
// takes no arguments and returns an int; it must not be 0. Gives up untouched when no fitting thread is found before
// the context ends. Once a thread is used nothing may end the caller, a signal neither, before the thread has been let
// go.
func LoadLibrary(ctx context.Context, pid int, library, function string) (InjectResult, error) {
	if len(waits) == 0 {
		return InjectResult{}, ErrUnsupported
	}
	target, err := newTarget(pid)
	if err != nil {
		return InjectResult{}, err
	}
	// Requests must come from the thread that attached, which no other goroutine may use meanwhile. It ends with its
	// goroutine, and with it the priority that it has: the process's thread is stopped until this one runs again.
	result := make(chan loaded)
	go func() {
		runtime.LockOSThread()
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), highest) // root's to have
		var l loaded
		l.InjectResult, l.err = target.loadWaiting(ctx, library, function)
		result <- l
	}()
	l := <-result
	return l.InjectResult, l.err
}

// highest is the priority of the thread that another one waits for.
const highest = -20

// loaded is what became of an attempt.
type loaded struct {
	InjectResult
	err error
}

func (t *target) loadWaiting(ctx context.Context, library, function string) (InjectResult, error) {
	t.entry = t.export(library, function)
	for {
		threads, err := t.waiting()
		if err != nil {
			return InjectResult{}, err
		}
		for _, thread := range threads {
			result, err := t.try(thread, library, function)
			if !errors.Is(err, errMoved) {
				return result, err
			}
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return InjectResult{}, ErrNoThread
		}
		if ctx.Err() != nil {
			return InjectResult{}, ctx.Err()
		}
	}
}

// errMoved means that a thread has meanwhile gone on.
var errMoved = errors.New("the thread went on")

// target is a process that a library is to be loaded into.
type target struct {
	pid             int
	proc            string
	loader          functions
	entry           *exported // the function that is to be called; nil: the loader is called
	regions         []region
	restorePriority func() // restores the priority of the thread that is used
}

func newTarget(pid int) (*target, error) {
	t := &target{pid: pid, proc: filepath.Join("/proc", strconv.Itoa(pid))}
	var err error
	if t.regions, err = readRegions(t.proc); err != nil {
		return nil, err
	}
	t.loader, err = findFunctions(t)
	return t, err
}

// try uses one thread. errMoved: nothing was touched, and another thread may do.
func (t *target) try(thread waiter, library, function string) (InjectResult, error) {
	begin := time.Now()
	t.restorePriority = raisePriority(thread.tid) // on a busy machine most of the pause is the wait for the stop
	defer func() { t.restorePriority() }()
	stopped, err := stop(thread.tid)
	switch {
	case errors.Is(err, unix.ESRCH):
		return InjectResult{}, errMoved // it is gone
	case err != nil:
		return InjectResult{}, t.explain(err)
	}
	if !stopped.isAt(thread) {
		return InjectResult{}, errors.Join(stopped.release(), errMoved)
	}
	err = t.load(stopped, library, function)
	if released := stopped.release(); err == nil {
		err = released
	}
	return InjectResult{Thread: thread.tid, Stopped: time.Since(begin)}, err
}

func (t *target) load(s *stopped, library, function string) error {
	if err := s.save(); err != nil {
		return err
	}
	errno, err := t.errnoOf(s)
	if err != nil {
		return err
	}
	before, err := s.peek(uintptr(errno), 4)
	if err != nil {
		return err
	}
	err = t.loadAndCall(s, library, function)
	if restored := s.poke(uintptr(errno), before); err == nil {
		err = restored
	}
	return err
}

const (
	rtldNow    = 2
	rtldGlobal = 0x100
)

func (t *target) loadAndCall(s *stopped, library, function string) error {
	path, err := s.push(library)
	if err != nil {
		return err
	}
	handle, err := s.call(t.loader.dlopen, path, rtldNow|rtldGlobal|t.loader.mode)
	t.restorePriority() // threads that the function makes have the priority of this one
	if err != nil {
		return err
	}
	if handle == 0 {
		return fmt.Errorf("the process cannot load %s: %s", library, t.reason(s))
	}
	address, err := t.addressOf(s, handle, function)
	if err != nil {
		return err
	}
	if address == 0 {
		return fmt.Errorf("%s has no function %s: library and command are of different versions", library, function)
	}
	result, err := s.call(address)
	if err == nil && uint32(result) == 0 {
		return errors.New(
			"the library cannot record in this process: MEMTRACE_DISABLE is set in its environment, or it filters its own system calls")
	}
	return err
}

// addressOf returns the address of a function of a loaded library, 0 if it has none.
func (t *target) addressOf(s *stopped, handle uint64, function string) (uint64, error) {
	if address, ok := t.entry.address(s, handle); ok {
		return address, nil
	}
	name, err := s.push(function)
	if err != nil {
		return 0, err
	}
	return s.call(t.loader.dlsym, handle, name)
}

// reason is the loader's error.
func (t *target) reason(s *stopped) string {
	const unknown = "its loader refuses it"
	if t.loader.dlerror == 0 {
		return unknown
	}
	text, err := s.call(t.loader.dlerror)
	if err != nil || text == 0 {
		return unknown
	}
	var line []byte
	for len(line) < 512 && !bytes.Contains(line, []byte{0}) {
		part, err := s.peek(uintptr(text)+uintptr(len(line)), 8)
		if err != nil {
			return unknown
		}
		line = append(line, part...)
	}
	before, _, _ := bytes.Cut(line, []byte{0})
	return string(before)
}

// explain adds what to do about a refusal.
func (t *target) explain(err error) error {
	if !errors.Is(err, os.ErrPermission) {
		return err
	}
	if text, failed := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); failed == nil {
		switch strings.TrimSpace(string(text)) {
		case "1":
			return errors.New(
				"the system lets a process trace only its own children (kernel.yama.ptrace_scope is 1): run memtrace attach as root, or: sudo sysctl kernel.yama.ptrace_scope=0")
		case "2":
			return errors.New(
				"the system lets only root trace processes (kernel.yama.ptrace_scope is 2): run memtrace attach as root")
		case "3":
			return errors.New(
				"the system lets no process trace another (kernel.yama.ptrace_scope is 3): start the program by memtrace run, or call memtrace.start() in it")
		}
	}
	return fmt.Errorf(
		"process %d may not be traced: run memtrace attach as the process's user or as root, in a container with the capability SYS_PTRACE (docker run --cap-add SYS_PTRACE)", t.pid)
}
