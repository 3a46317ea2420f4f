package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// streamText writes the text of a trace like a training's: two devices, three threads, segments of the driver's and
// blocks of a framework's in them, tags, stacks of both kinds with their code and names of functions, steps, marks,
// samples, names of tensors, records that came late or were lost, and memory that ran out.
type streamText struct {
	strings.Builder
	r         *rand.Rand
	seq, time uint64
	live      []streamBlock
	allocated [2]uint64
	reserved  [2]uint64
	late      string // a line that is to come later
	lossy     bool
}

type streamBlock struct {
	addr, size uint64
	device     int
}

// stream returns such a text with so many events, more or less. ended: the program ended by itself; lossy: records were
// lost.
func stream(seed uint64, events int, ended, lossy bool) string {
	s := &streamText{r: rand.New(rand.NewPCG(seed, 0)), lossy: lossy}
	s.head()
	for step := 0; s.seq < uint64(events); step++ {
		s.event("step", "tag=2 count=%d", step)
		for range 40 + s.r.IntN(40) {
			s.one()
		}
		s.WriteString(s.late)
		s.late = ""
		if step%2 == 0 {
			fmt.Fprintf(s, "string id=%d value=\"layer.%d\"\n", 100+step, step)
			s.event("name", "addr=%#x size=512 handle=0x7700 category=parameter name=%d", s.last().addr, 100+step)
		}
		fmt.Fprintf(s, "flush watermark=%d\n", s.seq+1)
	}
	lost := 0
	if lossy {
		lost = 2
	}
	if ended {
		fmt.Fprintf(s,
			"info key=\"process.numbers\" value=\"%d\"\nsymbol module=1 address=0x401235 function=\"train\" file=\"/src/train.cc\" line=7\nend reason=\"exit\" events=%d lost_records=%d time=%d\n",
			s.seq, strings.Count(s.String(), " seq="), lost, s.time)
	}
	return s.String()
}

func (s *streamText) head() {
	s.WriteString(
		"trace version=1\ninfo key=\"process.pid\" value=\"4711\"\ninfo key=\"process.command\" value=\"python3 train.py\"\ninfo key=\"framework.torch\" value=\"2.7.1\"\ninfo key=\"nvml\" value=\"on\"\n")
	for id, name := range []string{"", "model", "model.forward", "model.backward", "begin", "context", "period"} {
		if id > 0 {
			fmt.Fprintf(s, "string id=%d value=%q\n", id, name)
		}
	}
	for id, path := range []string{"", "/opt/train/train", "/venv/torch/lib/libc10_cuda.so",
		"/usr/lib/libcublas.so.12"} {
		if id > 0 {
			fmt.Fprintf(s, "module id=%d start=%#x end=%#x base=%#x path=%q buildid=\"ab%02x\"\n", id, id<<22, id<<22+
				1<<20, id<<22, path, id)
		}
	}
	for id := 1; id <= 12; id++ {
		fmt.Fprintf(s, "stack id=%d frames=%#x,%#x,%#x end=interpreter\n", id, 2<<22+id*64, 3<<22+id%3*16, 1<<22+0x1235)
		fmt.Fprintf(s,
			"code id=%d name=\"f%d\" qualname=\"Model.f%d\" file=\"/home/me/train.py\" line=%d table=locations lines=80007aff\n", 20+id, id, id, id)
		fmt.Fprintf(s, "pystack id=%d frames=%d+%d*@0x7f00,%d+0\n", 40+id, 20+id, 2*id, 20+(id+5)%12+1)
	}
	for id := 1; id <= 3; id++ {
		fmt.Fprintf(s, "thread id=%d tid=%d name=\"thread %d\"\n", id, 4710+id, id)
	}
	for device := range 2 {
		fmt.Fprintf(s, "device index=%d name=\"NVIDIA H100\" uuid=\"GPU-%d\" total=85899345920\n", device, device)
	}
}

func (s *streamText) last() streamBlock {
	if len(s.live) == 0 {
		return streamBlock{addr: 0x7000}
	}
	return s.live[len(s.live)-1]
}

// event writes a line and draws its number.
func (s *streamText) event(kind, format string, args ...any) {
	s.seq++
	s.time += uint64(s.r.IntN(3000))
	line := fmt.Sprintf("%s seq=%d time=%d thread=%d %s\n", kind, s.seq, s.time, 1+s.r.IntN(3),
		fmt.Sprintf(format, args...))
	if s.late == "" && s.r.IntN(60) == 0 {
		s.late = strings.Replace(line, " thread", " flags=1 thread", 1)
		if !strings.Contains(line, "flags=") {
			return
		}
		s.late = ""
	}
	s.WriteString(line)
}

func (s *streamText) stacks() string {
	id := 1 + s.r.IntN(12)
	return fmt.Sprintf("stack=%d pystack=%d tag=%d", id, 40+id, s.r.IntN(4))
}

// one writes what one call makes.
func (s *streamText) one() {
	device := s.r.IntN(2)
	counts := func() string { return fmt.Sprintf("allocated=%d reserved=%d", s.allocated[device], s.reserved[device]) }
	switch n := s.r.IntN(100); {
	case n < 50 && s.allocated[device]+1<<20 < s.reserved[device]:
		b := streamBlock{addr: 0x7f0000000000 + s.seq<<16, size: uint64(1+s.r.IntN(900)) * 512, device: device}
		s.live = append(s.live, b)
		s.allocated[device] += b.size
		s.event("alloc",
			"level=framework api=reportMemoryUsageToProfiler mem=device device=%d addr=%#x size=%d op=%d opthread=1 %s %s", device, b.addr, b.size, s.seq, counts(), s.stacks())
	case n < 88 && len(s.live) > 0:
		i := s.r.IntN(len(s.live))
		b := s.live[i]
		s.live[i] = s.live[len(s.live)-1]
		s.live = s.live[:len(s.live)-1]
		device = b.device
		s.allocated[device] -= b.size
		s.event("free", "level=framework api=reportMemoryUsageToProfiler mem=device device=%d addr=%#x size=%d %s %s",
			device, b.addr, b.size, counts(), s.stacks())
	case n < 92:
		s.reserved[device] += 20 << 20
		s.event("alloc",
			"level=driver api=cuMemAlloc_v2 runtime=cudaMalloc mem=device device=%d addr=%#x size=%d handle=0xc0 %s",
			device, 0x7e0000000000+s.seq<<25, 20<<20, s.stacks())
	case n < 94:
		s.event("sample", "device=%d size=%d allocated=%d reserved=1024 count=4096 name=%d flags=32", device,
			s.reserved[device]+1<<24, s.reserved[device], 5+s.r.IntN(2))
	case n < 95:
		s.event("mark", "name=4")
	case n < 96:
		s.event("alloc", "level=driver api=cuMemAlloc_v2 mem=device device=%d size=%d status=2 %s", device,
			uint64(1)<<40, s.stacks())
		s.event("oom", "level=framework api=reportOutOfMemoryToProfiler device=%d size=%d %s %s", device, uint64(1)<<40,
			counts(), s.stacks())
	case n < 97 && s.lossy:
		s.event("lost", "count=1")
		s.seq++ // the number of a free that was lost
	}
}
