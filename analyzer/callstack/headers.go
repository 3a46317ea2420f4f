package callstack

import (
	"path"
	"regexp"

	"memtrace/analyzer/symbol"
)

// Libraries of headers are compiled into the program: their functions lie in its object file, often inlined into its
// functions, and only the place of the source or the namespace tells them from the program's own. Who asked for a block
// is the function that used the library; where the whole stack is the library's, the outermost of its functions is.

// headerFolders are where systems, package managers and CMake's FetchContent put other people's headers. A folder that
// is merely called include is the program's own.
var headerFolders = regexp.MustCompile(`^/usr/include/|^/usr/lib(32|64)?/|^/usr/local/([^/]+/)?include/|^/usr/local/cuda[^/]*/|^/opt/([^/]+/)?cuda[^/]*/|^/nix/store/` +
	`|/(site|dist)-packages/|/(ana|mini)?conda[23]?/(envs/[^/]+/)?include/|/(micro)?mamba/(envs/[^/]+/)?include/|/mini(forge|mamba)3?/(envs/[^/]+/)?include/` +
	`|/_deps/[^/]+-src/|/vcpkg(_installed)?/|/\.conan2?/`)

// headerNamespaces are those of libraries that are mostly headers, wherever these lie; without line numbers there is
// nothing else to tell. cuda alone is a namespace that programs use for their own.
var headerNamespaces = regexp.MustCompile(`^(thrust|cub|rmm|raft|cuco|cutlass|cute|cuda::(std|mr|experimental|__[a-z0-9_]*)|nvtx3|Kokkos|Eigen|boost|pybind11|nanobind|fmt|spdlog|` +
	`__gnu_cxx)::`)

// ownHeader are the functions of memtrace.h, wherever it lies.
var ownHeader = regexp.MustCompile(`^memtrace_[a-z_]+_if$|^memtrace::`)

// inHeaderLibrary reports whether a native function comes from a library's headers.
func inHeaderLibrary(f *symbol.Frame) bool {
	return f.Kind == symbol.Native && (ownHeader.MatchString(f.Function) || headerNamespaces.MatchString(f.Function) ||
		f.File != "" && headerFolders.MatchString(path.Clean(f.File)))
}
