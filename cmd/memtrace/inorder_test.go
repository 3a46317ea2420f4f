package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// TestInOrder: traces are read at the same time, not too many of them, and come in the order in which they were named,
// errors among them.
func TestInOrder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(6))
	var inputs []input
	for n := range 40 {
		inputs = append(inputs, input{path: strconv.Itoa(n)})
	}
	var reading, most atomic.Int32
	first, second := make(chan struct{}), make(chan struct{}) // closed once the one and the other are being read
	meet := func(mine, other chan struct{}) error {
		close(mine)
		select {
		case <-other:
			return nil
		case <-time.After(time.Minute):
			return errors.New("nothing is read at the same time")
		}
	}
	load := func(path string) (string, error) {
		now := reading.Add(1)
		defer reading.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		switch path {
		case "0":
			if err := meet(first, second); err != nil {
				return "", err
			}
		case "1": // overtakes the first, and no other is counted alone meanwhile
			if err := meet(second, first); err != nil {
				return "", err
			}
		case "7":
			return "", errors.New("damaged")
		}
		return "read " + path, nil
	}
	var got []string
	err := inOrder(inputs, load, func(in input, value string, err error) error {
		if err != nil {
			value = in.path + " is " + err.Error()
		}
		got = append(got, value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for n, in := range inputs {
		want := "read " + in.path
		if n == 7 {
			want = "7 is damaged"
		}
		if n >= len(got) || got[n] != want {
			t.Fatalf("got %q, want %q in place %d", got, want, n)
		}
	}
	if n := most.Load(); n < 2 || n > 3 {
		t.Errorf("%d were read at the same time, of at most 3", n)
	}
}

// TestInOrderStops: once a result could not be written no further trace is read.
func TestInOrderStops(t *testing.T) {
	broken := errors.New("broken pipe")
	var inputs []input
	for n := range 1000 {
		inputs = append(inputs, input{path: strconv.Itoa(n)})
	}
	var read atomic.Int32
	err := inOrder(inputs, func(string) (int, error) { return int(read.Add(1)), nil }, func(input, int, error) error { return broken })
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if n := read.Load(); n > mostAtOnce {
		t.Errorf("%d traces were read", n)
	}
}

// TestReportsOfAFolderDoNotDependOnProcessors: the same bytes, whether traces are read one by one or at the same time.
func TestReportsOfAFolderDoNotDependOnProcessors(t *testing.T) {
	folder := t.TempDir()
	for n := range 6 {
		text := fmt.Sprintf("trace version=1\nstring id=1 value=\"model.%d\"\n", n)
		for seq := 1; seq <= 400; seq++ {
			text += fmt.Sprintf("alloc seq=%d time=%d thread=1 level=framework mem=device addr=%d size=%d tag=1\n", seq, seq*1000, seq*4096, 512*(1+(seq+n)%7))
		}
		text += fmt.Sprintf("end reason=\"exit\" lost_records=0 lost_rings=0 lost_dict=0 events=400 time=%d\n", 401000)
		source := filepath.Join(folder, "text")
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, problems := execute(t, []string{"-q", "dump", "--encode", "-o", filepath.Join(folder, fmt.Sprintf("memtrace.rank.%d.bin", n)), source}); problems != "" {
			t.Fatal(problems)
		}
	}
	for _, args := range [][]string{{"report", "--json", folder}, {"report", "--all", folder}, {"report", "--brief", folder}} {
		var outputs []string
		for _, processors := range []int{1, 8} {
			before := runtime.GOMAXPROCS(processors)
			out, problems := execute(t, args)
			runtime.GOMAXPROCS(before)
			if problems != "" {
				t.Fatal(problems)
			}
			outputs = append(outputs, out)
		}
		if outputs[0] != outputs[1] || len(outputs[0]) < 1000 {
			t.Errorf("%v: %d and %d bytes, which differ", args, len(outputs[0]), len(outputs[1]))
		}
	}
}
