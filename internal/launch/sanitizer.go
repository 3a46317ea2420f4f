package launch

import (
	"debug/elf"
	"os/exec"
	"slices"
	"strings"

	"memtrace/internal/safefile"
)

// linkOrder is the option of AddressSanitizer's that ends a program where another library precedes the sanitizer's. The
// recorder replaces nothing that the sanitizer intercepts, and may precede it.
const linkOrder = "verify_asan_link_order"

// AllowSanitizer returns an environment in which a program that is built with AddressSanitizer as a shared library
// starts with the recorder before it. Others, and the user's setting of the order, are unchanged.
func AllowSanitizer(env []string, program string) []string {
	options := LookupVariable(env, "ASAN_OPTIONS")
	if strings.Contains(options, linkOrder) || !needsSanitizer(program) {
		return env
	}
	if options != "" {
		options += ":"
	}
	return SetVariable(env, "ASAN_OPTIONS", options+linkOrder+"=0")
}

// needsSanitizer reports whether a program loads gcc's or clang's AddressSanitizer.
func needsSanitizer(program string) bool {
	path, err := exec.LookPath(program)
	if err != nil {
		return false
	}
	opened, err := safefile.Open(path)
	if err != nil {
		return false
	}
	defer opened.Close()
	file, err := elf.NewFile(opened)
	if err != nil {
		return false
	}
	libraries, err := file.ImportedLibraries()
	return err == nil && slices.ContainsFunc(libraries, func(name string) bool {
		return strings.HasPrefix(name, "libasan.so") || strings.HasPrefix(name, "libclang_rt.asan")
	})
}
