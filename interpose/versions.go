package main

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"memtrace/internal/safefile"
	"memtrace/internal/version"
	"memtrace/trace"
)

// versions finds the versions of the program's libraries from the files it has mapped, without calling into the
// program.
func versions() trace.Info {
	info := trace.Info{"library.version": version.String}
	maps, err := os.Open("/proc/thread-self/maps") // /proc/self is the first thread, which may have ended
	if err != nil {
		return info
	}
	defer maps.Close()
	seen := map[string]bool{}
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		at := strings.IndexByte(lines.Text(), '/')
		if at < 0 || seen[lines.Text()[at:]] {
			continue
		}
		path := lines.Text()[at:]
		seen[path] = true
		noteFile(info, path)
	}
	return info
}

// maxVersionFile bounds the Python file that a package's version is read from, in bytes.
const maxVersionFile = 1 << 20

var (
	cudartName   = regexp.MustCompile(`^libcudart\.so\.(\d+(?:\.\d+)*)`)
	versionValue = regexp.MustCompile(`(?m)^__version__(?:\s*:\s*\w+)?\s*=\s*['"]([^'"]+)['"]`)
)

func noteFile(info trace.Info, path string) {
	dir, name := filepath.Split(path)
	switch {
	case name == "libc10_cuda.so":
		setVersion(info, "framework.torch", filepath.Join(dir, "..", "version.py"))
	case name == "libmxnet.so":
		setVersion(info, "framework.mxnet", filepath.Join(dir, "libinfo.py"))
	default:
		if m := cudartName.FindStringSubmatch(name); m != nil {
			info["cuda.runtime_version"] = m[1]
		}
	}
}

// setVersion reads the version that a Python package states about itself.
func setVersion(info trace.Info, key, path string) {
	text, err := safefile.Read(path, maxVersionFile)
	if err != nil {
		return
	}
	if m := versionValue.FindSubmatch(text); m != nil {
		info[key] = string(m[1])
	}
}
