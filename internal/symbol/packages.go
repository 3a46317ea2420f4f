package symbol

import (
	"os"
	"path/filepath"
	"strings"

	"memtrace/internal/safefile"
)

// PackageFolders finds the folders into which pip, or another installer, installed Python packages, whatever their
// names: `pip install --target` leaves metadata next to each package. The zero value is ready.
type PackageFolders struct {
	// by a source file's folder: the folder that its package was installed into, "" if it was not
	known map[string]string
}

// packageDepth bounds how many folders a package may have one in another.
const packageDepth = 32

// Of returns the folder that a source file's package was installed into, "" if that cannot be seen on this machine.
func (p *PackageFolders) Of(file string) string {
	folder := filepath.Dir(file)
	if !filepath.IsAbs(file) {
		return ""
	}
	found, known := p.known[folder]
	if !known {
		found = packageFolder(folder)
		if p.known == nil {
			p.known = make(map[string]string)
		}
		p.known[folder] = found
	}
	return found
}

// packageFolder finds the outermost folder of a package and looks for its metadata next to it: NAME-VERSION.dist-info
// or .egg-info.
func packageFolder(folder string) string {
	top := ""
	for range packageDepth {
		if _, err := os.Lstat(filepath.Join(folder, "__init__.py")); err != nil {
			break
		}
		top, folder = folder, filepath.Dir(folder)
	}
	if top == "" {
		return ""
	}
	name := normalized(filepath.Base(top))
	for _, pattern := range []string{"*.dist-info", "*.egg-info"} {
		// the only error is that of a bad pattern
		metadata, _ := filepath.Glob(filepath.Join(escapeGlob(folder), pattern))
		for _, path := range metadata {
			distribution, _, _ := strings.Cut(filepath.Base(path), "-")
			if normalized(distribution) == name || lists(filepath.Join(path, "top_level.txt"), filepath.Base(top)) {
				return folder
			}
		}
	}
	return ""
}

// normalized is a name as packages' metadata compares it.
func normalized(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "_")) }

// lists reports whether a small text file has a line.
func lists(path, line string) bool {
	const most = 64 << 10
	text, err := safefile.Read(path, most)
	if err != nil {
		return false
	}
	for have := range strings.Lines(string(text)) {
		if strings.TrimSpace(have) == line {
			return true
		}
	}
	return false
}

// escapeGlob escapes a path for use in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
