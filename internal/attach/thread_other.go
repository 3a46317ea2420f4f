//go:build !amd64

package attach

import "debug/elf"

const machine = elf.EM_NONE

const readCall = 63

var waits [0]uint64

// stopped is a stopped thread.
type stopped struct{ tid int }

func stop(int) (*stopped, error)                          { return nil, ErrUnsupported }
func (s *stopped) isAt(waiter) bool                       { return false }
func (s *stopped) threadPointer() uint64                  { return 0 }
func (s *stopped) save() error                            { return ErrUnsupported }
func (s *stopped) push(string) (uint64, error)            { return 0, ErrUnsupported }
func (s *stopped) call(uint64, ...uint64) (uint64, error) { return 0, ErrUnsupported }
func (s *stopped) release() error                         { return nil }
func (s *stopped) peek(uintptr, int) ([]byte, error)      { return nil, ErrUnsupported }
func (s *stopped) poke(uintptr, []byte) error             { return ErrUnsupported }
