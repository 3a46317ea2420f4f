// Package importer turns what other tools recorded into traces. Each kind of file has a file of its own here.
package importer

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"memtrace/trace"
)

// Keys of facts about an imported trace.
const (
	KindKey  = "import.kind"  // what the trace was made from
	BriefKey = "import.brief" // what that does not hold, as a phrase
	LacksKey = "import.lacks" // what that does not hold, in sentences
)

// DefaultInterval is the assumed interval of samples without times: that of the first such logs.
const DefaultInterval = 10 * time.Millisecond

// Options are what a file does not contain about itself.
type Options struct {
	Interval time.Duration // between samples without times; 0: DefaultInterval
	Columns  []string      // of a log of nvidia-smi that has no heading
	Spill    Spill         // scratch space for records of snapshots; nil: they are kept in memory
}

// Result is what an import found.
type Result struct {
	Kind   string // what the file is
	Brief  string // what it lacks, as a phrase
	Events int
	Lacks  []string // sentences
}

// Format is a kind of file that becomes a trace. A new one is a row of Formats, and a file of its own here.
type Format struct {
	Name, Doc string
	// recognize reports, from its content, whether a file is of this format. It may read all of it.
	recognize func(file *io.SectionReader) bool
	read      func(out *trace.Writer, file *io.SectionReader, o Options) (Result, error)
}

// Formats lists what can be imported, in the order in which a file is checked.
var Formats = []Format{
	{"torch", "memory snapshot of PyTorch, a pickle or JSON", isTorch, readTorch},
	{"nvidia-smi", "log of nvidia-smi --query-gpu=memory.used --format=csv", isNvidiaSMI, readNvidiaSMI},
	{"nsys", "SQLite file of 'nsys export' with --cuda-memory-usage=true", isNsys, readNsys},
	{"jax", "what jax.profiler.save_device_memory_profile writes", isJAX, readJAX},
	{"rmm", "log of RMM's logging_resource_adaptor", isRMM, readRMM},
	{"mxnet-scopes", "gpu_memory_profile-pid_N.csv of MXNet 2's profiler", isScopes, readScopes},
	{"mxnet-csv", "mxnet_gpu_memory_profiler.csv: a tag and a size in MiB a line", isTagSizes, readTagSizes},
	{"mxnet-log", "standard error of the MXNet that TBD's memory profiler patches", isLog, readLog},
}

// ErrForeign is returned for a file that no format recognizes.
var ErrForeign = errors.New("not a file that can be imported")

// Names lists the names of all formats.
func Names() []string {
	names := make([]string, len(Formats))
	for i := range Formats {
		names[i] = Formats[i].Name
	}
	return names
}

// Find returns the format of a name, or nil.
func Find(name string) *Format {
	for i := range Formats {
		if Formats[i].Name == name {
			return &Formats[i]
		}
	}
	return nil
}

// Recognize finds the format of a file by its content. The error is ErrForeign, with what would be one.
func Recognize(file io.ReaderAt, size int64) (*Format, error) {
	if size == 0 {
		return nil, errors.New("the file is empty")
	}
	for i := range Formats {
		if Formats[i].recognize(io.NewSectionReader(file, 0, size)) {
			return &Formats[i], nil
		}
	}
	return nil, fmt.Errorf("%w: it is none of %s", ErrForeign, strings.Join(Names(), ", "))
}

// Import turns a file into a trace, which it closes. Errors are one sentence, with the place in the file.
func (f *Format) Import(out *trace.Writer, file io.ReaderAt, size int64, o Options) (Result, error) {
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	return f.read(out, io.NewSectionReader(file, 0, size), o)
}
