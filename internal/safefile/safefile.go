// Package safefile opens files whose names come from outside: from the command line, from a folder that others can
// write to, or from a trace. Everything that memtrace reads under such a name is opened here.
//
// # Invariants
//
//  1. Only regular files are opened. A FIFO without a writer would block the reader for ever, a device may do
//     something when it is opened, and either may have no end.
//  2. Opening never waits, whatever replaces the file between the check and the opening.
//  3. What is read ends where the file ended when it was opened, unless the caller means to follow a file that grows.
//  4. Nothing is written through a link, or into another file than the one that the caller knows by its identity.
//     Otherwise users who can write to the folder would choose what is overwritten.
package safefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// MaxSize is the size from which on a file is refused where the caller has no lower limit: 1 TiB, some 200 billion
// events.
const MaxSize = 1 << 40

var (
	// ErrNotRegular is returned for what is not a regular file.
	ErrNotRegular = errors.New("not a regular file")
	// ErrDirectory is the ErrNotRegular of a folder.
	ErrDirectory = fmt.Errorf("%w but a directory", ErrNotRegular)
	// ErrLink is the ErrNotRegular of a link where none may be.
	ErrLink = fmt.Errorf("%w but a link", ErrNotRegular)
	// ErrTooLarge is returned for a file above the limit.
	ErrTooLarge = errors.New("larger than memtrace reads")
	// ErrReplaced is returned where the file of that name is not the one that is to be written to or removed.
	ErrReplaced = errors.New("another file has taken its place")
)

// neverWait keeps the opening from waiting for a pipe's other end and from making a terminal the command's own.
const neverWait = syscall.O_NONBLOCK | syscall.O_NOCTTY

// Open opens a regular file of at most MaxSize bytes for reading, through links if there are any. Its errors are
// *fs.PathError, as of os.Open.
func Open(path string) (*os.File, error) { return OpenUpTo(path, MaxSize) }

// OpenUpTo is Open with another limit, in bytes.
func OpenUpTo(path string, limit int64) (*os.File, error) {
	st, err := os.Stat(path)
	if err == nil {
		err = check(st, limit)
	}
	if err != nil {
		return nil, named(path, err)
	}
	return open(path, os.O_RDONLY, limit)
}

// OpenUnlinked is OpenUpTo for a name that must not be a link.
func OpenUnlinked(path string, limit int64) (*os.File, error) {
	return open(path, os.O_RDONLY|syscall.O_NOFOLLOW, limit)
}

// OpenToWrite opens an existing regular file for writing, with flag os.O_WRONLY or os.O_RDWR, if it is the one that is
// known by own. It is never created, cut, or reached through a link.
func OpenToWrite(path string, flag int, own Identity) (*os.File, error) {
	file, err := open(path, flag|syscall.O_NOFOLLOW, MaxSize)
	if err != nil {
		return nil, err
	}
	st, err := file.Stat()
	if err == nil && IdentityOf(st) != own {
		err = ErrReplaced
	}
	if err != nil {
		file.Close()
		return nil, named(path, err)
	}
	return file, nil
}

// Read returns the content of a regular file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	file, err := OpenUpTo(path, limit)
	if err != nil {
		return nil, err
	}
	return readAll(path, file)
}

// ReadUnlinked is Read for a name that must not be a link.
func ReadUnlinked(path string, limit int64) ([]byte, error) {
	file, err := OpenUnlinked(path, limit)
	if err != nil {
		return nil, err
	}
	return readAll(path, file)
}

func readAll(path string, file *os.File) ([]byte, error) {
	defer file.Close()
	content, err := Content(file)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return nil, named(path, err)
	}
	return data, nil
}

// Content returns what is in a file now. Somebody may go on writing to it, faster than it is read.
func Content(file *os.File) (*io.SectionReader, error) {
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(file, 0, st.Size()), nil
}

// open opens without waiting, and checks what it opened.
func open(path string, flag int, limit int64) (*os.File, error) {
	file, err := os.OpenFile(path, flag|neverWait, 0)
	switch {
	case errors.Is(err, syscall.ELOOP) && flag&syscall.O_NOFOLLOW != 0:
		return nil, named(path, ErrLink)
	case errors.Is(err, syscall.ENXIO): // a FIFO without a reader, a socket
		return nil, named(path, ErrNotRegular)
	case err != nil:
		return nil, err
	}
	st, err := file.Stat()
	if err == nil {
		err = check(st, limit)
	}
	if err != nil {
		file.Close()
		return nil, named(path, err)
	}
	return file, nil
}

func check(st fs.FileInfo, limit int64) error {
	switch {
	case st.IsDir():
		return ErrDirectory
	case !st.Mode().IsRegular():
		return fmt.Errorf("%w but %s", ErrNotRegular, kind(st.Mode()))
	case st.Size() > limit:
		return fmt.Errorf("%d bytes are %w (%d)", st.Size(), ErrTooLarge, limit)
	}
	return nil
}

func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// named gives every error the form of os.Open's.
func named(path string, err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

// Identity distinguishes a file from every other one as long as it exists. When it has been deleted, its inode may be
// reused; the owner ensures that it is not another user's file.
type Identity struct{ Device, Inode, Owner uint64 }

// IdentityOf returns the identity of the file that os.Stat or Stat of an open file described.
func IdentityOf(st fs.FileInfo) Identity {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return Identity{}
	}
	return Identity{uint64(sys.Dev), sys.Ino, uint64(sys.Uid)}
}

// ParseIdentity reads what String writes.
func ParseIdentity(text string) (id Identity, err error) {
	_, err = fmt.Sscanf(text, "%d:%d:%d", &id.Device, &id.Inode, &id.Owner)
	return id, err
}

func (id Identity) String() string { return fmt.Sprintf("%d:%d:%d", id.Device, id.Inode, id.Owner) }

// Remove removes a name, if it is that of the file known by own. The folder is held meanwhile, so that neither it nor a
// folder above it can be exchanged.
func Remove(path string, own Identity) error {
	failed := func(err error) error { return &fs.PathError{Op: "remove", Path: path, Err: err} }
	// one that may not be listed can be had so, too
	folder, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return failed(err)
	}
	defer unix.Close(folder)
	var st unix.Stat_t
	name := filepath.Base(path)
	if err := unix.Fstatat(folder, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return failed(err)
	}
	if uint64(st.Dev) != own.Device || st.Ino != own.Inode { // its owner may have changed since it was opened
		return failed(ErrReplaced)
	}
	if err := unix.Unlinkat(folder, name, 0); err != nil {
		return failed(err)
	}
	return nil
}
