package tracefile

import "runtime"

// mostAtOnce bounds how many traces are read at the same time: each takes some tens of MiB.
const mostAtOnce = 8

// atOnce is how many traces are read at the same time. One alone takes two processors: it is decoded while it is
// replayed.
func atOnce() int { return min(max(runtime.GOMAXPROCS(0)/2, 1), mostAtOnce) }

// InOrder reads traces, several at a time if there are processors, and passes them to take in the order of inputs. load
// must be safe for concurrent use. An error of take ends it and is returned; reads in progress are abandoned.
func InOrder[T any](inputs []Input, load func(path string) (T, error),
	take func(in Input, value T, err error) error) error {
	if len(inputs) == 1 {
		value, err := load(inputs[0].Path)
		return take(inputs[0], value, err)
	}
	type loaded struct {
		value T
		err   error
	}
	results := make([]chan loaded, len(inputs))
	for i := range results {
		results[i] = make(chan loaded, 1)
	}
	room, ended := make(chan struct{}, atOnce()), make(chan struct{})
	defer close(ended)
	go func() {
		for i, in := range inputs {
			select {
			case room <- struct{}{}: // until take has it: what was read waits in memory
			case <-ended:
				return
			}
			go func() {
				value, err := load(in.Path)
				results[i] <- loaded{value, err}
			}()
		}
	}()
	for i, in := range inputs {
		r := <-results[i]
		if err := take(in, r.value, r.err); err != nil {
			return err
		}
		<-room
	}
	return nil
}
