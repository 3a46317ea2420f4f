package analyzer

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"memtrace/internal/textform"
	"memtrace/trace"
)

// movedBlocks is a trace in which blocks come to lie where others were, before and after the event with the number 4.
const movedBlocks = `trace version=1
code id=1 name="load" qualname="load" file="/app/train.py" line=3
code id=2 name="step" qualname="step" file="/app/train.py" line=9
pystack id=3 frames=1+6
pystack id=4 frames=2+6
thread id=9 tid=7 name="main"
device index=0 name="Some GPU" uuid="GPU-1" total=85899345920
alloc seq=1 time=10 thread=9 level=driver api=cuMemAlloc_v2 mem=device addr=0x7f0000000000 size=20971520 pystack=3
alloc seq=2 time=20 thread=9 level=framework api=1 mem=device addr=0x7f0000000000 size=4096 allocated=4096 reserved=20971520 pystack=3
free seq=3 time=30 thread=9 level=framework api=2 mem=device addr=0x7f0000000000 size=4096 reserved=20971520
alloc seq=4 time=40 thread=9 level=framework api=1 mem=device addr=0x7f0000000000 size=2048 allocated=2048 reserved=20971520 pystack=4
free seq=5 time=50 thread=9 level=framework api=2 mem=device addr=0x7f0000000000 size=2048 reserved=20971520
alloc seq=6 time=60 thread=9 level=framework api=1 mem=device addr=0x7f0000000000 size=1024 allocated=1024 reserved=20971520 pystack=3
flush watermark=7
end reason="exit" events=6 time=100
`

// Places are those of the moment that was asked for, whatever lies at the addresses by the end.
func TestLiveSites(t *testing.T) {
	var data bytes.Buffer
	if err := textform.Encode(&data, strings.NewReader(movedBlocks)); err != nil {
		t.Fatal(err)
	}
	const inDriver, nowhere = 0x7f0000010000, 0x7e0000000000
	load, step := "app/train.py:3 load", "app/train.py:9 step"
	for seq, want := range map[uint64]map[uint64]LiveSite{
		0: {},
		1: {0x7f0000000000: {load, 20971520}, inDriver: {load, 20971520}},
		2: {0x7f0000000000: {load, 4096}, inDriver: {load, 20971520}},
		4: {0x7f0000000000: {step, 2048}, 0x7f00000007ff: {step, 2048}, 0x7f0000000800: {load, 20971520},
			inDriver: {load, 20971520}},
		9: {0x7f0000000000: {load, 1024}, inDriver: {load, 20971520}},
	} {
		source, err := trace.NewReader(bytes.NewReader(data.Bytes()), int64(data.Len()))
		if err != nil {
			t.Fatal(err)
		}
		addresses := []uint64{nowhere, 0x7f0000000000, inDriver}
		if seq == 4 {
			addresses = append(addresses, 0x7f00000007ff, 0x7f0000000800)
		}
		got, _, err := LiveSites(source, Options{}, seq, addresses)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("after event %d: %v, %v; want %v", seq, got, err, want)
		}
	}
}
