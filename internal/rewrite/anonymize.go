package rewrite

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"memtrace/cuda"
	"memtrace/trace"
)

// removed replaces a sentence that may hold anything.
const removed = "(removed)"

// Anonymizer does what Strip does and replaces the user's names by pseudonyms: the same name by the same one, in all
// traces that are edited with one key.
type Anonymizer struct {
	Strip
	pseudonyms *pseudonyms
	modules    map[trace.ModuleID]bool // whether everybody knows it
	files      map[string]bool         // base names of those that everybody knows
}

// NewAnonymizer returns an Anonymizer whose pseudonyms depend on a secret key of at least MinKey bytes; nil means a
// random one. Only a holder of the key can test whether a pseudonym is that of a certain name.
func NewAnonymizer(strip Strip, key []byte) (*Anonymizer, error) {
	p, err := newPseudonyms(key)
	if err != nil {
		return nil, err
	}
	return &Anonymizer{Strip: strip, pseudonyms: p, modules: make(map[trace.ModuleID]bool),
		files: make(map[string]bool)}, nil
}

func (a *Anonymizer) replaced(old, edited string) string { return a.changed(CountNames, old, edited) }

// Info implements trace.Editor.
func (a *Anonymizer) Info(key, value string) (edited string, keep bool) {
	edited, keep = a.Strip.Info(key, value)
	switch {
	case key == "process.exe":
		edited = a.replaced(edited, a.program(edited))
	case key == "process.argv" && edited != "":
		edited = a.replaced(edited, a.command(edited, "\x00"))
	case key == "process.command" && edited != "":
		edited = a.replaced(edited, a.command(edited, " "))
	case slices.Contains(sentences, key):
		edited = a.replaced(edited, sentence(key, value))
	case strings.HasPrefix(key, unhooked):
		if _, err := strconv.ParseUint(value, 10, 32); err != nil {
			return "", false
		}
	}
	return edited, keep
}

// passedSelfTest matches the recorder's report on Python stacks that it compared with the interpreter's own.
var passedSelfTest = regexp.MustCompile(`^passed: [0-9]+ frames$`)

// sentence keeps memtrace's statements about itself. What names a file, a library or a function keeps only the word
// before the colon, which reports go by.
func sentence(key, text string) string {
	if strings.HasPrefix(key, "nvml.") && !strings.Contains(text, "/") {
		return text // about the device
	}
	if passedSelfTest.MatchString(text) {
		return text
	}
	for _, fixed := range []string{"on", "off", "stopped", "failed", "not possible"} {
		if text == fixed {
			return text
		}
		if strings.HasPrefix(text, fixed+": ") {
			return fixed + ": " + removed
		}
	}
	return removed
}

func (a *Anonymizer) command(text, separator string) string {
	name, rest, more := strings.Cut(text, separator)
	if name = a.program(name); more {
		name += separator + rest
	}
	return name
}

// program replaces the base name of an executable that is not the Python interpreter.
func (a *Anonymizer) program(name string) string {
	if interpreter.MatchString(name) {
		return name
	}
	return a.pseudonyms.of(name)
}

var interpreter = regexp.MustCompile(`^python[0-9.]*$`)

// occasions are the names that samples of the device have: memtrace's words in the place of the user's.
var occasions = []string{"context", "period", "peak", "oom", "exit"}

// String implements trace.Editor. A tag's path keeps its parts.
func (a *Anonymizer) String(text string) string {
	if slices.Contains(occasions, text) {
		return text
	}
	return a.replaced(text, a.tag(text))
}

func (a *Anonymizer) tag(text string) string { return a.pseudonyms.parts(text, "./", nil) }

// Module implements trace.Editor.
func (a *Anonymizer) Module(m trace.Module) trace.Module {
	public := publicModule(m.Path)
	a.modules[m.ID] = public
	if public {
		a.files[path.Base(m.Path)] = true
	}
	m = a.Strip.Module(m)
	m.ModTime = 0
	if !public {
		folder, _ := systemFolder(m.Path)
		m.Path = a.replaced(m.Path, folder+a.library(m.Path))
		m.BuildID, m.Size = "", 0
	}
	return m
}

