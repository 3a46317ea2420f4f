package control

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// FolderVariable names the folder of control sockets, to the library and to the command (docs/environment.md).
const FolderVariable = "MEMTRACE_CONTROL_DIR"

// Folder returns the folder of this command's environment, or "".
func Folder() string { return os.Getenv(FolderVariable) }

// sockets lists where the process's socket may be, under the process's own number: in the folder of its environment or,
// in its own file system, in the default one; and in the folder of this command's environment.
func sockets(pid int) []string {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	name := socketName(proc, pid)
	root := rootOf(proc)
	var paths []string
	if folder := variable(proc, FolderVariable); filepath.IsAbs(folder) {
		paths = append(paths, filepath.Join(root+folder, name))
	}
	if folder := Folder(); folder != "" {
		paths = append(paths, filepath.Join(folder, name))
	}
	usual, _ := filepath.Glob(root + "/tmp/memtrace-*/" + name)
	return append(paths, usual...)
}

// InFolder reports whether a process's socket is in a folder, or will be there according to the process's environment.
func InFolder(pid int, folder string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	if own := variable(proc, FolderVariable); filepath.IsAbs(own) {
		own = rootOf(proc) + own
		theirs, err := os.Stat(own)
		ours, oursErr := os.Stat(folder)
		same := err == nil && oursErr == nil && os.SameFile(theirs, ours)
		return same || filepath.Clean(own) == filepath.Clean(folder) // perhaps not made yet
	}
	info, err := os.Lstat(filepath.Join(folder, socketName(proc, pid)))
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// socketName is made of the number that the process has in its own namespace.
func socketName(proc string, pid int) string {
	own := strconv.Itoa(pid)
	if status, err := os.ReadFile(filepath.Join(proc, "status")); err == nil {
		for line := range strings.Lines(string(status)) {
			if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
				numbers := strings.Fields(rest)
				own = numbers[len(numbers)-1]
			}
		}
	}
	return own + ".sock"
}

// variable returns a variable of the environment that a process was started with, "" if it is unset or this user may
// not read it.
func variable(proc, name string) string {
	text, err := os.ReadFile(filepath.Join(proc, "environ"))
	if err != nil {
		return ""
	}
	value := ""
	for entry := range strings.SplitSeq(string(text), "\x00") {
		if rest, ok := strings.CutPrefix(entry, name+"="); ok {
			value = rest // the library takes the last one, too
		}
	}
	return value
}

// rootOf returns the prefix of paths in the process's file system; "" where that is this one's.
func rootOf(proc string) string {
	if sameMounts(proc) {
		return ""
	}
	return filepath.Join(proc, "root")
}

func sameMounts(proc string) bool {
	ours, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return true
	}
	theirs, err := os.Readlink(filepath.Join(proc, "ns", "mnt"))
	return err != nil || ours == theirs
}
