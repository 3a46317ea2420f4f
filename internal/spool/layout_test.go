package spool

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"memtrace/internal/guest"
	"memtrace/trace"
)

// mirrored lists what layout.go says of cshim/spool.h: C expression and Go value.
var mirrored = []struct {
	c   string
	go_ uint64
}{
	{"MT_SPOOL_VERSION", layoutVersion}, {"MT_PAGE", pageSize}, {"MT_RECORD_SIZE", recordSize},
	{"MT_SEGMENT_SIZE", segmentSize},
	{"MT_SEGMENT_SLOTS", segmentSlots}, {"sizeof(struct mt_ring)", ringSize},
	{"sizeof(struct mt_index_entry)", indexEntrySize},
	{"H(version)", offVersion}, {"H(record_size)", offRecordSize}, {"H(segment_size)", offSegmentSize},
	{"H(segments_max)", offSegmentsMax},
	{"H(rings_max)", offRingsMax}, {"H(index_max)", offIndexMax}, {"H(rings_offset)", offRingsOffset},
	{"H(index_offset)", offIndexOffset},
	{"H(data_offset)", offDataOffset}, {"H(data_max)", offDataMax}, {"H(segments_offset)", offSegmentsOffset},
	{"H(file_size)", offFileSize},
	{"H(pid)", offPID}, {"H(clock_is_tsc)", offClockIsTSC}, {"H(process_start)", offProcessStart},
	{"H(boot_hash)", offBootHash},
	{"H(pid_namespace)", offPIDNamespace}, {"H(clock_first)", offClockFirst}, {"H(clock_last)", offClockLast},
	{"H(clock_version)", offClockVersion}, {"H(segments_first)", offSegmentsFirst},
	{"H(room)", offRoom}, {"H(waiting)", offWaiting}, {"H(waiting_since)", offWaitingSince},
	{"H(waited_ns)", offWaitedNS}, {"H(waits)", offWaits},
	{"H(seq)", offSeq}, {"H(rings_used)", offRingsUsed}, {"H(index_used)", offIndexUsed}, {"H(data_used)", offDataUsed},
	{"H(free_segments)", offFreeSegments}, {"H(segments_used)", offSegmentsUsed}, {"H(segments_free)", offSegmentsFree},
	{"H(lost_no_ring)", offLostNoRing}, {"H(lost_dict)", offLostDict}, {"H(lost_nested)", offLostNested},
	{"H(lost_threads)", offLostThreads}, {"H(control)", offControl},
	{"H(drain_wake)", offDrainWake}, {"H(drain_wake_at)", offDrainWakeAt}, {"H(drain_state)", offDrainState},
	{"H(drained_seq)", offDrainedSeq}, {"H(exit_status)", offExitStatus}, {"MT_EXITED", exited},
	{"offsetof(struct mt_ring, inflight)", ringInflight}, {"offsetof(struct mt_ring, lost_others)", ringLostOthers},
	{"offsetof(struct mt_ring, state)", ringState},
	{"offsetof(struct mt_ring, thread)", ringThread}, {"offsetof(struct mt_ring, lost_frees)", ringLostFrees},
	{"offsetof(struct mt_ring, lost_from)", ringLostFrom}, {"offsetof(struct mt_ring, first_segment)",
		ringFirstSegment},
	{"offsetof(struct mt_ring, read_segment)", ringReadSegment}, {"offsetof(struct mt_ring, read_slot)", ringReadSlot},
	{"offsetof(struct mt_segment_head, next)", segmentNext}, {"offsetof(struct mt_segment_head, free_next)",
		segmentFreeNext},
	{"R(seq)", recSeq}, {"R(ticks)", recTicks}, {"R(addr)", recAddr}, {"R(size)", recSize}, {"R(stream)", recUnion},
	{"R(handle)", recUnion},
	{"R(allocated)", recUnion}, {"R(pool)", recUnion}, {"R(waits_on)", recReserved},
	{"MT_WAIT", uint64(trace.EventWait)}, {"MT_COMPLETE", uint64(trace.EventComplete)},
	{"MT_EMPTY", uint64(trace.EventEmptyCache)}, {"MT_ASK", uint64(trace.EventAsk)},
	{"MT_POOL", uint64(trace.EventPool)}, {"MT_SETTING", uint64(trace.EventSetting)}, {"R(stack)", recStack},
	{"R(pystack)", recPyStack}, {"R(tag)", recTag}, {"R(api)", recAPI}, {"R(kind)", recKind},
	{"R(device)", recDevice}, {"R(reserved)", recReserved}, {"R(name)", recReserved}, {"R(status)", recStatus},
	{"R(runtime)", recRuntime},
	{"R(mem)", recMem}, {"R(flags)", recFlags},
	{"MT_RING_FREE", ringFree}, {"MT_RING_ACTIVE", ringActive}, {"MT_RING_DEAD", ringDead},
	{"MT_DICT_STRING", dictString}, {"MT_DICT_STACK", dictStack}, {"MT_DICT_MODULE", dictModule},
	{"MT_DICT_THREAD", dictThread},
	{"MT_DICT_DEVICE", dictDevice}, {"MT_DICT_INFO", dictInfo}, {"MT_DICT_PYSTACK", dictPyStack},
	{"MT_DICT_CODE", dictCode}, {"MT_DICT_PLACE", dictPlace},
	{"P(code)", pyFrameCode}, {"P(where)", pyFrameWhere}, {"P(self)", pyFrameSelf},
	{"sizeof(struct mt_pyframe)", pyFrameSize},
	{"C(first_line)", codeFirstLine}, {"C(table)", codeTable}, {"C(module_call)", codeModuleCall},
	{"C(name_width)", codeNameWidth},
	{"C(qualname_width)", codeQualNameWidth}, {"C(file_width)", codeFileWidth}, {"C(name_bytes)", codeNameBytes},
	{"C(qualname_bytes)", codeQualNameBytes}, {"C(file_bytes)", codeFileBytes}, {"C(table_bytes)", codeTableBytes},
	{"sizeof(struct mt_code)", codeSize},
	{"MT_STACK_WHOLE", uint64(trace.StackWhole)}, {"MT_STACK_INTERPRETER", uint64(trace.StackInterpreter)},
	{"MT_STACK_DEPTH", uint64(trace.StackDepth)},
	{"MT_STACK_NO_ROW", uint64(trace.StackNoRow)}, {"MT_STACK_UNSUPPORTED", uint64(trace.StackUnsupported)},
	{"MT_STACK_BOUNDS", uint64(trace.StackBounds)},
	{"MT_STACK_UNREADABLE", uint64(trace.StackUnreadable)}, {"MT_STACK_CALLER", uint64(trace.StackCaller)},
	{"MT_LINES_NONE", uint64(trace.LinesNone)}, {"MT_LINES_LNOTAB", uint64(trace.LinesLnotab)},
	{"MT_LINES_RANGES", uint64(trace.LinesRanges)},
	{"MT_LINES_LOCATIONS", uint64(trace.LinesLocations)},
	{"MT_ID_BITS", idBits}, {"MT_PLACE_LOW", placeLow}, {"MT_REST_LOW", restLow}, {"MT_COUNT_BITS", countBits},
	{"MT_ELEMENT_SHIFT", elementShift},
	{"MT_OP_HALF", opHalf}, {"MT_OP_BITS", opBits}, {"MT_OP_THREAD_BITS", opThreadBits}, {"MT_OP_BACKWARD", opBackward},
	{"MT_FLAG_BACKWARD", uint64(trace.FlagBackward)},
	{"MT_RECORDING", controlRecording}, {"MT_STOP_REQUESTED", controlStopRequested}, {"MT_DRAINED", controlDrained},
}

// The C header is the truth; the Go mirror is compared with what the compiler says about it.
func TestLayoutMatchesC(t *testing.T) {
	var source strings.Builder
	source.WriteString(
		"#include <stdio.h>\n#include \"spool.h\"\n#define H(f) offsetof(struct mt_spool_header, f)\n#define R(f) offsetof(struct mt_record, f)\n#define P(f) offsetof(struct mt_pyframe, f)\n#define C(f) offsetof(struct mt_code, f)\nint main(void) {\n")
	for _, m := range mirrored {
		fmt.Fprintf(&source, "  printf(\"%%llu\\n\", (unsigned long long)(%s));\n", m.c)
	}
	source.WriteString("}\n")
	out, err := exec.Command(guest.Compile(t, "layout", []string{source.String()})).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for _, m := range mirrored {
		if !lines.Scan() {
			t.Fatal("the layout program printed too little")
		}
		if got := lines.Text(); got != fmt.Sprint(m.go_) {
			t.Errorf("%s is %s in C, %d in layout.go", m.c, got, m.go_)
		}
	}
}
