package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"memtrace/internal/cli"
)

// DefaultOutput is the recorder's own default file name, used here when -o names a folder.
const DefaultOutput = "memtrace.%e.%p.bin"

// outputPlaceholders are the letters that may follow a percent sign in an output pattern; %q{NAME} is checked apart.
const outputPlaceholders = "pehtrn%"

// Settings are the recorder's settings that run has flags for. A zero value leaves the variable as the user's
// environment has it.
type Settings struct {
	Library     string // absolute path
	RunDir      string
	Output      string // absolute pattern
	SpoolDir    string // absolute path
	SpoolMax    int64  // bytes
	HardMax     int64  // bytes
	TraceMax    int64  // bytes
	Overflow    string // wait or drop
	GuestMemory string // a size, or 0
	Log         string
	Stacks      string
	Force       bool
}

// Apply returns base with the recorder preloaded and its settings in place. Of a variable that base names twice only
// the new value remains.
func (g Settings) Apply(base []string) []string {
	env := slices.Clone(base)
	env = SetVariable(env, "LD_PRELOAD", prependPreload(LookupVariable(env, "LD_PRELOAD"), g.Library))
	env = SetVariable(env, ManifestEnv, g.RunDir)
	if g.Output != "" {
		env = SetVariable(env, "MEMTRACE_OUTPUT", g.Output)
	}
	if g.SpoolDir != "" {
		env = SetVariable(env, "MEMTRACE_SPOOL_DIR", g.SpoolDir)
	}
	if g.SpoolMax > 0 {
		env = SetVariable(env, "MEMTRACE_SPOOL_MAX", strconv.FormatInt(g.SpoolMax, 10))
	}
	if g.HardMax > 0 {
		env = SetVariable(env, "MEMTRACE_SPOOL_HARD_MAX", strconv.FormatInt(g.HardMax, 10))
	}
	if g.TraceMax > 0 {
		env = SetVariable(env, "MEMTRACE_TRACE_MAX", strconv.FormatInt(g.TraceMax, 10))
	}
	if g.Overflow != "" {
		env = SetVariable(env, "MEMTRACE_OVERFLOW", g.Overflow)
	}
	if g.GuestMemory != "" {
		env = SetVariable(env, "MEMTRACE_GUEST_MEMORY", g.GuestMemory)
	}
	if g.Log != "" {
		env = SetVariable(env, "MEMTRACE_LOG", g.Log)
	}
	if g.Stacks != "" {
		env = SetVariable(env, "MEMTRACE_STACKS", g.Stacks)
	}
	if g.Force {
		env = SetVariable(env, "MEMTRACE_FORCE", "1")
	}
	return env
}

// prependPreload puts the recorder in front, where it sees a call before any other preloaded library, and nowhere else
// in the list.
func prependPreload(existing, library string) string {
	others := strings.FieldsFunc(existing, func(r rune) bool { return r == ':' || r == ' ' })
	others = slices.DeleteFunc(others, func(path string) bool { return filepath.Base(path) == LibraryName })
	return strings.Join(append([]string{library}, others...), ":")
}

// CheckStacks checks a list that the recorder would read from MEMTRACE_STACKS.
func CheckStacks(list string) error {
	if list == "" {
		return nil
	}
	for word := range strings.SplitSeq(list, ",") {
		name, digits, counted := strings.Cut(word, ":")
		_, err := strconv.ParseUint(digits, 10, 16)
		switch {
		case !counted && (slices.Contains([]string{"full", "none", "frees", "nofrees"}, name)):
		case counted && (name == "native" || name == "python") && err == nil:
		default:
			return cli.UsageErrorf("--stacks %s: choose full, none, or a list such as native:32,python:64,frees",
				list)
		}
	}
	return nil
}

// LookupVariable returns the value that a variable has in an environment, "" without one.
func LookupVariable(env []string, name string) string {
	for _, line := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

// SetVariable returns an environment in which a variable has one value.
func SetVariable(env []string, name, value string) []string {
	env = slices.DeleteFunc(env, func(line string) bool { return strings.HasPrefix(line, name+"=") })
	return append(env, name+"="+value)
}

// OutputPattern checks a pattern of -o and makes it absolute, so that it means the same after the program has changed
// its folder. Without placeholders the pattern is one file, which must not exist unless it may be replaced.
func OutputPattern(pattern string, force bool) (string, error) {
	if err := checkPattern(pattern); err != nil {
		return "", err
	}
	info, statErr := os.Stat(pattern)
	if strings.HasSuffix(pattern, "/") || statErr == nil && info.IsDir() {
		pattern = filepath.Join(pattern, DefaultOutput)
	} else if statErr == nil && !strings.Contains(pattern, "%") && !force {
		return "", fmt.Errorf("%s exists; use -f to replace it, or name another file with -o", pattern)
	}
	if filepath.IsAbs(pattern) {
		return pattern, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("output %s: %w", pattern, err)
	}
	// a percent sign in the folder's own name is not a placeholder
	return filepath.Join(strings.ReplaceAll(here, "%", "%%"), pattern), nil
}

func checkPattern(pattern string) error {
	for rest := pattern; ; {
		at := strings.IndexByte(rest, '%')
		if at < 0 {
			return nil
		}
		rest = rest[at+1:]
		switch {
		case strings.HasPrefix(rest, "q{") && strings.IndexByte(rest, '}') > len("q{"):
			rest = rest[strings.IndexByte(rest, '}')+1:]
		case rest != "" && strings.IndexByte(outputPlaceholders, rest[0]) >= 0:
			rest = rest[1:]
		default:
			return cli.UsageErrorf(
				"output pattern %q: a %% is followed by p (pid), e (program), h (host), t (start time), r (rank), n (counter), q{VARIABLE} or another %%", pattern)
		}
	}
}
