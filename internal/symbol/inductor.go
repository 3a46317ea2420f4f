package symbol

import (
	"io"
	"regexp"
	"strings"

	"memtrace/internal/safefile"
)

// PyTorch's compiler, Inductor, writes a Python file for each graph and runs it. Names of its files are digests of what
// is in them. Each kernel stands behind a comment with the operators that were made one in it, and what the kernel
// fills is allocated right before that comment:
//
//	buf6 = empty_strided_cuda((4096, 2048), (2048, 1), torch.float32)
//	# Topologically Sorted Source Nodes: [h_2, sin], Original ATen: [aten.gelu, aten.sin]
//	triton_poi_fused_gelu_sin_1.run(buf5, buf6, 8388608, stream=stream0)

// InductorFile matches the path of such a file, wherever the cache lies.
var InductorFile = regexp.MustCompile(`(^|/)[a-z2-7]{2}/c[a-z2-7]{40,}\.py$`)

var inductorKernel = regexp.MustCompile(`^\s+# (?:Topologically Sorted )?Source Nodes: \[.*?\], Original ATen: \[(.*?)\]`)

const (
	maxInductorFile = 16 << 20
	// operatorsShown is how many operators of a kernel are named.
	operatorsShown = 4
)

// kernels are the operators of a file's kernels, by line; where a line allocates, those of the kernel behind it.
type kernels []string

// compiled names the operators that a line of a generated file computes; "" where that is not known, as where the file
// is gone.
func (r *Resolver) compiled(file string, line int) string {
	if r.options.NoFiles || r.options.careful || !InductorFile.MatchString(file) {
		return ""
	}
	found, known := r.inductor[file]
	if !known {
		found = readKernels(file)
		if r.inductor == nil {
			r.inductor = make(map[string]kernels)
		}
		r.inductor[file] = found
	}
	if line < 1 || line > len(found) {
		return ""
	}
	return found[line-1]
}

func readKernels(path string) kernels {
	file, err := safefile.OpenUpTo(path, maxInductorFile)
	if err != nil {
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return nil
	}
	return kernelsOf(strings.Split(string(text), "\n"))
}

func kernelsOf(lines []string) kernels {
	list := make(kernels, len(lines))
	now := ""
	for i, line := range lines {
		if found := inductorKernel.FindStringSubmatch(line); found != nil {
			now = operatorsOf(found[1])
		} else if line != "" && line[0] != ' ' { // another function
			now = ""
		}
		list[i] = now
	}
	next := ""
	for i := len(lines) - 1; i >= 0; i-- {
		switch line := lines[i]; {
		case inductorKernel.MatchString(line):
			next = list[i]
		case line != "" && line[0] != ' ':
			next = ""
		case strings.Contains(line, "= empty_strided_"), strings.Contains(line, "= alloc_from_pool("):
			list[i] = next
		}
	}
	return list
}

// operatorsOf shortens a list of operators, such as "aten.gelu, aten.sin".
func operatorsOf(list string) string {
	names := strings.Split(list, ", ")
	for i, name := range names {
		names[i] = strings.TrimPrefix(strings.TrimSpace(name), "aten.")
	}
	if len(names) > operatorsShown {
		names = append(names[:operatorsShown:operatorsShown], "...")
	}
	return strings.Join(names, ", ")
}
