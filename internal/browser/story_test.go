package browser

import (
	"fmt"
	"slices"
	"strings"
)

// story writes the text form of a trace: a network of linear layers that trains for some iterations. Its allocator
// takes segments of 20 MiB from the driver and puts each block into the first hole that fits.
type story struct {
	text     strings.Builder
	seq      uint64
	width    uint64 // bytes of a layer's weight
	segments []uint64
	blocks   []storyBlock // in the order of addresses
	reserved uint64
	held     uint64
}

type storyBlock struct{ addr, size uint64 }

const (
	storySegment = 20 << 20
	storyLayers  = 6
	storyBase    = 0x7f0000000000
)

const storyHead = `trace version=1
info key="process.command" value="python3 train.py"
info key="process.cwd" value="/home/ada/net"
info key="process.pid" value="4711"
info key="framework.torch" value="2.7.1"
info key="python.version" value="3.11.7"
info key="adapter.torch" value="on"
thread id=1 tid=4711 name="python3"
thread id=2 tid=4712 name="pt_autograd_0"
device index=0 name="Test GPU" uuid="GPU-0" total=268435456
module id=1 start=0x7f2000000000 end=0x7f2000100000 base=0x7f2000000000 path="/usr/lib/libc10_cuda.so" buildid="ab12"
stack id=5 frames=0x7f2000001234 end=interpreter
code id=101 name="main" file="/home/ada/net/train.py" line=60 table=none
code id=102 name="forward" qualname="Net.forward" file="/home/ada/net/train.py" line=41 table=none
code id=103 name="forward" qualname="Linear.forward" file="/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py" line=125 table=none
code id=104 name="_call_impl" qualname="Module._call_impl" file="/venv/lib/python3.11/site-packages/torch/nn/modules/module.py" line=1760 table=none
code id=105 name="_init_group" qualname="Adam._init_group" file="/venv/lib/python3.11/site-packages/torch/optim/adam.py" line=100 table=none
pystack id=20 frames=101+0*
pystack id=22 frames=105+0,101+0*
string id=1 value="Net"
string id=2 value="Adam"
string id=3 value="loaded"
string id=4 value="half way"
`

func (s *story) event(format string, args ...any) {
	s.seq++
	fmt.Fprintf(&s.text, format+"\n", args...)
}

// at is the beginning of an event of the next number.
func (s *story) at(kind string, thread int) string {
	return fmt.Sprintf("%s seq=%d time=%d thread=%d", kind, s.seq+1, (s.seq+1)*1_000_000, thread)
}

func (s *story) alloc(size uint64, thread int, stack string) uint64 {
	addr := s.place(size)
	s.held += size
	s.event(
		"%s level=framework api=reportMemoryUsageToProfiler mem=device device=0 addr=%#x size=%d stack=5 allocated=%d reserved=%d%s", s.at("alloc", thread), addr, size, s.held, s.reserved, stack)
	return addr
}

// place finds a hole, in a new segment if no other has one.
func (s *story) place(size uint64) uint64 {
	for _, segment := range s.segments {
		at := segment
		for _, b := range s.blocks {
			if b.addr < at || b.addr >= segment+storySegment {
				continue
			}
			if b.addr-at >= size {
				break
			}
			at = b.addr + b.size
		}
		if at+size <= segment+storySegment {
			s.blocks = append(s.blocks, storyBlock{at, size})
			slices.SortFunc(s.blocks, func(a, b storyBlock) int { return int(int64(a.addr) - int64(b.addr)) })
			return at
		}
	}
	segment := uint64(storyBase + len(s.segments)*2*storySegment)
	s.segments, s.reserved = append(s.segments, segment), s.reserved+storySegment
	s.event("%s level=driver api=cuMemAlloc_v2 mem=device device=0 addr=%#x size=%d stack=5", s.at("alloc", 1), segment,
		storySegment)
	return s.place(size)
}

