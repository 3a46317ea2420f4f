package report

// FindingKinds are all findings, in the order of the documentation: the verdict, growth, what limits the figures, and
// advice, of which it has the condition. docs/findings.md has the same table.
var FindingKinds = []FindingKind{
	{"bounds", SeverityWarning, "records were lost: figures are bounds"},
	{"nothing-allocated", SeverityInfo, "no CUDA memory was allocated"},
	{"out-of-memory", SeverityAlarm, "memory ran out, as far as known ending the program; one for each device, at most 4"},
	{"caught-out-of-memory", SeverityWarning, "memory ran out, and the program continued"},
	{"peak", SeverityInfo, "how high memory was, and when"},
	{"largest-holder", SeverityInfo, "what held most then, or when a device's memory ran out"},
	{"engine-threads", SeverityInfo, "MXNet's engine threads have no line of the program; how to see more"},
	{"idle-reserved", SeverityInfo, "the framework's allocator held much in no block"},
	{"rounding", SeverityInfo, "much of the blocks was not requested"},
	{"other-processes-held", SeverityInfo, "other processes held much of the device"},
	{"fits", SeverityInfo, "how many times this batch fits on the device: with what the allocator leaves idle now, and " +
		"with nothing idle"},
	{"many-alike", SeverityInfo, "modules that differ in a number followed one another, as versions of one adapter; few " +
		"others are like them"},
	{"parameter-copies", SeverityInfo, "a module has a trained one's parameters: a moving average, a teacher; or a tenth of " +
		"the peak is as large as all parameters, and lasts: best weights"},
	{"undifferentiated", SeverityAdvice, "at the peak forward passes kept activations for a backward pass that never " +
		"came"},
	{"abandoned", SeverityInfo, "the same of a line whose other passes had a backward pass: something kept those without"},
	{"untrained", SeverityAdvice, "a module without optimizer has gradients, or activations for a backward pass"},
	{"kept-by", SeverityInfo, "what kept most tensors alive when memory ran out, or at the end of a program that grew"},
	{"context-held", SeverityInfo, "much was the CUDA context and its code"},
	{"retries", SeverityWarning, "requests were granted only after cached memory was given back; memory did not run out " +
		"for good"},
	{"growth", SeverityAlarm, "a kind of memory grows up to the end of the run or its last iteration; one each"},
	{"no-growth", SeverityInfo, "no growth was found; of a rise too small for that, how much and where"},

	{"truncated", SeverityWarning, "the trace is cut or damaged, and was read up to there"},
	{"no-end", SeverityWarning, "the trace has no end, nor the spool with the last records beside it"},
	{"damaged", SeverityWarning, "parts of the trace could not be read"},
	{"restored", SeverityInfo, "damage was repaired from the trace's check bytes"},
	{"altered", SeverityWarning, "the trace was changed after it was written"},
	{"lost-records", SeverityWarning, "records were dropped, or threads not recorded"},
	{"in-flight", SeverityInfo, "calls had not returned at the end"},
	{"compacted", SeverityInfo, "the trace begins with only what was live at certain moments"},
	{"not-drained", SeverityInfo, "the trace could not be written while the program ran"},
	{"bypassed", SeverityWarning, "allocations did not pass the hooks"},
	{"unknown-calls", SeverityWarning, "calls are newer than the recorder"},
	{"no-calls", SeverityInfo, "no CUDA memory call, or none that passes the filters"},
	{"silent-framework", SeverityInfo, "why PyTorch reported no blocks"},
	{"no-sidecar", SeverityInfo, "why no text was written when memory ran out"},
	{"started-late", SeverityWarning, "CUDA was used before recording began"},
	{"snapshot", SeverityInfo, "the trace has only what was live when it was made"},
	{"counters-differ", SeverityWarning, "the framework's own counters differ from the recording"},
	{"negative-slack", SeverityWarning, "part of the framework's driver memory was not seen"},
	{"estimated-sizes", SeverityInfo, "sizes that the driver did not report"},
	{"foreign-memory", SeverityInfo, "other processes' memory is listed, not counted"},
	{"implicit-frees", SeverityInfo, "memory freed with its context, graph or module"},
	{"cut-stacks", SeverityInfo, "why call stacks are incomplete"},
	{"nameless-functions", SeverityInfo, "functions of the program have no names"},
	{"names-missing", SeverityInfo, "why a framework's blocks lack names or modules"},
	{"null-gpu", SeverityInfo, "there was no real GPU"},
	{"imported", SeverityInfo, "the trace was imported; what the other tool's file lacks"},
	{"several-categories", SeverityInfo, "blocks count in more than one category"},
	{"symbol-problems", SeverityInfo, "what prevented symbolising code addresses"},
	{"own-account-unread", SeverityInfo, "the framework's own counters could not be read"},

	{"larger-than-device", SeverityAdvice, "the request exceeds the device"},
	{"own-limit", SeverityAdvice, "the framework gave up without asking the driver, and there is room"},
	{"kept", SeverityAdvice, "a fifth, or enough, is older than the running iteration or forward pass, comes from three " +
		"or more of them, and does not stay by its nature; rules that only delay the next failure are then left out"},
	{"autocast-copies", SeverityAdvice, "half-precision weights cached by torch.autocast are a tenth; reports only"},
	{"gradients", SeverityAdvice, "before an optimizer's first step, gradients are a quarter: the state was still to " +
		"come"},
	{"failed-attempts", SeverityAdvice, "at this or a later refusal, a fifth of the blocks came from failed attempts"},
	{"orphans", SeverityAdvice, "parameters that nothing but an optimizer has, and their state, are a tenth"},
	{"replaced", SeverityAdvice, "a variable has what the line of the request made before, as large as the request"},
	{"private-pools", SeverityAdvice, "two or more private pools, one for each capture of a CUDA graph, hold " +
		"enough idle memory"},
	{"fragmentation", SeverityAdvice, "no piece of PyTorch's idle bytes outside private pools is enough, their pages of " +
		"20 MiB are, and a twentieth; expandable segments are off"},
	{"multi-tensor", SeverityAdvice, "temporaries of an optimizer's step over many parameters at once are enough, less " +
		"what foreach=False needs unless there is a fused step"},
	{"idle-cache", SeverityAdvice, "a caller other than the framework was refused, and whole segments are idle"},
	{"other-processes", SeverityAdvice, "other processes hold enough, or a fifth of all in use"},
	{"fresh", SeverityAdvice, "a fifth was allocated since the step began"},
	{"largest-owner", SeverityAdvice, "one tag held a fifth before the step began"},
	{"untagged", SeverityAdvice, "without tags and steps: half is in blocks"},
	{"tagged", SeverityAdvice, "without steps: a tag holds a fifth"},
	{"activations", SeverityAdvice, "feature maps of the running iteration and their gradients are a fifth; names " +
		"checkpointing if unused, a backward pass will come and most are made in modules, autocast if parameters are " +
		"wider than half precision"},
	{"parameters", SeverityAdvice, "parameters are two fifths; names half precision if they are wider"},
	{"longer-input", SeverityAdvice, "this iteration made a quarter more feature maps than the median of three or more " +
		"before, most by code that ran before; the difference is a fifth, or enough"},
	{"loaded-twice", SeverityAdvice, "tensors that torch.load or safetensors read onto the device are a tenth, beside " +
		"as many bytes of parameters or optimizer state"},
	{"optimizer-state", SeverityAdvice, "a tag with \"optim\" in its name holds a fifth, or optimizer state a seventh"},
	{"growing", SeverityAdvice, "each of four or more steps began with more than the one before"},
	{"pool-idle", SeverityAdvice, "stream-ordered memory pools hold enough idle memory"},
	{"graph-pool", SeverityAdvice, "the pool of CUDA graphs holds enough idle memory"},
	{"outside", SeverityAdvice, "a library outside the framework's allocator holds enough and a tenth"},
	{"mxnet-pool", SeverityAdvice, "MXNet's pool holds enough"},
	{"context", SeverityAdvice, "context, code and untracked memory are a fifth, and code is not loaded lazily"},
	{"pinned", SeverityAdvice, "host memory ran out, not the device's"},
	{"recovered", SeverityAdvice, "the allocator freed its cache and succeeded"},
}
