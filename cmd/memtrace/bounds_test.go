package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"memtrace/analyzer"
	guests "memtrace/internal/guest"
	"memtrace/internal/spool"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

// A program lost 22 % of its records because its threads left the drainer no processor, and the report's peak was
// twenty times what could be live. Here a program overflows a small spool again and again, under a drainer that looks
// only when something is lost already.
func TestOverflowHasBounds(t *testing.T) {
	for _, test := range []struct {
		name    string
		args    []string
		drained bool
	}{
		{"one thread", []string{"1", "200000"}, true},
		{"four threads", []string{"4", "60000"}, true},
		{"with counters", []string{"2", "100000", "counted"}, true},
		{"nobody drains", []string{"1", "100000"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			path, peak := overflow(t, test.drained, test.args...)
			s, err := tracefile.Summarize(&newApp(nil, os.Stderr, os.Stderr).Console, path, analyzer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			b := s.Bounds
			if b == nil || !b.Placed || b.RecordedIsUpper || b.LostRecords == 0 || b.LostRecords != s.LostRecords {
				t.Fatalf("%d records lost, bounds %+v", s.LostRecords, b)
			}
			lower := *s.Framework.PeakBytesLower
			if lower > peak || *s.Framework.LiveBytesLower != 0 {
				t.Errorf("certain are a peak of %d and %d in the end; there was a peak of %d and nothing in the end",
					lower, *s.Framework.LiveBytesLower, peak)
			}
			// Until the spool is full nothing is lost, and with that comes the highest peak that one thread has.
			if one := onePeak(); lower < one {
				t.Errorf("certain is a peak of %d, but %d came before the first lost record", lower, one)
			}
			if test.drained && s.Framework.PeakBytes <= peak {
				t.Logf("recorded %d, no more than the true peak of %d: this run says little", s.Framework.PeakBytes,
					peak)
			}
			t.Logf("%d lost; certain %d, true %d, recorded %d", b.LostRecords, lower, peak, s.Framework.PeakBytes)
		})
	}
}

// onePeak is the most that one thread of the guest has live: 16 blocks in a row.
func onePeak() (bytes uint64) {
	for i := range uint64(16) {
		bytes += 1000 + 999 - i
	}
	return bytes
}

// overflow runs the guest and returns the path of its recording and its true peak.
func overflow(t *testing.T, drained bool, args ...string) (path string, peak uint64) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "o.bin")
	cmd := exec.Command(guests.Recorder(t, "testdata/guest/overflow.c"), args...)
	cmd.Env = append(os.Environ(), "MEMTRACE_OUTPUT="+path, "MEMTRACE_SPOOL_MAX=4M", "MEMTRACE_SPOOL_HARD_MAX=4M",
		"MEMTRACE_OVERFLOW=drop")
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	var text string
	if drained {
		text = drainLate(t, path, answer)
	} else {
		text = <-answer
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	peak, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return path, peak
}

// drainLate acts as a drainer that collects whenever more was lost, until the program has printed its answer.
func drainLate(t *testing.T, path string, answer chan string) string {
	t.Helper()
	s := openSpool(t, path+spool.Extension, answer)
	defer s.Close()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := trace.NewWriter(file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cursor := spool.NewCursor(s)
	losses := spool.NewLosses(cursor)
	drain := func(last bool) {
		for more := true; more; {
			var events []trace.Event
			var mark uint64
			events, mark, more = cursor.Collect(last)
			more = more && len(events) > 0
			lost := losses.Take(last && !more)
			if err := errors.Join(cursor.Dictionary(w), w.WriteEvents(lost), w.WriteEvents(events),
				w.Flush(mark)); err != nil {
				t.Fatal(err)
			}
			cursor.Release()
		}
	}
	for before := uint64(0); ; {
		select {
		case text := <-answer:
			drain(true)
			records, rings, dict := s.Lost()
			if err := w.Close(trace.End{Reason: "exit", LostRecords: records, LostRings: rings, LostDict: dict}); err !=
				nil {
				t.Fatal(err)
			}
			return text
		default:
		}
		if lost, _, _ := s.Lost(); lost > before {
			before = lost
			drain(false)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// openSpool waits until the program has created its spool, or has printed its answer without one.
func openSpool(t *testing.T, path string, answer chan string) *spool.Spool {
	t.Helper()
	for answered := false; ; {
		s, err := spool.Open(path, true)
		if err == nil {
			return s
		}
		if answered {
			t.Fatal(err)
		}
		select {
		case text := <-answer:
			answer <- text
			answered = true
		default:
			time.Sleep(time.Millisecond)
		}
	}
}
