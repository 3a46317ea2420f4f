// Command gohost is a program that is itself Go with cgo: a second runtime in one process is not supported (golang/go
// 65050), and each takes the other's signals.
package main

/*
#cgo LDFLAGS: -lcuda
#include "../cuda.h"
*/
import "C"

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

func must(what string, result C.int) {
	if result != 0 {
		fmt.Println(what, "gave", result)
		os.Exit(9)
	}
}

func main() {
	var context unsafe.Pointer
	must("cuInit", C.cuInit(0))
	must("cuCtxCreate", C.cuCtxCreate_v2(&context, 0, 0))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			runtime.LockOSThread()
			must("cuCtxSetCurrent", C.cuCtxSetCurrent(context))
			for range 50 {
				var p C.uint64_t
				must("cuMemAlloc", C.cuMemAlloc_v2(&p, 1000))
				must("cuMemFree", C.cuMemFree_v2(p))
			}
			runtime.GC()
		}()
	}
	all.Wait()
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println("got", <-signals)
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var nowhere *int
		fmt.Println(*nowhere)
	}()
}