func (s *story) free(addr uint64, thread int) {
	i := slices.IndexFunc(s.blocks, func(b storyBlock) bool { return b.addr == addr })
	s.held -= s.blocks[i].size
	s.blocks = slices.Delete(s.blocks, i, i+1)
	s.event("%s level=framework api=reportMemoryUsageToProfiler addr=%#x stack=5 allocated=%d reserved=%d",
		s.at("free", thread), addr, s.held, s.reserved)
}

// trained is the text of a run of so many iterations. Names of layers begin with prefix; the weight of one layer is
// wider by so many bytes.
func trained(prefix string, iterations int, wider uint64, outOfMemory bool) string {
	s := &story{width: 1 << 20}
	s.text.WriteString(storyHead)
	for i := range storyLayers {
		fmt.Fprintf(&s.text, "string id=%d value=%q\nstring id=%d value=%q\nstring id=%d value=%q\n", 10+i,
			fmt.Sprintf("Net.%sfc%d", prefix, i), 30+i, fmt.Sprintf("Net.%sfc%d.weight", prefix, i), 50+i,
			fmt.Sprintf("exp_avg:Net.%sfc%d.weight", prefix, i))
		fmt.Fprintf(&s.text, "pystack id=%d frames=103+0@%#x,104+0@%#x,102+0@0x6000,104+0@0x6000,101+0*\n", 70+i,
			0x7000+i, 0x7000+i)
	}
	s.event("%s handle=0x6000 category=module name=1", s.at("name", 1))
	for i := range storyLayers {
		size := s.width
		if i == 3 {
			size += wider
		}
		s.event("%s handle=%#x category=module name=%d", s.at("name", 1), 0x7000+i, 10+i)
		weight := s.alloc(size, 1, " pystack=20")
		s.event("%s addr=%#x size=%d handle=%#x category=parameter name=%d", s.at("name", 1), weight, size,
			0x8000+i, 30+i)
	}
	s.event("%s name=3", s.at("mark", 1))
	for n := range iterations {
		s.iterate(n, outOfMemory)
		if n == iterations/2 {
			s.event("%s name=4", s.at("mark", 1))
		}
	}
	if outOfMemory {
		s.event("%s level=driver api=cuMemAlloc_v2 mem=device device=0 size=268435456 status=2 stack=5 pystack=73",
			s.at("alloc", 1))
		s.event("%s level=framework size=268435456 stack=5 pystack=73 allocated=%d reserved=%d device=0",
			s.at("oom", 1), s.held, s.reserved)
	}
	fmt.Fprintf(&s.text, "flush watermark=%d\nend reason=\"exit\" events=%d time=%d\n", s.seq+1, s.seq,
		(s.seq+1)*1_000_000)
	return s.text.String()
}

// iterate is a forward pass, a backward pass and a step.
func (s *story) iterate(n int, leaks bool) {
	var features, gradients []uint64
	for i := range storyLayers {
		features = append(features, s.alloc(s.width*uint64(2+i%3), 1, fmt.Sprintf(" pystack=%d", 70+i)))
		if i == 2 && (leaks || n%2 == 0) {
			s.alloc(1024, 1, fmt.Sprintf(" pystack=%d", 70+i)) // small, and never freed
		}
	}
	for i := storyLayers - 1; i >= 0; i-- {
		gradients = append(gradients, s.alloc(s.width, 2, ""))
		s.event("%s addr=%#x size=%d handle=%#x category=gradient name=%d", s.at("name", 2),
			gradients[len(gradients)-1], s.width, 0x8000+i, 30+i)
		if !leaks || i%2 == 0 {
			s.free(features[i], 2)
		}
	}
	if n == 0 {
		for i := range storyLayers {
			state := s.alloc(s.width, 1, " pystack=22")
			s.event("%s addr=%#x size=%d handle=%#x category=optimizer name=%d", s.at("name", 1), state, s.width,
				0x8000+i, 50+i)
		}
	}
	s.event("%s size=%d handle=0x9000 category=step name=2", s.at("name", 1), n+1)
	for _, gradient := range gradients {
		s.free(gradient, 1)
	}
}
