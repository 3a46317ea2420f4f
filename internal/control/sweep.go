package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A socket that nobody listens at is removed by its name, under which a new process of the same number may put its own
// at any moment: it gets another name first, and its own again if it is not the one that was looked at. One that just
// begins has a name before it listens.
const (
	sweepNames = 4096 // of a folder that are looked at, at most
	youngest   = time.Minute
)

// Sweep removes the sockets that this user's killed processes left, in the default folder and in the environment's.
func Sweep() {
	folders := []string{fmt.Sprintf("/tmp/memtrace-%d", os.Geteuid())}
	if folder := Folder(); folder != "" {
		folders = append(folders, folder)
	}
	for _, folder := range folders {
		sweep(folder)
	}
}

// sweep leaves folders alone that the library would not use: another user's, and those that others may write to.
func sweep(folder string) {
	f, err := os.OpenFile(folder, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !isOwn(info) || info.Mode()&0o022 != 0 {
		return
	}
	names, _ := f.Readdirnames(sweepNames)
	for _, name := range names {
		number, isSocket := strings.CutSuffix(name, ".sock")
		pid, err := strconv.Atoi(number)
		if isSocket && err == nil && pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			removeOld(filepath.Join(folder, name))
		}
	}
}

// removeOld removes a socket of this user at which nobody listens.
func removeOld(path string) {
	old, err := os.Lstat(path)
	if err != nil || old.Mode()&os.ModeSocket == 0 || !isOwn(old) || time.Since(old.ModTime()) < youngest {
		return
	}
	connection, err := connect(path)
	if err == nil {
		connection.Close()
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		removeSame(path, old)
	}
}

func isOwn(info os.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid()
}

// removeSame removes a file if it is still the one that was looked at.
func removeSame(path string, old os.FileInfo) {
	aside := fmt.Sprintf("%s.%d", path, os.Getpid())
	if os.Rename(path, aside) != nil {
		return
	}
	if now, err := os.Lstat(aside); err == nil && os.SameFile(old, now) && now.ModTime().Equal(old.ModTime()) {
		_ = os.Remove(aside)
		return
	}
	_ = unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
}
