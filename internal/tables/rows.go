package tables

import "time"

// Run is one rank: the process, what it reached, and whether its figures are whole.
type Run struct {
	Rank      int32             `parquet:"rank,delta"`                              // numbered on where the program has none
	Ranked    bool              `parquet:"ranked"`                                  // the program said its rank itself
	WorldSize int32             `parquet:"world_size,delta"`                        // ranks of the job; 0 unknown
	Trace     string            `parquet:"trace"`                                   // name of the file
	PID       int64             `parquet:"pid,delta"`                               // 0 unknown
	Command   string            `parquet:"command,dict"`                            // as it was started
	Host      string            `parquet:"host,dict"`                               //
	Pod       string            `parquet:"pod,dict"`                                // of Kubernetes; "" outside
	Started   time.Time         `parquet:"started,optional,timestamp(microsecond)"` // null: unknown
	Duration  int64             `parquet:"duration_ns,delta"`                       //
	Ended     string            `parquet:"ended,dict"`                              // clean, killed, running or unknown
	Versions  map[string]string `parquet:"versions"`                                // of torch, python, cuda_driver, memtrace
	Complete  bool              `parquet:"complete"`                                // nothing is missing, and the program has ended
	Lost      int64             `parquet:"lost_records,delta"`                      //
	OOM       int64             `parquet:"out_of_memory,delta"`                     // times at which the program did not get what it asked for

	FrameworkPeak   int64 `parquet:"framework_peak_bytes,delta"`   // 0 without a framework
	FrameworkPeakAt int64 `parquet:"framework_peak_time_ns,delta"` //
	FrameworkLive   int64 `parquet:"framework_live_bytes,delta"`   // at the end
	FrameworkAllocs int64 `parquet:"framework_alloc_count,delta"`  //
	FrameworkSum    int64 `parquet:"framework_alloc_bytes,delta"`  // of all allocations
	DriverPeak      int64 `parquet:"driver_peak_bytes,delta"`      //
	DriverPeakAt    int64 `parquet:"driver_peak_time_ns,delta"`    //
	DriverLive      int64 `parquet:"driver_live_bytes,delta"`      //
	DriverAllocs    int64 `parquet:"driver_alloc_count,delta"`     //
	DriverSum       int64 `parquet:"driver_alloc_bytes,delta"`     //
}

// Device is a device of a rank, and what the rank had there. The sums of devices may be above the rank's peaks, which
// are of one moment.
type Device struct {
	Rank          int32  `parquet:"rank,delta"`
	Device        int32  `parquet:"device,delta"` // number in the process; -1 unknown
	Name          string `parquet:"name,dict"`
	UUID          string `parquet:"uuid,dict"`
	Total         int64  `parquet:"total_bytes,delta"` // 0 unknown
	FrameworkPeak int64  `parquet:"framework_peak_bytes,delta"`
	ReservedPeak  int64  `parquet:"reserved_peak_bytes,delta"` // held by the framework's allocator
	DriverPeak    int64  `parquet:"driver_peak_bytes,delta"`
	Reported      int64  `parquet:"reported_bytes,delta"` // the most that the device counted for the process; 0 unknown
}

// Share is the memory of one owner at one moment. The shares of a rank, level and moment add up to the level.
type Share struct {
	Rank     int32  `parquet:"rank,delta"`
	Level    string `parquet:"level,dict"`    // framework or driver
	Moment   string `parquet:"moment,dict"`   // peak: of the level; exit: the end; oom; mark:NAME
	Device   int32  `parquet:"device,dict"`   // -1 unknown
	Category string `parquet:"category,dict"` // of the default rules
	Module   string `parquet:"module,dict"`   //
	Tag      string `parquet:"tag,dict"`      //
	Stack    int64  `parquet:"stack,dict"`    // of Stack; 0: none was recorded
	Bytes    int64  `parquet:"bytes,delta"`
}

