package main

import (
	"os"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

// programStderr is the program's standard error as it stands at each write. This half has descriptors of its own (cshim/boot.c), and keeping a copy would hold
// open what the program closes. Package os is not used for the write: on a broken pipe it ends the process.
type programStderr struct{}

func (programStderr) Write(p []byte) (int, error) {
	fd, err := openProgramStderr()
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.Write(fd, p)
}

func openProgramStderr() (int, error) {
	if process, err := unix.PidfdOpen(os.Getpid(), 0); err == nil {
		defer unix.Close(process)
		if fd, err := unix.PidfdGetfd(process, 2, 0); err == nil {
			return fd, nil
		}
	}
	// Older kernels and some containers: /proc/self is the process's first thread, so this is its descriptor, opened anew.
	return unix.Open("/proc/self/fd/2", unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
}

// newLogger writes lines like those of the C half to the program's stderr, for levels at and above the named one; "off" silences it.
func newLogger(level string) zerolog.Logger {
	threshold, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		threshold = zerolog.WarnLevel
	}
	if level == "off" {
		threshold = zerolog.Disabled
	}
	out := zerolog.ConsoleWriter{Out: programStderr{}, NoColor: true, PartsOrder: []string{"message"}, FormatMessage: func(m any) string {
		text, _ := m.(string)
		return "memtrace: " + text
	}}
	return zerolog.New(out).Level(threshold)
}
