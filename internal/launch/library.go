package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// LibraryName is the file name of the recorder.
const LibraryName = "libmemtrace.so"

// libraryEnv overrides the search for the recorder.
const libraryEnv = "MEMTRACE_LIBRARY"

// libraryFolders are where the recorder may be, relative to the folder of this executable: a build tree, then the two
// usual layouts of an installation.
var libraryFolders = []string{".", "../lib/memtrace", "../lib"}

// FindLibrary returns the absolute path of the recorder that is to be preloaded.
func FindLibrary() (string, error) {
	path, err := SearchLibrary()
	if err != nil {
		return "", err
	}
	// The dynamic linker splits LD_PRELOAD at both, and knows no way to quote them.
	if strings.ContainsAny(path, ": ") {
		return "", fmt.Errorf(
			"%s: LD_PRELOAD cannot hold a path with a space or a colon; copy the library elsewhere and set %s to the copy", path, libraryEnv)
	}
	return path, nil
}

// SearchLibrary returns the absolute path of the recorder: the one that is named, else one beside this executable.
func SearchLibrary() (string, error) {
	if named := os.Getenv(libraryEnv); named != "" {
		if err := regularFile(named); err != nil {
			return "", fmt.Errorf("%s: %w; set it to the path of %s or unset it", libraryEnv, err, LibraryName)
		}
		return filepath.Abs(named)
	}
	folder, err := FindBeside(LibraryName, libraryFolders, fmt.Sprintf("build it with 'make lib' or set %s to its path",
		libraryEnv))
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, LibraryName), nil
}

// FindBeside returns the first of some folders, seen from that of this executable, that has a regular file of this
// name. The advice closes the error's sentence.
func FindBeside(name string, folders []string, advice string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find %s: %w; %s", name, err, advice)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	var looked []string
	for _, folder := range folders {
		path := filepath.Join(filepath.Dir(self), folder, name)
		if regularFile(path) == nil {
			return filepath.Join(filepath.Dir(self), folder), nil
		}
		looked = append(looked, path)
	}
	return "", fmt.Errorf("%s is missing; looked for %s; %s", name, strings.Join(looked, ", "), advice)
}

func regularFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &os.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	return nil
}