// Step is an iteration of the training loop, or the part after the last one.
type Step struct {
	Rank         int32 `parquet:"rank,delta"`
	Step         int64 `parquet:"step,delta"`
	Epoch        int64 `parquet:"epoch,delta"` // 0: none was announced
	Ended        bool  `parquet:"ended"`       // false: the part after the last end of an iteration
	Start        int64 `parquet:"start_ns,delta"`
	End          int64 `parquet:"end_ns,delta"`
	Peak         int64 `parquet:"peak_bytes,delta"`
	PeakAt       int64 `parquet:"peak_time_ns,delta"`
	Live         int64 `parquet:"live_bytes,delta"` // when it ended
	ReservedPeak int64 `parquet:"reserved_peak_bytes,delta"`
	ReservedEnd  int64 `parquet:"reserved_end_bytes,delta"`
	Allocs       int64 `parquet:"alloc_count,delta"`
	Frees        int64 `parquet:"free_count,delta"`
}

// StepShare is the memory of a category in an iteration.
type StepShare struct {
	Rank     int32  `parquet:"rank,delta"`
	Step     int64  `parquet:"step,delta"`
	Ended    bool   `parquet:"ended"`
	Category string `parquet:"category,dict"`
	AtPeak   int64  `parquet:"peak_bytes,delta"` // at the iteration's peak
	Highest  int64  `parquet:"highest_bytes,delta"`
	Live     int64  `parquet:"live_bytes,delta"` // when it ended
}

// Tag is a tag path of the program.
type Tag struct {
	Rank   int32  `parquet:"rank,delta"`
	Level  string `parquet:"level,dict"`
	Tag    string `parquet:"tag,dict"`         // the whole path; "(untagged)" without one
	Peak   int64  `parquet:"peak_bytes,delta"` // at the level's peak
	Live   int64  `parquet:"live_bytes,delta"` // at the end
	Sum    int64  `parquet:"alloc_bytes,delta"`
	Allocs int64  `parquet:"alloc_count,delta"`
	Frees  int64  `parquet:"free_count,delta"`
}

// Sample is the most that a level had in one of equal intervals.
type Sample struct {
	Rank  int32  `parquet:"rank,delta"`
	Level string `parquet:"level,dict"`
	From  int64  `parquet:"from_ns,delta"`
	Width int64  `parquet:"width_ns,dict"`
	Peak  int64  `parquet:"peak_bytes,delta"`
}

// Stack is a call stack, the same in all ranks.
type Stack struct {
	Stack    int64   `parquet:"stack"`
	Frames   []int64 `parquet:"frames,list"`   // of Frame, innermost first, as the report folds them
	Function string  `parquet:"function,dict"` // of the program's own innermost frame; "" without one
	File     string  `parquet:"file,dict"`
	Line     int32   `parquet:"line"`
}

// Frame is a line of a function.
type Frame struct {
	Frame    int64  `parquet:"frame"`
	Function string `parquet:"function,dict"`
	File     string `parquet:"file,dict"` // relative to the program's folder, or from its package on; "" unknown
	Line     int32  `parquet:"line"`      // 0 unknown
	Python   bool   `parquet:"python"`
	Own      bool   `parquet:"own"` // the program's own code, not a library's
}

// Block is a block of memory of the framework or the driver. Blocks follow in the order in which they end, those that
// were never freed last.
type Block struct {
	Rank    int32  `parquet:"rank,delta"`
	Level   string `parquet:"level,dict"`
	Device  int32  `parquet:"device,dict"`
	Start   int64  `parquet:"start_ns,delta"`
	End     *int64 `parquet:"end_ns,optional"` // null: it was never freed
	Address int64  `parquet:"address,dict"`
	Bytes   int64  `parquet:"bytes,dict"`
	Stack   int64  `parquet:"stack,dict"`
	Tag     string `parquet:"tag,dict"`
	Thread  int32  `parquet:"thread,dict"` // number in the trace
	Step    int64  `parquet:"step,delta"`  // in which it was allocated
}

// Event is an allocation or a free of the framework or the driver, in the order of the trace.
type Event struct {
	Rank    int32  `parquet:"rank,delta"`
	Time    int64  `parquet:"time_ns,delta"`
	Alloc   bool   `parquet:"alloc"` // false: a free
	Level   string `parquet:"level,dict"`
	Device  int32  `parquet:"device,dict"`
	Thread  int32  `parquet:"thread,dict"`
	Address int64  `parquet:"address,dict"`
	Bytes   int64  `parquet:"bytes,dict"`
	Stack   int64  `parquet:"stack,dict"` // of the allocation
	Step    int64  `parquet:"step,delta"`
	Live    int64  `parquet:"live_bytes,delta"` // of the level, on all devices, afterwards
}
