package analyzer

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

// server is a program in the making: it holds weights, answers requests with memory that it frees again, and does
// something else beside that. Times are those of a real one, so that hours cost nothing.
type server struct {
	story
	random *rand.Rand
	time   int64
	next   uint64 // address
}

const (
	serverHeld    = 1 << 30
	serverRequest = int64(5e6) // nanoseconds
)

func newServer(seed uint64) *server {
	s := &server{random: rand.New(rand.NewPCG(seed, 1)), next: 1 << 20}
	for range 16 {
		s.keep(stackNowhere, serverHeld/16)
	}
	return s
}

func (s *server) event(kind trace.EventKind, addr, size uint64, stack trace.StackID) {
	s.add(trace.Event{Kind: kind, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Addr: addr, Size: size,
		Stack: stack})
	s.change(func(e *trace.Event) { e.Time = s.time })
	s.time += 1000
}

// keep allocates and returns the address.
func (s *server) keep(stack trace.StackID, size uint64) uint64 {
	s.next += 1 << 20
	s.event(trace.EventAlloc, s.next, size, stack)
	return s.next
}

func (s *server) free(addr, size uint64) { s.event(trace.EventFree, addr, size, 0) }

// answer handles one request, of a size of its own.
func (s *server) answer() {
	var blocks [4]uint64
	size := uint64(1<<16 + s.random.IntN(1<<20))
	for i := range blocks {
		blocks[i] = s.keep(stackAllocator, size)
	}
	for _, addr := range blocks {
		s.free(addr, size)
	}
	s.time += serverRequest + int64(s.random.IntN(int(serverRequest)))
}

// TestGrowthRates: leaks of 2 to 100% of what is held per minute are found, the line that leaks first, beside a cache
// that fills and memory that comes and goes; the rate is about right. Slower ones leave less than half a percent of the
// peak in these runs, which is not called growth, but described. Without the leak, none of it is growth.
func TestGrowthRates(t *testing.T) {
	t.Parallel()
	for seed, perMinute := range []float64{0.1, 1, 2, 3, 10, 30, 100} {
		for _, beside := range []string{"nothing", "cache", "bursts"} {
			for _, leaks := range []bool{true, false} {
				s := newServer(uint64(seed))
				const requests = 3000
				cache := make(map[int]uint64)
				var burst []uint64
				due, last := 0.0, s.time
				for n := range requests {
					s.answer()
					switch {
					case beside == "cache" && len(cache) < 200:
						if key := s.random.IntN(200); cache[key] == 0 {
							cache[key] = s.keep(stackBLAS, 1<<18)
						}
					case beside == "bursts":
						if burst = append(burst, s.keep(stackBLAS, 1<<16)); n%97 == 96 {
							for _, addr := range burst {
								s.free(addr, 1<<16)
							}
							burst = burst[:0]
						}
					}
					if due += perMinute / 100 * serverHeld * float64(s.time-last) / 60e9; leaks && due >= 512 {
						s.keep(stackProgram, uint64(due))
						due -= float64(uint64(due))
					}
					last = s.time
				}
				got := s.summary(t, Options{Question: Question{Groupings: []string{"site"}}}).Trend
				name := fmt.Sprintf("%.1f%% per minute beside %s, leak %v", perMinute, beside, leaks)
				if !leaks {
					if got.Kind != report.GrowthNone || len(got.Owners) != 0 || got.FloorBytes != 0 {
						t.Errorf("%s: %+v", name, got)
					}
					continue
				}
				kind := report.GrowthSteady
				if perMinute < 2 {
					kind = report.GrowthNone
				}
				want := perMinute / 100 * serverHeld / 60
				if got.Kind != kind || len(got.Owners) == 0 || got.Owners[0].Site != sites[stackProgram] ||
					(got.FloorBytes > got.Bytes) != (kind == report.GrowthNone) {
					t.Errorf("%s: %+v", name, got)
				} else if got.BytesPerSecond < want*0.8 || got.BytesPerSecond > want*1.25 {
					t.Errorf("%s: %.0f bytes a second, want %.0f", name, got.BytesPerSecond, want)
				}
			}
		}
	}
}
