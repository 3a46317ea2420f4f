package tracefile

import (
	"errors"
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
	var inputs []Input
	for n := range 40 {
		inputs = append(inputs, Input{Path: strconv.Itoa(n)})
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
	err := InOrder(inputs, load, func(in Input, value string, err error) error {
		if err != nil {
			value = in.Path + " is " + err.Error()
		}
		got = append(got, value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for n, in := range inputs {
		want := "read " + in.Path
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
	var inputs []Input
	for n := range 1000 {
		inputs = append(inputs, Input{Path: strconv.Itoa(n)})
	}
	var read atomic.Int32
	err := InOrder(inputs, func(string) (int, error) { return int(read.Add(1)), nil },
		func(Input, int, error) error { return broken })
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if n := read.Load(); n > mostAtOnce {
		t.Errorf("%d traces were read", n)
	}
}
