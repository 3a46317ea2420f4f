package rewrite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/internal/textform"
	"memtrace/trace"
)

// history is a trace in which most of what was allocated is gone. Of what is live at its end a snapshot tells the same.
const history = `trace version=1
info key="process.pid" value="7"
info key="process.exit_status" value="0"
string id=1 value="model"
string id=2 value="gone"
string id=3 value="layer.weight"
stack id=4 frames=0x401020,0x401030
stack id=5 frames=0x402020
code id=6 name="load" qualname="load" file="/app/train.py" line=3
pystack id=7 frames=6+34
module id=8 start=0x400000 end=0x500000 base=0x400000 path="/app/train" buildid="ab12"
thread id=9 tid=7 name="main"
device index=0 name="Some GPU" uuid="GPU-1" total=85899345920
create seq=1 time=10 thread=9 api=cuCtxCreate_v2 addr=0xc000 device=0 object=context
alloc seq=2 time=20 thread=9 level=driver api=cuMemAlloc_v2 mem=device addr=0x7f0000000000 size=20971520 handle=0xc000 stack=4
alloc seq=3 time=30 thread=9 level=framework api=1 mem=device addr=0x7f0000000000 size=1048576 allocated=1048576 reserved=20971520 stack=4 pystack=7 tag=1
alloc seq=4 time=40 thread=9 level=framework api=1 mem=device addr=0x7f0000100000 size=4194304 allocated=5242880 reserved=20971520 stack=5 tag=2
name seq=5 time=45 thread=9 addr=0x7f0000000000 size=100 category=1 name=3
name seq=6 time=46 thread=9 addr=0x7f0000100000 size=100 category=1 name=2
free seq=7 time=50 thread=9 level=framework api=2 mem=device addr=0x7f0000100000 size=4194304 allocated=1048576 reserved=20971520
alloc seq=8 time=60 thread=9 level=driver api=cuMemAlloc_v2 mem=device addr=0x7f1000000000 size=4096 handle=0xc000 stack=5
free seq=9 time=70 thread=9 level=driver api=cuMemFree_v2 mem=device addr=0x7f1000000000
alloc seq=10 time=80 thread=9 level=driver api=cuMemCreate mem=vmm addr=0x77 size=2097152 stack=4
map seq=11 time=90 thread=9 level=driver api=cuMemMap addr=0x7f2000000000 size=2097152 handle=0x77
flush watermark=12
end reason="exit" events=11 time=100
`

func source(t *testing.T, data []byte) *trace.Reader {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func summary(t *testing.T, data []byte) map[string]any {
	t.Helper()
	s, err := analyzer.Summarize(source(t, data),
		analyzer.Options{Question: analyzer.Question{Groupings: []string{"tag", "name", "site"}}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	var values map[string]any
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func TestSnapshotHoldsWhatIsLive(t *testing.T) {
	var whole, small bytes.Buffer
	if err := textform.Encode(&whole, strings.NewReader(history)); err != nil {
		t.Fatal(err)
	}
	src := source(t, whole.Bytes())
	live, err := ReadLive(src)
	if err != nil {
		t.Fatal(err)
	}
	if driver, framework := live.Bytes(); driver != 20971520+2097152 || framework != 1048576 {
		t.Errorf("%d bytes of the driver and %d of the framework are live", driver, framework)
	}
	w, err := trace.NewWriter(&small, trace.WriterOptions{})
	if err == nil {
		err = live.Write(w, src)
	}
	if err != nil {
		t.Fatal(err)
	}
	before, after := summary(t, whole.Bytes()), summary(t, small.Bytes())
	for _, level := range []string{"driver", "framework"} {
		want, got := before[level].(map[string]any), after[level].(map[string]any)
		if want["live_bytes"] != got["live_bytes"] || got["peak_bytes"] != got["live_bytes"] {
			t.Errorf("%s: %v bytes are live and %v at the peak, want %v", level, got["live_bytes"], got["peak_bytes"],
				want["live_bytes"])
		}
	}
	if health := after["health"].(map[string]any); health["complete"] != true || health["events"].(float64) != 6 {
		t.Errorf("%v", health)
	}
	if process := after["process"].(map[string]any); process["snapshot"] != true || process["exit_status"] != nil {
		t.Errorf("%v", process)
	}
	var text bytes.Buffer
	if err := textform.Write(&text, source(t, small.Bytes())); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"layer.weight"`, `"model"`, `file="/app/train.py"`, "create seq=1 ", "map seq=6 ",
		`name="Some GPU"`} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("%s is missing", part)
		}
	}
	if strings.Contains(text.String(), `"gone"`) {
		t.Errorf("what is gone is named:\n%s", text.String())
	}
}

// TestSnapshotOfManyEvents: what is kept grows with what is live, and so does the trace.
func TestSnapshotOfManyEvents(t *testing.T) {
	var text strings.Builder
	text.WriteString("trace version=1\n")
	for i := range 5000 {
		fmt.Fprintf(&text, "alloc seq=%d time=%d level=driver api=cuMemAlloc_v2 mem=device addr=%#x size=4096\n", 2*i+1,
			2*i+1, 0x7f0000000000+4096*i)
		fmt.Fprintf(&text, "free seq=%d time=%d level=driver api=cuMemFree_v2 mem=device addr=%#x\n", 2*i+2, 2*i+2,
			0x7f0000000000+4096*i)
	}
	text.WriteString("flush watermark=10001\n")
	var whole, small bytes.Buffer
	if err := textform.Encode(&whole, strings.NewReader(text.String())); err != nil {
		t.Fatal(err)
	}
	src := source(t, whole.Bytes())
	live, err := ReadLive(src)
	if err != nil {
		t.Fatal(err)
	}
	if len(live.blocks) != 0 || len(live.events()) != 0 {
		t.Errorf("%d blocks and %d events are kept of nothing", len(live.blocks), len(live.events()))
	}
	w, err := trace.NewWriter(&small, trace.WriterOptions{})
	if err == nil {
		err = live.Write(w, src)
	}
	if err != nil || small.Len() > whole.Len()/10 {
		t.Errorf("%v, %d bytes of %d", err, small.Len(), whole.Len())
	}
}
