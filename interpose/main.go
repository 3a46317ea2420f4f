// Command interpose is the Go half of libmemtrace.so, built with -buildmode=c-shared: it moves records from the spool
// into the trace file.
//
// # Design
//
// The C half (cshim/, an archive that the Makefile's link takes whole) hooks, records and owns everything that happens
// on the program's threads. This half runs on threads of its own, on a runtime that C starts at the first CUDA call
// (cshim/process/boot.c), and shares one file with C: the spool. It reads records with package spool and writes them
// with package trace.
//
// # Invariants
//
//  1. This half never calls C and C never calls it, except for the one start below. Otherwise a hook could wait for a
//     Go runtime that is stopped for garbage collection, or does not exist in a forked child.
//  2. It never ends the process, whatever happens: a panic is recovered, logged once, and ends the draining only. What
//     cannot be recovered, tools/patchruntime jumps to cshim/process/goend.c instead of ending the process. The spool
//     keeps recording, and readers find it.
//  3. It publishes its read position only after the write that holds the records succeeded. Otherwise a kill would lose
//     them.
//  4. It takes no signal and changes no disposition: C blocked all of them before the first of our threads was born,
//     and tools/patchruntime made the runtime leave that so. Otherwise a handler of the program could run on a
//     goroutine's stack.
//  5. It has a descriptor table of its own, or does not start. Otherwise a program that closes all descriptors would
//     take the runtime's away, and the runtime ends the process over that.
//  6. It makes all its threads at its start. Otherwise the runtime would end the process when one cannot be had later.
//  7. It reads no environment and no arguments of the program: C passes it an environment block of variables of ours.
package main

import "C"

import (
	"os"
	"runtime"
	"sync"
	"time"

	"memtrace/internal/safefile"
)

// mtDrainStart is called once by C, on a thread without signals, when the Go runtime is up. It returns 0 if there will
// be no drainer, so that the program's end does not wait for one.
//
//export mtDrainStart
func mtDrainStart() C.int {
	reserveThreads() // before the trace has a head, from which a program may see that it is recorded
	d, err := newDrainer(settings{
		spoolPath: os.Getenv("MEMTRACE_DRAIN_SPOOL"),
		tracePath: os.Getenv("MEMTRACE_DRAIN_TRACE"),
		spoolFile: identity("MEMTRACE_DRAIN_SPOOL_FILE"),
		traceFile: identity("MEMTRACE_DRAIN_TRACE_FILE"),
		oomTexts:  os.Getenv("MEMTRACE_OOM"),
		memory:    parseGuestMemory(os.Getenv("MEMTRACE_GUEST_MEMORY")),
		traceMax:  parseLimit(os.Getenv("MEMTRACE_TRACE_MAX")),
		embedTime: time.Duration(parseLimit(os.Getenv("MEMTRACE_EMBED_SYMBOLS"))) * time.Millisecond,
		replaces:  os.Getenv("MEMTRACE_FORCE") == "1",
	}, newLogger(os.Getenv("MEMTRACE_LOG"), os.Getenv("MEMTRACE_STDERR")))
	if err != nil {
		return 0
	}
	go d.run()
	return 1
}

// identity reads a file's identity from a variable. One that cannot be parsed matches no file.
func identity(variable string) safefile.Identity {
	id, err := safefile.ParseIdentity(os.Getenv(variable))
	if err != nil {
		return safefile.Identity{}
	}
	return id
}

// reserved is how many threads are made at the start: the two that run Go code, those that wait in system calls for the
// drainer and a thinning, and the collector's.
const reserved = 7

// reserveThreads makes the runtime's threads now, when C has just seen that they can be had. The runtime keeps those
// that are idle. It would make them when it needs them, and end the process if the user's or the container's limit was
// reached by then.
func reserveThreads() {
	var made, gone sync.WaitGroup
	release := make(chan struct{})
	for range reserved {
		made.Add(1)
		gone.Add(1)
		go func() {
			defer gone.Done()
			runtime.LockOSThread() // a goroutine that waits keeps its thread
			made.Done()
			<-release
			runtime.UnlockOSThread()
		}()
	}
	made.Wait()
	close(release)
	gone.Wait()
}

func main() {}