// library replaces the base name of an object file, except for the parts that mark it as a shared library.
func (a *Anonymizer) library(name string) string {
	base, rest, shared := strings.Cut(path.Base(name), ".so")
	if base = a.pseudonyms.of(base); shared {
		base += ".so"
		if strings.Trim(rest, ".0123456789") == "" {
			base += rest
		}
	}
	return base
}

// Thread implements trace.Editor.
func (a *Anonymizer) Thread(th trace.Thread) trace.Thread {
	th.Name = a.replaced(th.Name, a.pseudonyms.of(th.Name))
	return th
}

// Device implements trace.Editor.
func (a *Anonymizer) Device(d trace.Device) trace.Device {
	d.UUID = a.replaced(d.UUID, a.uuid(d.UUID))
	return d
}

func (a *Anonymizer) uuid(uuid string) string {
	if uuid == "" {
		return ""
	}
	return "GPU-" + a.pseudonyms.of(uuid)
}

// Code implements trace.Editor.
func (a *Anonymizer) Code(c trace.Code) trace.Code {
	public := publicFile(c.File)
	c = a.Strip.Code(c)
	if !public {
		c.File = a.replaced(c.File, a.file(c.File))
		c.Name = a.replaced(c.Name, a.function(c.Name))
		c.QualName = a.replaced(c.QualName, a.function(c.QualName))
	}
	return c
}

var (
	// typed matches pseudo-files of code that was typed in; the hash of its text may follow.
	typed = regexp.MustCompile(`^<(string|stdin|(?:ipython|python)-input-[0-9]+)(-[0-9a-f]+)?>$`)
	// sourceEnding matches file extensions that reveal only the language.
	sourceEnding = regexp.MustCompile(`\.(py|pyx|pxd|pyi|ipynb|so|c|cc|cpp|cxx|cu|cuh|h|hpp|hh|rs|go|S|s)$`)
)

// file replaces the parts of a shortened path, but for the language that its ending names and for folders that the
// reports go by.
func (a *Anonymizer) file(name string) string {
	if m := typed.FindStringSubmatch(name); m != nil {
		return "<" + m[1] + ">"
	}
	if strings.HasPrefix(name, "<") {
		return "<" + a.pseudonyms.of(name) + ">"
	}
	ending := sourceEnding.FindString(name)
	name = strings.TrimSuffix(name, ending)
	return a.pseudonyms.parts(name, "/", func(part string) bool {
		return part == "" || part == "__pycache__" || part == "torchinductor_"
	}) + ending
}

// words are parts of qualified names that Python itself gives.
var words = []string{"<module>", "<lambda>", "<locals>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>",
	"__init__", "__new__", "__del__", "__call__", "__enter__", "__exit__",
	"__aenter__", "__aexit__", "__iter__", "__next__", "__aiter__", "__anext__", "__await__", "__getitem__",
	"__setitem__", "__delitem__", "__getattr__", "__setattr__", "__getattribute__",
	"__len__", "__repr__", "__str__", "__eq__", "__hash__", "__bool__", "__contains__", "__get__", "__set__",
	"__set_name__", "__init_subclass__", "__class_getitem__", "__post_init__",
	"__add__", "__sub__", "__mul__", "__matmul__", "__truediv__", "__radd__", "__rmul__", "__neg__", "__annotate__",
	"__reduce__", "__getstate__", "__setstate__", "__copy__",
	"__deepcopy__", "__torch_function__", "__torch_dispatch__"}

// function replaces the parts of a Python name.
func (a *Anonymizer) function(name string) string {
	return a.pseudonyms.parts(name, ".", func(part string) bool { return part == "" || slices.Contains(words, part) })
}

// Symbol implements trace.Editor.
func (a *Anonymizer) Symbol(y trace.Symbol) (edited trace.Symbol, keep bool) {
	if y, keep = a.Strip.Symbol(y); !keep || a.modules[y.Module] {
		return y, keep
	}
	for i := range y.Frames {
		f := &y.Frames[i]
		f.Function = a.replaced(f.Function, a.native(f.Function))
		f.File = a.replaced(f.File, a.file(f.File))
	}
	return y, true
}

