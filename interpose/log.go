package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"memtrace/internal/sanitize"
)

// programStderr is the program's standard error as it is at each write. The drainer has its own descriptor table
// (cshim/process/boot.c), and keeping a copy would hold open what the program closes. Package os is not used for the
// write: on a broken pipe it ends the process.
//
// It is the file that the program was loaded with, "device:inode", or nothing is written: a program that turns itself
// into a service closes its standard error and may have a file of its own under the number.
type programStderr string

func (s programStderr) Write(p []byte) (int, error) {
	fd, err := openProgramStderr()
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || fmt.Sprintf("%d:%d", st.Dev, st.Ino) != string(s) {
		return len(p), err
	}
	return unix.Write(fd, p)
}

func openProgramStderr() (int, error) {
	if filtered() {
		return openByProc()
	}
	if process, err := unix.PidfdOpen(os.Getpid(), 0); err == nil {
		defer unix.Close(process)
		if fd, err := unix.PidfdGetfd(process, 2, 0); err == nil {
			return fd, nil
		}
	}
	return openByProc()
}

// filtered reports whether a seccomp filter applies to this process. It might kill the process for calls as rare as
// those for foreign descriptors.
func filtered() bool {
	status, err := os.ReadFile("/proc/thread-self/status")
	return err != nil || !bytes.Contains(status, []byte("\nSeccomp:\t0\n"))
}

// openByProc is for older kernels and some containers: /proc/self is the process's first thread, so this is its
// descriptor, reopened.
func openByProc() (int, error) {
	return unix.Open("/proc/self/fd/2", unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
}

// newLogger writes lines like those of the C half to the program's stderr, for levels at and above the named one; "off"
// silences it.
func newLogger(level, stderr string) zerolog.Logger {
	threshold, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		threshold = zerolog.WarnLevel
	}
	if level == "off" {
		threshold = zerolog.Disabled
	}
	out := zerolog.ConsoleWriter{Out: programStderr(stderr), NoColor: true, PartsOrder: []string{"message"},
		FormatMessage: func(m any) string {
			text, _ := m.(string)
			return "memtrace: " + sanitize.Text(text)
		}}
	return zerolog.New(out).Level(threshold)
}
