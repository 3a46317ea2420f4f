package callstack

import (
	"path"
	"regexp"

	"memtrace/internal/symbol"
)

// Header libraries are compiled into the program: their functions are in its object file, often inlined, and only the
// source file or the namespace distinguishes them from the program's own. A block is attributed to the function that
// used the library; if the whole stack belongs to the library, to its outermost function.

// headerFolders are the folders in which systems, package managers and CMake's FetchContent install third-party
// headers. A folder that is merely named include is the program's own.
var headerFolders = regexp.MustCompile(`^/usr/include/|^/usr/lib(32|64)?/|^/usr/local/([^/]+/)?include/|^/usr/local/cuda[^/]*/|^/opt/([^/]+/)?cuda[^/]*/|^/nix/store/` +
	`|/(site|dist)-packages/|/(ana|mini)?conda[23]?/(envs/[^/]+/)?include/|/(micro)?mamba/(envs/[^/]+/)?include/|/mini(forge|mamba)3?/(envs/[^/]+/)?include/` +
	`|/_deps/[^/]+-src/|/vcpkg(_installed)?/|/\.conan2?/`)

// headerNamespaces are those of libraries that are mostly headers, in any folder; without line numbers nothing else
// identifies them. Programs use the namespace cuda alone for their own code.
var headerNamespaces = regexp.MustCompile(`^(thrust|cub|rmm|raft|cuco|cutlass|cute|cuda::(std|mr|experimental|__[a-z0-9_]*)|nvtx3|Kokkos|Eigen|boost|pybind11|nanobind|fmt|spdlog|` +
	`__gnu_cxx)::`)

// ownHeader matches the functions of memtrace.h, in any folder.
var ownHeader = regexp.MustCompile(`^memtrace_[a-z_]+_if$|^memtrace::`)

// inHeaderLibrary reports whether a native function comes from a library's headers.
func inHeaderLibrary(f *symbol.Frame) bool {
	return f.Kind == symbol.Native && (ownHeader.MatchString(f.Function) || headerNamespaces.MatchString(f.Function) ||
		f.File != "" && headerFolders.MatchString(path.Clean(f.File)))
}
