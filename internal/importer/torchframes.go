package importer

import (
	"encoding/binary"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// Native frames of a snapshot have what PyTorch's symbolizer returns (torch/csrc/profiler/unwind): a function with its
// parameters, and a source file and line, "??" and 0, or with TORCH_SYMBOLIZE_MODE=dladdr the object file.

var (
	nativeSources = []string{".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".inc", ".S", ".pyx"}
	objectFile    = regexp.MustCompile(`\.so(\.[0-9.]+)?$`)
	// functions of CPython that calls from C code and into it pass
	interpreterName = regexp.MustCompile(`^(_?Py[A-Z_]|pymain_|cfunction_|method_vectorcall|builtin_|slot_|wrap_|vectorcall_|` +
		`object_vacall|bound_method|classmethod_|partial_|function_code_|type_call|run_(mod|eval)|gen_(send|iternext)|context_run)`)
	interpreterFile = regexp.MustCompile(`(^|/)(Python|Objects|Modules|Include|Programs|Parser)/[^ ]*\.[ch]$`)
)

// unknownObject replaces the object file of native frames; a trace takes it for a library of the system.
const unknownObject = "[native]"

// isNative reports whether a frame is native, not Python's, among which are those of scripts whose names have no
// extension.
func isNative(f BuilderFrame, line int64) bool {
	switch {
	case line <= 0 || line > 1<<30 || objectFile.MatchString(f.File):
		return true
	case strings.HasPrefix(f.File, "<"):
		return false
	case path.Ext(f.File) == "":
		return strings.Contains(f.File, "/include/") || !pythonName.MatchString(f.Function)
	}
	return slices.Contains(nativeSources, path.Ext(f.File))
}

var pythonName = regexp.MustCompile(`^[\pL_<][\pL\pN_.<>]*$`)

// nativeFrame writes a frame as a trace has it: the function without parameters and return type, and the object file.
func nativeFrame(f BuilderFrame) BuilderFrame {
	f.Native, f.Module, f.Function = true, unknownObject, withoutParameters(f.Function)
	switch {
	case objectFile.MatchString(f.File):
		f.Module, f.File, f.Line = f.File, "", 0
	case strings.HasPrefix(f.File, "??"):
		f.File, f.Line = "", 0
	}
	if f.Function == "??" {
		f.Function = ""
	}
	if f.Module == unknownObject && (interpreterFile.MatchString(f.File) || interpreterName.MatchString(f.Function)) {
		f.Module = Python
	}
	return f
}

// withoutParameters turns the name of a C++ function, mangled or not, into what names of code addresses are elsewhere:
// at::add(at::Tensor const&) is at::add.
func withoutParameters(name string) string {
	if strings.HasPrefix(name, "_Z") {
		if plain, err := demangle.ToString(name, demangle.NoParams, demangle.NoEnclosingParams,
			demangle.MaxLength(14)); err ==
			nil {
			return plain
		}
	}
	begin, depth := 0, 0
	for i := 0; i < len(name); i++ {
		rest := name[i:]
		switch {
		case depth == 0 && strings.HasPrefix(rest, "operator") && (i == 0 || strings.IndexByte(": *&", name[i-1]) >= 0):
			// the operator is what precedes the parameters
			at := strings.IndexByte(rest[len("operator"):], '(')
			if strings.HasPrefix(rest, "operator()") {
				at = len("()")
			}
			if at < 0 {
				return name[begin:]
			}
			i += len("operator") + at - 1
		case strings.HasPrefix(rest, "(anonymous namespace)"):
			i += len("(anonymous namespace)") - 1
		case name[i] == '(' && depth == 0:
			end := i + closingBracket(rest)
			if strings.HasPrefix(name[min(end, len(name)):], "::") { // of an enclosing function
				i = end - 1
				continue
			}
			return name[begin:i]
		case name[i] == '<', name[i] == '{', name[i] == '[':
			depth++
		case name[i] == '>' && (i == 0 || name[i-1] != '-'), name[i] == '}', name[i] == ']':
			depth = max(depth-1, 0)
		case name[i] == ' ' && depth == 0:
			begin = i + 1 // after the return type
		}
	}
	return name[begin:]
}

// closingBracket is the length of the bracketed text that a name begins with.
func closingBracket(name string) int {
	depth := 0
	for i := range len(name) {
		switch name[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(name)
}

func (t *torchValues) frame(d *dict) *frame {
	var f BuilderFrame
	var line int64
	for key, v := range d.fields {
		switch key {
		case "filename":
			f.File = text(v)
		case "name":
			f.Function = text(v)
		case "line":
			line = integer(v)
		}
	}
	f.Line = int32(min(max(line, 0), 1<<30))
	if isNative(f, line) {
		f = nativeFrame(f)
	}
	if id, known := t.codes[f]; known {
		return t.frames[id]
	}
	made := &frame{f, uint32(len(t.frames))}
	t.codes[f] = made.id
	t.frames = append(t.frames, made)
	return made
}

// stack interns the frames of a list, which is not needed any more.
func (t *torchValues) stack(l *list) stackRef {
	t.key = t.key[:0]
	for _, v := range l.items {
		if f, ok := v.(*frame); ok {
			t.key = binary.LittleEndian.AppendUint32(t.key, f.id)
		}
	}
	ref, known := t.stacks[string(t.key)]
	if !known {
		var frames []BuilderFrame
		for _, v := range l.items {
			if f, ok := v.(*frame); ok {
				frames = append(frames, f.BuilderFrame)
			}
		}
		ref.native, ref.python = t.out.Stack(frames)
		t.stacks[string(t.key)] = ref
	}
	t.u.memo.become(l.number, ref)
	return ref
}
