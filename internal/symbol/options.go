package symbol

import (
	"os"
	"path/filepath"
)

// Options select the sources. The zero value reads the object files and the system's folder of debug files, without a
// cache.
type Options struct {
	Sources []string // folders with debug files, laid out as /usr/lib/debug; nil: that one
	Cache   string   // folder that keeps what was found in an object file for the next time; "" none
	Mangled bool     // leave the linker's names unchanged
	PerfMap string   // file that names compiled code; "": /tmp/perf-PID.map where it belongs to the run
	NoFiles bool     // use only what the trace holds

	Packages bool // look next to source files for the metadata of installed packages

	careful bool // inside of the program that is traced: map no file, read little
}

// SeesPackages reports whether packages may be looked for next to source files: neither inside of the traced program
// nor where only the trace may be read.
func (o *Options) SeesPackages() bool { return !o.NoFiles && !o.careful && o.Packages }

// DefaultCache is the folder for Options.Cache: $XDG_CACHE_HOME/memtrace/symbols, else ~/.cache/memtrace/symbols, ""
// without a home directory.
func DefaultCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "memtrace", "symbols")
}
