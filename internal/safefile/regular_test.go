package safefile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func file(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// others creates one of each kind of file that is not regular, by name.
func others(t *testing.T) map[string]string {
	t.Helper()
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	if err := errors.Join(unix.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("folder"), 0o700),
		os.Symlink(at("pipe"), at("link"))); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return map[string]string{at("pipe"): "a pipe", at("folder"): "a directory", at("link"): "a pipe",
		at("socket"): "a socket", "/dev/null": "a device", "/dev/zero": "a device", "/dev/tty": "a device"}
}

// A pipe hung eight of the places in which files were opened, and /dev/zero had no end in another.
func TestOpenRefuses(t *testing.T) {
	for path, kind := range others(t) {
		for name, try := range map[string]func() error{
			"Open":         func() error { _, err := Open(path); return err },
			"Read":         func() error { _, err := Read(path, 100); return err },
			"OpenUnlinked": func() error { _, err := OpenUnlinked(path, 100); return err },
			"OpenToWrite":  func() error { _, err := OpenToWrite(path, os.O_WRONLY, Identity{}); return err },
		} {
			err := try()
			var inPath *fs.PathError
			if !errors.Is(err, ErrNotRegular) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.ENXIO) ||
				!errors.As(err, &inPath) || inPath.Path != path {
				t.Errorf("%s %s: %v", name, path, err)
			}
			if (name == "Open" || name == "Read") && !strings.HasSuffix(err.Error(), ": not a regular file but "+kind) {
				t.Errorf("%s %s: %v, want %s", name, path, err, kind)
			}
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestSizes(t *testing.T) {
	path := file(t, filepath.Join(t.TempDir(), "file"), "0123456789")
	if text, err := Read(path, 10); err != nil || string(text) != "0123456789" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := Read(path, 9); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "10 bytes") {
		t.Error(err)
	}
	if err := os.Truncate(path, MaxSize+1); err != nil {
		t.Skip(err) // the file system has no such files
	}
	if _, err := Open(path); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	// The kernel's own files report size 0, and some of them have no end.
	if text, err := Read("/proc/self/maps", 100); err != nil || len(text) != 0 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// A file that grows while it is read has no end, either.
func TestContentEnds(t *testing.T) {
	path := file(t, filepath.Join(t.TempDir(), "file"), "before")
	opened, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	content, err := Content(opened)
	if err != nil {
		t.Fatal(err)
	}
	file(t, path, "before and after")
	text := make([]byte, 100)
	if n, _ := content.Read(text); string(text[:n]) != "before" {
		t.Errorf("%q", text[:n])
	}
}

func identity(t *testing.T, path string) Identity {
	t.Helper()
	st, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return IdentityOf(st)
}

// What is written to or removed is the file that was meant, whatever has its name by then.
func TestIdentity(t *testing.T) {
	folder := t.TempDir()
	path, precious := file(t, filepath.Join(folder, "file"), "ours"), file(t, filepath.Join(folder, "precious"),
		"precious")
	own := identity(t, path)
	if parsed, err := ParseIdentity(own.String()); err != nil || parsed != own {
		t.Errorf("%v became %v, %v", own, parsed, err)
	}
	opened, err := OpenToWrite(path, os.O_WRONLY, own)
	if err != nil {
		t.Fatal(err)
	}
	opened.Close()
	refused := func(want error) {
		t.Helper()
		if _, err := OpenToWrite(path, os.O_WRONLY, own); !errors.Is(err, want) {
			t.Errorf("open: %v", err)
		}
		if err := Remove(path, own); !errors.Is(err, ErrReplaced) {
			t.Errorf("remove: %v", err)
		}
		if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
			t.Errorf("%q, %v", text, err)
		}
	}
	away := path + ".away" // deleted, its inode could become the next file's
	if err := errors.Join(os.Rename(path, away), os.Symlink(precious, path)); err != nil {
		t.Fatal(err)
	}
	refused(ErrLink)
	if err := errors.Join(os.Remove(path), os.Link(precious, path)); err != nil {
		t.Fatal(err)
	}
	refused(ErrReplaced)
	stranger := own
	stranger.Owner++
	if _, err := OpenToWrite(away, os.O_WRONLY, stranger); !errors.Is(err, ErrReplaced) {
		t.Errorf("open somebody else's: %v", err)
	}
	if err := Remove(away, own); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(away); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
