package hostile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// A program that hangs is detected by its processor time, not by the clock: on a machine that does other things, any
// program may take any time, but one that is not over gets on.
const (
	patience = 5 * time.Minute       // without any processor time
	enough   = 20 * time.Minute      // of processor time
	pace     = 5 * time.Millisecond  // polling interval
	tick     = 10 * time.Millisecond // in which the kernel counts processor time, on every machine
)

var errHangs = errors.New("the program hangs")

// finish runs a program, in a process group of its own, until it ends or hangs.
func finish(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.WaitDelay = patience // for children that keep its output open
	if err := cmd.Start(); err != nil {
		return err
	}
	hangs := guard(cmd.Process.Pid)
	err := cmd.Wait()
	if hangs() {
		return errHangs
	}
	return err
}

// guard kills a process group that hangs. The function that it returns ends that, and reports whether it was so.
func guard(group int) (hangs func() bool) {
	done, result := make(chan struct{}), make(chan bool, 1)
	go func() {
		last, moved := time.Duration(0), time.Now()
		for {
			select {
			case <-done:
				result <- false
				return
			case <-time.After(100 * pace):
			}
			used := processorTime(group)
			if used != last {
				last, moved = used, time.Now()
			}
			if time.Since(moved) > patience || used > enough {
				syscall.Kill(-group, syscall.SIGKILL)
				result <- true
				return
			}
		}
	}()
	return func() bool {
		close(done)
		return <-result
	}
}

// processorTime is what all processes of a group have used, and their children that have ended.
func processorTime(group int) time.Duration {
	var sum int64
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if err != nil || len(fields) < 15 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		for _, field := range fields[11:15] { // user, system, and the same of children
			n, _ := strconv.ParseInt(string(field), 10, 64)
			sum += n
		}
	}
	return time.Duration(sum) * tick
}

// await waits for something that a process does, and reports false if it ends before.
func await(pid int, happened func() bool) bool {
	for !happened() {
		if !lives(pid) {
			return happened()
		}
		time.Sleep(pace)
	}
	return true
}

// awaitEnd waits until a process that is not a child of this one is gone or has only its name left.
func awaitEnd(pid int) {
	for lives(pid) {
		time.Sleep(pace)
	}
}

// lives reports whether a process has a thread left: until then, others keep a dead first thread's memory.
func lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return len(tasks) > 1 || !bytes.Contains(text, []byte(") Z "))
}