// native replaces the name of compiled code, except for the prefix that marks a Python function in CPython's map for
// perf: reports leave such frames to the Python stack.
func (a *Anonymizer) native(name string) string {
	const trampoline = "py::"
	if rest, ok := strings.CutPrefix(name, trampoline); ok {
		return trampoline + a.pseudonyms.of(rest)
	}
	return a.pseudonyms.of(name)
}

// End implements trace.Editor.
func (a *Anonymizer) End(e trace.End) trace.End {
	if !slices.Contains([]string{"", "exit", "killed"}, e.Reason) {
		e.Reason = a.replaced(e.Reason, removed)
	}
	return e
}

// OOM implements trace.Editor.
func (a *Anonymizer) OOM(report string) (edited string, keep bool) {
	if report, keep = a.Strip.OOM(report); !keep {
		return "", false
	}
	return editReport(report, func(at reportPlace, text string) (string, bool) {
		edited, keep := a.reportText(at, text)
		return a.replaced(text, edited), keep
	})
}

// The owners of rows that have names of the user's; the keys of all others are memtrace's words.
const (
	ownerBlocks  = "blocks"
	ownerOutside = "outside"
)

// fixedKeys name values of a report that are memtrace's own words, or numbers.
var fixedKeys = []string{"schema", "outcome", "level", "memory", "by", "moment", "owner", "rule", "occasion", "status",
	"started", "ended"}

func (a *Anonymizer) reportText(at reportPlace, text string) (edited string, keep bool) {
	switch {
	case text == "", slices.Contains(fixedKeys, at.key), at.parent == "versions", at.parent == "devices" &&
		at.key == "name":
		return text, true
	case at.key == "uuid":
		return a.uuid(text), true
	case at.key == "exe":
		return a.program(text), true
	case at.key == "args" && at.index == 0, at.key == "command":
		return a.command(text, " "), true
	case at.key == "args":
		return text, true // Strip left -c alone
	case at.key == "text", at.key == "why", at.key == "notes":
		return removed, true
	case at.key == "sidecar_file", at.key == "label":
		return "", false
	case at.key == "key" && at.owner == ownerOutside:
		return a.row("library", text), true
	case at.key == "key" && (at.owner == ownerBlocks || at.owner == ""):
		return a.row(at.by, text), true
	case at.key == "key":
		return text, true // the framework's name, and other words of memtrace's
	case at.key == "what":
		kind, name, _ := strings.Cut(text, " ")
		if kind == "step" || kind == "epoch" {
			return text, true
		}
		return strings.TrimSuffix("mark "+a.tag(name), " "), true
	case at.key == "tag", at.key == "thread", at.key == "library", at.key == "caller":
		return a.row(at.key, text), true
	case at.key == "call":
		return a.row("api", text), true
	}
	return a.pseudonyms.of(text), true
}

var (
	// rest matches placeholders of things without a name or beyond a limit.
	rest = regexp.MustCompile(`^\((untagged|unknown|unknown device|no stack|[0-9]+ more)\)$`)
	// numberedThread is a thread's name and the kernel's number.
	numberedThread = regexp.MustCompile(`^(.*) \(([0-9]+)\)$`)
)

// row replaces the name of one row, by what rows are grouped by.
func (a *Anonymizer) row(by, text string) string {
	switch {
	case rest.MatchString(text):
		return text
	case by == "tag":
		return a.tag(text)
	case by == "library":
		return a.base(text)
	case by == "caller":
		name, offset, found := strings.Cut(text, "+0x")
		if found {
			return a.base(name) + "+0x" + offset
		}
	case by == "api":
		if _, ok := cuda.ParseAPI(text); ok {
			return text
		}
	case by == "device":
		if number(strings.TrimPrefix(text, "-")) {
			return text
		}
	case by == "thread":
		if m := numberedThread.FindStringSubmatch(text); m != nil {
			return a.pseudonyms.of(m[1]) + " (" + m[2] + ")"
		}
	}
	return a.pseudonyms.of(text)
}

// base replaces the base name of an object file unless everybody knows it.
func (a *Anonymizer) base(base string) string {
	if a.files[base] || publicModule(base) {
		return base
	}
	return a.library(base)
}
