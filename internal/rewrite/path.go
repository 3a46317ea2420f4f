package rewrite

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// installed and standard match up to the end of the folder that a package's or the standard library's own path
	// begins in. What follows reveals nothing about the machine, and reports know from the folder's name that the code
	// is not the user's.
	installed = regexp.MustCompile(`(?:^|/)((?:site|dist)-packages/)`)
	standard  = regexp.MustCompile(`(?:^|/)(lib(?:64)?/python3\.[0-9]+t?/)|(?:^|/)(python3[0-9]+\.zip/)`)
	// generated is where PyTorch's compiler puts the code that it makes up; the folder is named after the user.
	generated = regexp.MustCompile(`(?:^|/)(torchinductor_)[^/]*/`)
)

// systemFolders hold what the system and its administrator installed.
var systemFolders = []string{"/lib/", "/lib32/", "/lib64/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/",
	"/usr/local/lib/", "/usr/local/lib64/", "/usr/local/cuda/",
	"/opt/conda/lib/", "/nix/store/"}

// knownFile matches object files that are public wherever they are: in an environment, in a container, beside a
// program.
var knownFile = regexp.MustCompile(`^(python[0-9.]*|ld-linux[a-z0-9_-]*|ld-musl[a-z0-9_-]*|ld|lib(` +
	strings.Join([]string{
		`memtrace|python[0-9.]+t?|c|m|dl|rt|pthread|util|resolv|z|stdc\+\+|gcc_s|gomp|iomp5|mkl_[a-z0-9_]+|openblas[a-z0-9_.-]*`,
		`cu(da|dart|blas|blasLt|dnn|dnn_[a-z_]+|fft|fftw|rand|solver|solverMg|sparse|sparseLt|pti|file)|nccl|npp[a-z]+`,
		`nv(idia-[a-z0-9-]+|JitLink|rtc|rtc-builtins|ToolsExt|jpeg|infer|infer_plugin|shmem|shmem_host|perf_host|perf_target|Blas|vm)`,
		`c10|c10_cuda|torch|torch_(cpu|cuda|python|global_deps|cuda_linalg|nvshmem)|caffe2_nvrtc|shm|mxnet|tensorflow_(framework|cc)`,
	}, "|") + `))(\.so[.0-9]*|-[0-9.]+\.so)?$`)

// systemFolder returns the folder of systemFolders that a file is in.
func systemFolder(file string) (folder string, ok bool) {
	i := slices.IndexFunc(systemFolders, func(folder string) bool { return strings.HasPrefix(file, folder) })
	if i < 0 {
		return "", false
	}
	return systemFolders[i], true
}

// pathFrom returns the path from the last folder that one of the patterns matches.
func pathFrom(file string, patterns ...*regexp.Regexp) (rest string, ok bool) {
	for _, pattern := range patterns {
		if all := pattern.FindAllStringSubmatchIndex(file, -1); all != nil {
			last := all[len(all)-1]
			for group := 2; group < len(last); group += 2 {
				if last[group] >= 0 {
					return file[last[group]:], true
				}
			}
		}
	}
	return "", false
}

// lastParts returns the last n parts of a path.
func lastParts(file string, n int) string {
	parts := strings.Split(strings.Trim(file, "/"), "/")
	return strings.Join(parts[max(0, len(parts)-n):], "/")
}

// shortModule is what is needed of an object file's path: its base name, preceded by what shows its owner.
func shortModule(file string) string {
	if !strings.Contains(file, "/") {
		return file
	}
	if rest, ok := pathFrom(file, installed, standard); ok {
		return rest
	}
	folder, _ := systemFolder(file)
	return folder + path.Base(file)
}

// publicModule reports whether an object file's name is known to everybody. What an administrator put under /usr/local
// may be the site's own.
func publicModule(file string) bool {
	if file == "" || file[0] == '[' || strings.HasPrefix(file, "linux-vdso.so") {
		return true
	}
	if _, ok := pathFrom(file, installed, standard); ok {
		return true
	}
	if folder, ok := systemFolder(file); ok && !strings.HasPrefix(folder, "/usr/local/lib") {
		return true
	}
	return knownFile.MatchString(path.Base(file))
}

// shortFile is what is needed of a Python file's path: from the folder of packages on, or its last two parts. Names in
// angle brackets are not paths.
func shortFile(file string) string {
	if strings.HasPrefix(file, "<") {
		return file
	}
	if rest, ok := pathFrom(file, installed, standard); ok {
		return rest
	}
	if m := generated.FindStringSubmatchIndex(file); m != nil {
		return file[m[2]:m[3]] + "/" + lastParts(file[m[1]:], 2)
	}
	return lastParts(file, 2)
}

// frozen matches the parts of the standard library that are built into the interpreter, whose files have names in angle
// brackets.
var frozen = regexp.MustCompile(
	`^<frozen (importlib\.[a-z_.]+|runpy|zipimport|abc|codecs|io|os|posixpath|genericpath|site|stat|_collections_abc|_sitebuiltins|__main__)>$`)

// publicFile reports whether a Python file belongs to CPython or to an installed package.
func publicFile(file string) bool {
	if frozen.MatchString(file) {
		return true
	}
	_, ok := pathFrom(file, installed, standard)
	return ok && file[0] != '<'
}

// anyPath matches what looks like an absolute path, or one of a home folder, in a free text.
var anyPath = regexp.MustCompile(`(~|\B)/[^\s:;,"'()<>]*[^\s:;,."'()<>]`)

// shortText shortens the paths in a free text to their base names.
func shortText(text string) string {
	return anyPath.ReplaceAllStringFunc(text, path.Base)
}
