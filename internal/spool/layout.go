package spool

// The geometry of cshim/spool.h. A test compiles that header and compares every number.
const (
	magic          = "MTSPOOL\x00"
	layoutVersion  = 11
	pageSize       = 4096
	recordSize     = 64
	segmentSize    = 16384
	segmentSlots   = segmentSize / recordSize
	ringSize       = 128
	indexEntrySize = 16
)

// Header offsets.
const (
	offVersion        = 8
	offRecordSize     = 12
	offSegmentSize    = 16
	offSegmentsMax    = 20
	offRingsMax       = 24
	offIndexMax       = 28
	offRingsOffset    = 32
	offIndexOffset    = 40
	offDataOffset     = 48
	offDataMax        = 56
	offSegmentsOffset = 64
	offFileSize       = 72
	offPID            = 80
	offClockIsTSC     = 84
	offProcessStart   = 88
	offBootHash       = 96
	offPIDNamespace   = 104
	offClockFirst     = 112 // ticks, monotonic ns, realtime ns
	offClockLast      = 136
	offClockVersion   = 160
	offSegmentsFirst  = 164
	offSeq            = 192
	offRingsUsed      = 256
	offIndexUsed      = 260
	offDataUsed       = 264
	offFreeSegments   = 320
	offSegmentsUsed   = 328
	offSegmentsFree   = 332
	offLostNoRing     = 384
	offLostDict       = 392
	offLostNested     = 400
	offLostThreads    = 408
	offControl        = 448
	offDrainWake      = 452
	offDrainWakeAt    = 456
	offDrainState     = 460
	offDrainedSeq     = 464
	offExitStatus     = 472
	offRoom           = 512
	offWaiting        = 516
	offWaitingSince   = 520
	offWaitedNS       = 528
	offWaits          = 536
)

// Ring descriptor offsets.
const (
	ringInflight     = 0
	ringLostOthers   = 8
	ringState        = 16
	ringThread       = 20
	ringFirstSegment = 28
	ringLostFrees    = 40
	ringLostFrom     = 48
	ringReadSegment  = 64
	ringReadSlot     = 68
)

// exited is set in the exit status of a program that called exit or _exit.
const exited = 0x100

// Ring states.
const (
	ringFree   = 0
	ringActive = 1
	ringDead   = 2
)

// Segment head offsets; the head takes slot 0.
const (
	segmentNext     = 0
	segmentFreeNext = 8
)

// Record offsets.
const (
	recSeq      = 0
	recTicks    = 8
	recAddr     = 16
	recSize     = 24
	recUnion    = 32 // stream, handle or allocated
	recStack    = 40
	recPyStack  = 44
	recTag      = 48
	recAPI      = 52
	recKind     = 54
	recDevice   = 55
	recReserved = 56 // framework; also a mark's name
	recStatus   = 56
	recRuntime  = 60
	recMem      = 62
	recFlags    = 63
)

// elementShift is where the bytes of a tensor's element stand in recAPI of a name.
const elementShift = 8

// Dictionary kinds.
const (
	dictString = 1
	dictStack  = 2
	dictModule = 3
	dictThread = 4
	dictDevice = 5
	dictInfo   = 6

	dictPyStack = 7
	dictCode    = 8
	dictPlace   = 9
)

// A Python frame in a stack entry, behind the 8 bytes of the stack's end.
const (
	pyFrameCode  = 0
	pyFrameWhere = 4
	pyFrameSelf  = 8
	pyFrameSize  = 16
)

// The head of a code entry; texts and line table follow it.
const (
	codeFirstLine     = 0
	codeTable         = 4
	codeModuleCall    = 5
	codeNameWidth     = 6
	codeQualNameWidth = 7
	codeFileWidth     = 8
	codeNameBytes     = 12
	codeQualNameBytes = 16
	codeFileBytes     = 20
	codeTableBytes    = 24
	codeSize          = 28
)

// Control and drain states.
const (
	controlRecording     = 0
	controlStopRequested = 1
	controlDrained       = 2

	drainRunning = 1
	drainFailed  = 2
)
